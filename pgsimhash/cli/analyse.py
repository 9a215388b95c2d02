"""Commands that explain, compare and report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgsimhash import analysis, html_reports, schemes
from pgsimhash.cli.options import (
    as_simhash,
    cluster_options,
    csv_option,
    distance_option,
    dsn_option,
    file_url,
    is_url,
    output_option,
    parquet_option,
    read_file,
    scheme_option,
    store_options,
    summary_option,
    with_store,
)
from pgsimhash.cli.printing import print_json, print_message, table_printer, write_text
from pgsimhash.hashing.bits import format_simhash
from pgsimhash.schemes import DEFAULT_NAME
from pgsimhash.search.clusters import Cluster, Linkage
from pgsimhash.store import connect

if TYPE_CHECKING:
    from rich.console import Console

    from pgsimhash.analysis.explanation import FeatureList
    from pgsimhash.store import Store

_CLUSTER_COLUMNS = (
    *("cluster", "url", "simhash", "canonical", "title", "canonical_url", "canonical_problems"),
)
_VERSIONS = 50
"""How many versions of a page are printed."""

_page_option = output_option(
    "-o", "--output", help_text="Write an HTML page with charts to this file."
)


@click.group()
def analyse() -> None:
    """Explain matches, follow changes, report and measure."""


@analyse.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@distance_option("the collection's, else the scheme's")
@_page_option
@summary_option
@scheme_option(f"the collection's, else {DEFAULT_NAME}")
@click.option(
    "--collection",
    help="The collection of the pages and the scheme.  [default: default, for URLs]",
)
@dsn_option
def explain(
    a: str,
    b: str,
    distance: int | None,
    output: Path | None,
    summary: bool,
    scheme: str | None,
    collection: str | None,
    dsn: str | None,
) -> None:
    """Explain why two pages match or do not.

    Also explains at which distance, and what differs. A and B are HTML files (- for stdin), URLs of
    pages in the collection, or simhashes. Prints one JSON line. Exits with 1 if a page is unknown
    or has no fingerprint. Without a URL and --collection, it needs no database.

    Features and texts are shown if both pages are files, or are stored with their Markdown.
    Fingerprints of Markdown can differ from the original ones: bits_off is the number of bits.
    """
    if a == b == "-":
        raise click.UsageError("stdin can be read only once; give one of the pages as a file")
    known = [word for word in (a, b) if is_url(word)]
    if known or collection is not None:
        with connect(dsn, collection=collection or "default", create=False, scheme=scheme) as store:
            recipe = schemes.get_scheme(store.scheme)
            sides = [word if word in known else _side(word, recipe) for word in (a, b)]
            explanation = analysis.explain(store, *sides, distance=distance)
    else:
        recipe = schemes.get_scheme(scheme or schemes.DEFAULT_SCHEME)
        explanation = analysis.explain_sides(
            _side(a, recipe), _side(b, recipe), scheme=recipe, distance=distance
        )
    print_json(explanation.as_json())
    if summary:
        _print_explanation(explanation)
    if output is not None:
        write_text(output, html_reports.explanation_page(explanation))


@analyse.command()
@click.argument("url")
@summary_option
@with_store
def history(store: Store, url: str, summary: bool) -> None:
    """Show how a page changed over time.

    Prints a JSON line for each version, in order of arrival. Exits with 1 if the page is unknown.

    A change is "same" if the text is the same, "edited" for a different text at 0 to 8 bits,
    "rewritten" at 9 or more, and "redesign" for a different template at up to 8. For versions
    without a text digest, 0 to 3 bits count as the same text. An unchanged page adds no version;
    "seen_at" is when a version was last seen.
    """
    versions = analysis.versions(store, url, markdown=False)
    for version in versions:
        print_json(version.as_json())
    if summary:
        _print_versions(versions)


@analyse.command()
@distance_option("the collection's")
@cluster_options
@_page_option
@summary_option
@with_store
def report(
    store: Store,
    distance: int | None,
    linkage: Linkage,
    canonical: tuple[str, ...],
    output: Path | None,
    summary: bool,
) -> None:
    """Show a collection at a glance.

    Shows what it saved, the biggest clusters, distances, hosts and changes. Prints one JSON line
    with the statistics of `status` and more. -o also writes one HTML page that needs no network and
    no scripts. It shows the differences between the pages of a cluster, if the collection stores
    Markdown.
    """
    from pgsimhash.cli.console import stderr_console

    # The JSON line shows neither members nor texts.
    limits = {"members": 0, "texts": 0} if output is None else {}
    with stderr_console().status("reading the collection"):
        summarized = analysis.report(
            store, distance, linkage=linkage, canonical=canonical, **limits
        )
    print_json(summarized.as_json())
    if summary:
        _print_report(summarized)
    if output is not None:
        write_text(output, html_reports.report_page(summarized))


@analyse.command()
@distance_option("the collection's")
@click.option("--urls", is_flag=True, help="Print pairs of pages: their URLs and titles.")
@csv_option
@with_store
def pairs(store: Store, distance: int | None, urls: bool, as_csv: bool) -> None:
    """Find all pairs of near-duplicates in a collection.

    Prints a JSON line each, in no order. Pairs are of simhashes. With --urls they are of pages,
    present versions only: the first page of a simhash represents it, and forms a pair at distance 0
    with each other page that shares it.
    """
    from pgsimhash.cli.console import progress_bar

    more = ("a_title", "b_title", "a_simhash", "b_simhash") if urls else ()
    emit = table_printer("a", "b", "distance", *more) if as_csv else print_json
    with progress_bar("pairs", pages=False) as progress:
        if urls:
            for pair in analysis.page_pairs(store, distance, progress=progress):
                emit(pair.as_json())
            return
        for block in store.pairs(distance, progress=progress):
            for low, high, bits in zip(
                block.low.tolist(), block.high.tolist(), block.distances.tolist(), strict=True
            ):
                emit({"a": format_simhash(low), "b": format_simhash(high), "distance": bits})


@analyse.command()
@distance_option("the collection's")
@cluster_options
@click.option(
    "--save",
    is_flag=True,
    help="Replace the collection's rows of the table clusters instead of printing.",
)
@parquet_option("the pages of clusters to this file instead of stdout")
@csv_option
@store_options
def clusters(
    distance: int | None,
    linkage: Linkage,
    canonical: tuple[str, ...],
    save: bool,
    parquet: str | None,
    as_csv: bool,
    collection: str,
    dsn: str | None,
) -> None:
    """Group the near-duplicates of a collection.

    Prints a JSON line for each cluster, or with --csv a row for each page.
    """
    from pgsimhash.cli.console import progress_bar

    if save + bool(parquet) + as_csv > 1:
        raise click.UsageError("give one of --save, --parquet and --csv")
    with (
        connect(dsn, collection=collection, create=False) as store,
        progress_bar("clusters", pages=False, prints=not save and parquet is None) as progress,
    ):
        if save:
            count = store.save_clusters(
                distance, linkage=linkage, canonical=canonical, progress=progress
            )
            print_message(f"{count:,} clusters saved")
            return
        found = store.clusters(distance, linkage=linkage, canonical=canonical, progress=progress)
        if parquet is not None:
            from pgsimhash.batch.parquet import write_clusters

            count = write_clusters(parquet, found)
            print_message(f"{count:,} clusters in {parquet}")
            return
        emit = table_printer(*_CLUSTER_COLUMNS) if as_csv else print_json
        for cluster in found:
            for row in _cluster_rows(cluster) if as_csv else [cluster.as_json()]:
                emit(row)


def _cluster_rows(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Yield the row of each page, with the problems of the cluster's canonical links."""
    from pgsimhash.analysis.canonical_links import canonical_problems

    values = cluster.as_json()
    problems = {
        problem: {page.page_id for page in pages}
        for problem, pages in canonical_problems(cluster).items()
    }
    for page, row in zip(cluster.pages, values["pages"], strict=True):
        named = [problem for problem, pages in problems.items() if page.page_id in pages]
        yield {**values, **row, "canonical_problems": " ".join(named) or None}


