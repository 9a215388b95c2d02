"""Commands that make a collection anew, and that rename it."""

from __future__ import annotations

from typing import Unpack

import click

from pgsimhash import maintenance
from pgsimhash.cli.collections import collection_fields
from pgsimhash.cli.layouts import layout_option
from pgsimhash.cli.matching import match_options
from pgsimhash.cli.options import dsn_option
from pgsimhash.cli.printing import people, print_json, tell
from pgsimhash.cli.work import progress_bars
from pgsimhash.matching import MatchOptions
from pgsimhash.records import Verdict
from pgsimhash.schemes.names import SHIPPED_NAMES
from pgsimhash.store import connect


@click.command()
@click.argument("name")
@click.option("--into", metavar="NAME", help="The second collection; by default NAME-2.")
@layout_option
@click.option(
    "--scheme",
    type=click.Choice(SHIPPED_NAMES),
    help="The recipe from text to simhash: votes again over the Markdown that is kept.",
)
@click.option("--rejudge", is_flag=True, help="Give verdicts anew by the present settings too.")
@click.option(
    "--keep-markdown/--no-keep-markdown",
    default=None,
    help="Whether the Markdown is kept; by default as it is.",
)
@click.option(
    "--approximate",
    is_flag=True,
    help="Go on where the scheme reads pages in another way, with simhashes of the kept text.",
)
@match_options
@click.option(
    "--then",
    type=click.Choice(["swap", "replace", "separate", "follow"]),
    default="swap",
    show_default=True,
    help="At the end: exchange the names; delete the old one too; leave both as they are; or go on "
    "following the old one until this command is run again.",
)
@click.option("--verdicts", is_flag=True, help="Print each verdict that is given anew.")
@dsn_option
@click.pass_context
def rebuild(
    context: click.Context,
    name: str,
    into: str | None,
    layout: str | None,
    scheme: str | None,
    rejudge: bool,
    keep_markdown: bool | None,
    approximate: bool,
    then: maintenance.Then,
    verdicts: bool,
    dsn: str | None,
    **options: Unpack[MatchOptions],
) -> None:
    """Make a collection anew with another layout, scheme or settings, while it is used.

    A second collection is made from it, and the two exchange their names when it is complete:
    lookups are exact and writers go on throughout. With another scheme, --rejudge or settings such
    as --distance every version gets a verdict anew. After Ctrl-C the same command goes on.

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
            rejudge=rejudge,
            keep_markdown=keep_markdown,
            approximate=approximate,
            then=then,
            verdicts=told,
            progress=progress,
            **options,
        )
    print_json(collection_fields(made))
    if then == "swap":
        old = into or f"{name}-2"
        tell(f"The old one is called {old} now; pgsimhash collection delete {old} deletes it.")
    if failed:
        tell(f"{failed} versions have no place in it; --verdicts says why.")
        context.exit(1)


@click.command("rename")
@click.argument("old")
@click.argument("new")
@click.option("--swap", is_flag=True, help="Let the two exchange their names.")
@dsn_option
def rename(old: str, new: str, swap: bool, dsn: str | None) -> None:
    """Give a collection another name, or with --swap exchange two names."""
    with connect(dsn, collection=old, create=False) as store:
        maintenance.rename(store, new, swap=swap)
    print_json({"collection": new, "before": old, "swapped": swap})
