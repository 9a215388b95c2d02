"""Commands that show how a page changed over time, and which pages to fetch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

import click

from pgsimhash import analysis
from pgsimhash.cli import drawn
from pgsimhash.cli.options import as_age, collection_option, dsn_option, stdin_bytes
from pgsimhash.cli.printing import people, print_json, tell
from pgsimhash.cli.work import summary_option
from pgsimhash.errors import PageError
from pgsimhash.pages.urls import check_url
from pgsimhash.store import connect

_SHOWN = 50


@click.command()
@click.argument("url")
@summary_option
@collection_option
@dsn_option
def history(url: str, summary: bool | None, collection: str, dsn: str | None) -> None:
    """Show how a page changed over time.

    Prints a JSON line for each version, in order of arrival. Exits with 1 if the page is unknown.

    A change is "same" if the text is the same, "edited" for a different text at 0 to 8 bits,
    "rewritten" at 9 or more, and "redesign" for a different template at up to 8. For versions
    without a text digest, 0 to 3 bits count as the same text. An unchanged page adds no version;
    "seen_at" is when a version was last seen.
    """
    with connect(dsn, collection=collection, create=False) as store:
        versions = analysis.versions(store, url, markdown=False)
    for version in versions:
        print_json(version.as_json())
    console = people()
    if console.is_terminal if summary is None else summary:
        _print(console, versions)


def _print(console: drawn.Console, versions: list[analysis.Version]) -> None:
    table = drawn.Table("fetched", "change", "bits", "to first", "shape", "title")
    for version in versions[-_SHOWN:]:
        figures = (version.distance, version.distance_to_first, version.structure_distance)
        table.add_row(
            version.fetched_at.isoformat(sep=" ", timespec="minutes"),
            version.change or "first",
            *("" if figure is None else str(figure) for figure in figures),
            version.title or "",
        )
    console.print(table)
    if len(versions) > _SHOWN:
        console.print(f"(the newest {_SHOWN} of {len(versions):,} versions)")


@click.command("should-fetch")
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option(
    "--older-than",
    metavar="AGE",
    callback=as_age,
    help="Fetch a known page that was last seen longer ago, such as 30d; by default the "
    "--refetch-after of its policy.",
)
@collection_option
@dsn_option
@click.pass_context
def should_fetch(
    context: click.Context,
    urls: tuple[str, ...],
    older_than: timedelta | None,
    collection: str,
    dsn: str | None,
) -> None:
    """Show which pages to fetch: unknown pages, and pages that were last seen too long ago.

    URL - reads URLs from stdin, one per line. Prints a JSON line with "fetch" for each, in order.
    Exits with 1 if no page needs fetching, or a URL is invalid, which is reported on stderr.
    """
    fetched = failed = 0
    if "-" in urls:
        stdin_bytes()
    with connect(dsn, collection=collection, create=False) as store:
        for url in _each(urls):
            try:
                checked = check_url(url.decode() if isinstance(url, bytes) else url)
            except (PageError, UnicodeDecodeError) as error:
                failed += 1
                is_text = isinstance(error, PageError)
                tell(str(error) if is_text else f"{url!r:.80} is not in UTF-8")
                continue
            fetch = store.should_fetch(checked, older_than=older_than)
            fetched += fetch
            print_json({"url": checked, "fetch": fetch})
    context.exit(0 if fetched and not failed else 1)


def _each(urls: Iterable[str]) -> Iterator[str | bytes]:
    for url in urls:
        if url == "-":
            yield from filter(None, map(bytes.strip, stdin_bytes()))
        else:
            yield url
