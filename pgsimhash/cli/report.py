"""The command that reports on a collection."""

from __future__ import annotations

from pathlib import Path

import click

from pgsimhash import analysis, html_reports
from pgsimhash.cli import drawn
from pgsimhash.cli.options import (
    cluster_options,
    collection_option,
    distance_option,
    dsn_option,
    output_option,
)
from pgsimhash.cli.printing import people, print_json, write_text
from pgsimhash.cli.work import summary_option
from pgsimhash.search.clusters import Linkage
from pgsimhash.store import connect


def _limit(name: str, default: int, help_text: str) -> click.Option:
    return click.Option(
        [f"--{name}"],
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        help=f"The number of {help_text}.",
    )


@click.command(
    params=[
        _limit("clusters", 20, "clusters, the biggest first"),
        _limit("members", 10, "pages of each cluster, those farthest from the canonical one first"),
        _limit("hosts", 30, "hosts, those with the most duplicates first"),
        _limit("urls", 10, "pages that changed, those that changed most first"),
    ]
)
@distance_option("the collection's")
@cluster_options
@output_option
@summary_option
@collection_option
@dsn_option
def report(
    clusters: int,
    members: int,
    hosts: int,
    urls: int,
    distance: int | None,
    linkage: Linkage,
    canonical: tuple[str, ...],
    output: Path | None,
    summary: bool | None,
    collection: str,
    dsn: str | None,
) -> None:
    """Show a collection at a glance: what it saved, clusters, distances, hosts and changes.

    Prints one JSON line with the statistics of `status` and more. -o also writes one HTML page that
    needs no network and no scripts. It shows the differences between the pages of a cluster, if the
    collection stores Markdown.
    """
    console = people()
    with (
        connect(dsn, collection=collection, create=False) as store,
        console.status("reading the collection"),
    ):
        report_ = analysis.report(
            store,
            distance,
            linkage=linkage,
            canonical=canonical,
            clusters=clusters,
            # The JSON line shows neither members nor texts.
            members=0 if output is None else members,
            texts=0 if output is None else 3,
            hosts=hosts,
            urls=urls,
        )
    print_json(report_.as_json())
    if console.is_terminal if summary is None else summary:
        _print(console, report_)
    if output is not None:
        write_text(output, html_reports.report_page(report_))


def _print(console: drawn.Console, report: analysis.Report) -> None:
    status = report.status
    table = drawn.Table("figure", "value", show_header=False)
    table.columns[1].justify = "right"
    for name in ("pages", "urls", "duplicates", "simhashes"):
        table.add_row(name, f"{getattr(status, name):,}")
    table.add_row("bytes saved", drawn.decimal(status.duplicate_bytes))
    table.add_row("bytes on disk, all collections", drawn.decimal(status.schema_bytes))
    table.add_row("clusters", f"{report.all_clusters:,}")
    table.add_row("duplicates in clusters", f"{report.spare_pages:,}")
    console.print(table)
    for cluster in report.clusters[:5]:
        console.print(f"{cluster.size:,} pages like {cluster.canonical.url}")
