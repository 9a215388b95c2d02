"""Commands that show how a page changed over time, and which pages to fetch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import click

from pgsimhash import analysis
from pgsimhash.cli import drawn
from pgsimhash.cli.options import collection_option, dsn_option, stdin_bytes
from pgsimhash.cli.printing import people, print_json, tell
from pgsimhash.cli.work import summary_option
from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.pages.recrawl import RecrawlHint, recrawl_hint
from pgsimhash.pages.times import check_time
from pgsimhash.pages.urls import check_url
from pgsimhash.sources.page import parse_time
from pgsimhash.store import connect

_SHOWN = 50


def _as_time(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> datetime | None:
    try:
        return None if value is None else check_time(parse_time(value))
    except ArgumentError as error:
        raise click.BadParameter(str(error)) from error
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{value!r} is not a time such as 2025-03-01 or 2025-03-01T12:00:00+02:00"
        ) from error


@click.command()
@click.argument("url")
@click.option(
    "--seen-at",
    metavar="TIME",
    callback=_as_time,
    help="When you last saw it unchanged, if later than the collection knows: 2025-03-01, or "
    "2025-03-01T12:00:00+02:00; UTC without a zone.",
)
@summary_option
@collection_option
@dsn_option
def history(
    url: str,
    seen_at: datetime | None,
    summary: bool | None,
    collection: str,
    dsn: str | None,
) -> None:
    """Show how a page changed over time: its versions, and when to fetch it again.

    Prints a JSON line for each version, in order of arrival, and a last one with "recrawl": the
    interval that Apache Nutch's AdaptiveFetchSchedule would compute. Exits with 1 if the page is
    unknown.

    A change is "same" if the text is the same, "edited" for a different text at 0 to 8 bits,
    "rewritten" at 9 or more, and "redesign" for a different template at up to 8. For versions
    without a text digest, 0 to 3 bits count as the same text. Every change of the text shortens the
    interval. An unchanged page adds no version; "seen_at" is when a version was last seen, which
    lengthens the interval.
    """
    with connect(dsn, collection=collection, create=False) as store:
        versions = analysis.versions(store, url, markdown=False)
    hint = recrawl_hint(versions, seen_at)
    for version in versions:
        print_json(version.as_json())
    print_json({"url": url, "recrawl": hint.as_json()})
    console = people()
    if console.is_terminal if summary is None else summary:
        _print(console, versions, hint)


def _print(console: drawn.Console, versions: list[analysis.Version], hint: RecrawlHint) -> None:
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
    console.print(
        f"Fetch it again after {hint.wait}, on {hint.due_at.isoformat(timespec='minutes')}. "
        f"Known until {hint.known_until.isoformat(timespec='minutes')}."
    )


@click.command("should-fetch")
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@collection_option
@dsn_option
@click.pass_context
def should_fetch(
    context: click.Context, urls: tuple[str, ...], collection: str, dsn: str | None
) -> None:
    """Show which pages to fetch: unknown pages, and pages that are due again.

    URL - reads URLs from stdin, one per line. Prints a JSON line for each, in order, with "fetch"
    and, for a known page, "recrawl": the hint of `pgsimhash analyse history`. Exits with 1 if no
    page needs fetching, or a URL is invalid, which is reported on stderr.
    """
    fetched = failed = 0
    if "-" in urls:
        stdin_bytes()
    with connect(dsn, collection=collection, create=False) as store:
        for url in _each(urls):
            try:
                advice = analysis.advise_fetch(store, check_url(_decoded(url)))
            except PageError as error:
                failed += 1
                tell(str(error))
                continue
            fetched += advice.fetch
            print_json(advice.as_json())
    context.exit(0 if fetched and not failed else 1)


def _each(urls: Iterable[str]) -> Iterator[str | bytes]:
    for url in urls:
        if url != "-":
            yield url
            continue
        for line in stdin_bytes():
            if line.strip():
                yield line.strip()


def _decoded(url: str | bytes) -> str:
    try:
        return url if isinstance(url, str) else url.decode()
    except UnicodeDecodeError:
        raise PageError("invalid_url", f"{url!r:.80} is not in UTF-8") from None
