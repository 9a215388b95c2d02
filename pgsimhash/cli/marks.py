"""The command for what people say about pairs of pages."""

from __future__ import annotations

from typing import Literal

import click

from pgsimhash import maintenance
from pgsimhash.cli.options import collection_option, dsn_option
from pgsimhash.cli.printing import people, print_json
from pgsimhash.store import connect


@click.command()
@click.argument("urls", metavar="[URL URL]", nargs=-1)
@click.option("--same", "said", flag_value="same", help="They are the same.")
@click.option("--different", "said", flag_value="different", help="They are not.")
@click.option("--remove", "said", flag_value="remove", help="Take back what was said.")
@collection_option
@dsn_option
@click.pass_context
def mark(
    context: click.Context,
    urls: tuple[str, ...],
    said: Literal["same", "different", "remove"] | None,
    collection: str,
    dsn: str | None,
) -> None:
    """Say of two pages that they are the same, or different; without URLs list what was said.

    The URLs are known. It overrides what their simhashes say, in verdicts and clusters from now
    on, and holds for new versions of the pages. Exits with 1 if there is nothing to take back.
    """
    if len(urls) not in (0, 2) or (said is None) != (not urls):
        raise click.UsageError("give two URLs and --same, --different or --remove; or nothing")
    with connect(dsn, collection=collection, create=False) as store:
        if said is None:
            for one in maintenance.marks(store):
                print_json(one.as_json())
        elif said != "remove":
            maintenance.mark(store, *urls, same=said == "same")
            people().print(f"Marked as {said}.")
        elif maintenance.unmark(store, *urls):
            people().print("Taken back.")
        else:
            people().print("Nothing was said about these two.")
            context.exit(1)
