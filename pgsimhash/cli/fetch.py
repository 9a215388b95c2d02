"""The command that shows which pages to fetch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from pgsimhash import analysis
from pgsimhash.cli.options import collection_option, dsn_option, stdin_bytes
from pgsimhash.cli.printing import print_json, tell
from pgsimhash.errors import PageError
from pgsimhash.pages.urls import check_url
from pgsimhash.store import connect


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
