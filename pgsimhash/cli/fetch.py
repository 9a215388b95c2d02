"""What to fetch: pages that are not known, or due again."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import click

from pgsimhash import analysis
from pgsimhash.cli.options import collection_option, dsn_option
from pgsimhash.cli.printing import print_json
from pgsimhash.store import connect


@click.command("should-fetch")
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@collection_option
@dsn_option
@click.pass_context
def should_fetch(
    context: click.Context, urls: tuple[str, ...], collection: str, dsn: str | None
) -> None:
    """Say which pages to fetch: those not known, and those due again.

    URL - reads URLs from stdin, one on each line. Prints a JSON line for each, in their order, with
    "fetch" and, where the page is known, "recrawl": what `pgsimhash analyse history` says of it.
    Exits with 1 if none is to be fetched.
    """
    wanted = 0
    with connect(dsn, collection=collection, create=False) as store:
        for url in _lines(urls):
            advice = analysis.advise_fetch(store, url)
            wanted += advice.fetch
            print_json(advice.as_json())
    context.exit(0 if wanted else 1)


def _lines(urls: Iterable[str]) -> Iterator[str]:
    for url in urls:
        if url != "-":
            yield url
            continue
        for line in sys.stdin:
            if line.strip():
                yield line.strip()