def _side(word: str, scheme: schemes.Scheme) -> analysis.Side:
    simhash = as_simhash(word)
    if simhash is not None:
        return analysis.Side(simhash)
    return analysis.read_side(read_file(word), scheme, file_url(word))


def _print_explanation(explanation: analysis.Explanation) -> None:
    from rich.table import Table
    from rich.text import Text

    from pgsimhash.cli.console import stderr_console

    console = stderr_console()
    for name, side in (("A", explanation.a), ("B", explanation.b)):
        labels = [text for text in (side.title, side.url) if text] or ["a simhash without a page"]
        console.print(f"{name}  {' | '.join(labels)}")
    for own, other in (("a", "b"), ("b", "a")):
        line = Text("   ")
        for block in explanation.blocks:
            for bit, opposite in zip(getattr(block, own), getattr(block, other), strict=True):
                line.append(bit, style="" if bit == opposite else "bold reverse")
            line.append(" ")
        console.print(line, soft_wrap=True)
    console.print(explanation.sentence)
    table = Table("permutation", "bits that differ", "finds the pair")
    for view in explanation.permutations:
        sees = "at no distance" if view.sees_from is None else f"from distance {view.sees_from}"
        table.add_row(view.column, str(view.differing), sees)
    console.print(table)
    for name, side in (("A", explanation.a), ("B", explanation.b)):
        if side.unseen is not None:
            console.print(f"in low-weight blocks of {name}: {side.unseen:.1%} of the words")
            for beginning in side.unseen_blocks:
                console.print(f"   {beginning}")
    if explanation.features is not None:
        _print_features(console, "A", explanation.features.only_a)
        _print_features(console, "B", explanation.features.only_b)
    if explanation.difference is not None:
        console.print("The JSON line and the HTML page of -o show how the texts differ.")


