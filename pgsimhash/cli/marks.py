"""The command that sets, lists and removes marks."""

from __future__ import annotations

from typing import Literal

import click

from pgsimhash import maintenance
from pgsimhash.cli.options import collection_option, dsn_option
from pgsimhash.cli.printing import people, print_json
from pgsimhash.store import connect


@click.command()
@click.argument("urls", metavar="[URL URL]", nargs=-1)
@click.option("--same", "said", flag_value="same", help="Must-link: they are duplicates.")
@click.option(
    "--different", "said", flag_value="different", help="Cannot-link: they are not duplicates."
)
@click.option("--remove", "said", flag_value="remove", help="Remove the mark.")
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
    """Mark two pages as the same or as different; without URLs list the marks.

    The URLs must be known. A mark overrides simhashes in later verdicts and in clusters, also for
    new versions of the pages. Exits with 1 if there is no mark to remove.
    """
    if len(urls) not in (0, 2) or (said is None) != (not urls):
        raise click.UsageError("give two URLs with --same, --different or --remove, or no URL")
    with connect(dsn, collection=collection, create=False) as store:
        if said is None:
            for mark_ in maintenance.marks(store):
                print_json(mark_.as_json())
        elif said != "remove":
            maintenance.mark(store, *urls, same=said == "same")
            people().print(f"Marked as {said}.")
        elif maintenance.unmark(store, *urls):
            people().print("Taken back.")
        else:
            people().print("These two had no mark.")
            context.exit(1)
