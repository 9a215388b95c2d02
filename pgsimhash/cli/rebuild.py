"""Commands that rebuild a collection, and that rename it."""

from __future__ import annotations

from typing import Unpack

import click

from pgsimhash import maintenance
from pgsimhash.cli.collections import collection_fields
from pgsimhash.cli.completion import CollectionName
from pgsimhash.cli.layouts import layout_option
from pgsimhash.cli.matching import match_options
from pgsimhash.cli.options import dsn_option
from pgsimhash.cli.printing import people, print_json, tell
from pgsimhash.cli.work import progress_bars
from pgsimhash.pages.match_settings import MatchOptions
from pgsimhash.pages.records import Verdict
from pgsimhash.schemes.names import SHIPPED_NAMES
from pgsimhash.store import connect


@click.command()
@click.argument("name", type=CollectionName())
@click.option("--into", metavar="NAME", help="The second collection; by default NAME-2.")
@layout_option
@click.option(
    "--scheme",
    type=click.Choice(SHIPPED_NAMES),
    help="The recipe from text to simhash: votes again over the Markdown that is kept.",
)
@click.option("--reevaluate", is_flag=True, help="Re-evaluate all pages by the current settings.")
@click.option(
    "--keep-markdown/--no-keep-markdown",
    default=None,
    help="Whether the Markdown is kept; by default as before.",
)
@match_options
@click.option("--replace", is_flag=True, help="Delete the old collection at the end.")
@click.option("--verdicts", is_flag=True, help="Print each new verdict.")
@dsn_option
@click.pass_context
def rebuild(
    context: click.Context,
    name: str,
    into: str | None,
    layout: str | None,
    scheme: str | None,
    reevaluate: bool,
    keep_markdown: bool | None,
    replace: bool,
    verdicts: bool,
    dsn: str | None,
    **options: Unpack[MatchOptions],
) -> None:
    """Rebuild a collection with another layout, scheme or settings, while it is used.

    A second collection is made from it, and the two exchange their names when it is complete:
    lookups stay exact and writers go on. With another scheme, --reevaluate or settings such
    as --distance every version gets a new verdict. After Ctrl-C the same command goes on.

    Prints the new collection as a JSON line, after a line for each verdict with --verdicts. Exit
    code 1: some versions have no place in it, such as those of which no Markdown is kept.
    """
    failed = 0

    def told(verdict: Verdict) -> None:
        nonlocal failed
        failed += verdict.verdict == "failed"
        if verdicts:
            print_json(verdict.as_json())

    with (
        connect(dsn, collection=name, create=False) as store,
        progress_bars(people()) as progress,
    ):
        made = maintenance.rebuild(
            store,
            into,
            layout=layout,
            scheme=scheme,
            reevaluate=reevaluate,
            keep_markdown=keep_markdown,
            replace=replace,
            verdicts=told,
            progress=progress,
            **options,
        )
    print_json(collection_fields(made))
    if not replace:
        old = into or f"{name}-2"
        tell(f"The old one is called {old} now; pgsimhash collection delete {old} deletes it.")
    if failed:
        tell(f"{failed} versions have no place in it; --verdicts says why.")
        context.exit(1)


@click.command("rename")
@click.argument("old", type=CollectionName())
@click.argument("new")
@click.option("--swap", is_flag=True, help="Let the two exchange their names.")
@dsn_option
def rename(old: str, new: str, swap: bool, dsn: str | None) -> None:
    """Give a collection another name, or with --swap exchange two names."""
    with connect(dsn, collection=old, create=False) as store:
        maintenance.rename(store, new, swap=swap)
    print_json({"collection": new, "before": old, "swapped": swap})