def _print_features(console: Console, name: str, only: FeatureList) -> None:
    off = ""
    if only.origin == "markdown" and only.bits_off != 0:
        far = "too short" if only.bits_off is None else f"{only.bits_off} bits off"
        off = f" (by its Markdown, which is {far})"
    shown = ", ".join(f"{feature} {weight}" for feature, weight in only.shown)
    console.print(f"only in {name}{off}: {only.count:,} features: {shown}")


def _print_versions(versions: list[analysis.Version]) -> None:
    from rich.table import Table

    from pgsimhash.cli.console import stderr_console

    table = Table("fetched", "change", "bits", "to first", "shape", "title")
    for version in versions[-_VERSIONS:]:
        figures = (version.distance, version.distance_to_first, version.structure_distance)
        table.add_row(
            version.fetched_at.isoformat(sep=" ", timespec="minutes"),
            version.change or "first",
            *("" if figure is None else str(figure) for figure in figures),
            version.title or "",
        )
    stderr_console().print(table)
    if len(versions) > _VERSIONS:
        print_message(f"(the newest {_VERSIONS} of {len(versions):,} versions)")


def _print_report(report: analysis.Report) -> None:
    from rich.filesize import decimal

    from pgsimhash.cli.console import named_figures, stderr_console

    status = report.status
    counters = [(name, f"{getattr(status, name):,}") for name in ("pages", "urls", "duplicates")]
    stderr_console().print(
        named_figures(
            [
                *counters,
                ("simhashes", f"{status.simhashes:,}"),
                ("bytes saved", decimal(status.duplicate_bytes)),
                ("bytes on disk, all collections", decimal(status.schema_bytes)),
                ("clusters", f"{report.all_clusters:,}"),
                ("duplicates in clusters", f"{report.clustered_duplicates:,}"),
            ]
        )
    )
    for cluster in report.clusters[:5]:
        print_message(f"{cluster.size:,} pages like {cluster.canonical.url}")
