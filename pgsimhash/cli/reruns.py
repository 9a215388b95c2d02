"""Commands that go through a collection again, and the one that renames it."""

from __future__ import annotations

from typing import Unpack

import click

from pgsimhash import maintenance
from pgsimhash.cli.layouts import layout_option
from pgsimhash.cli.options import collection_option, dsn_option
from pgsimhash.cli.printing import people, print_json
from pgsimhash.cli.summary import print_verdicts
from pgsimhash.cli.terms import stored_terms_options, terms_options
from pgsimhash.cli.work import progress_bar, summary_option
from pgsimhash.schemes import scheme_names
from pgsimhash.store import connect
from pgsimhash.terms import Options


@click.command()
@collection_option
@click.option("--into", metavar="NAME", required=True, help="The collection to make.")
@click.option(
    "--scheme",
    type=click.Choice(scheme_names()),
    required=True,
    help="The recipe from text to simhash.",
)
@layout_option
@click.option(
    "--keep-markdown/--no-keep-markdown",
    default=True,
    show_default=True,
    help="Whether the collection that is made keeps the Markdown too.",
)
@click.option(
    "--approximate",
    is_flag=True,
    help="Go on where the scheme reads pages in another way, with simhashes of the kept text.",
)
@terms_options
@summary_option
@dsn_option
@click.pass_context
def refingerprint(
    context: click.Context,
    collection: str,
    into: str,
    scheme: str,
    layout: str | None,
    keep_markdown: bool,
    approximate: bool,
    summary: bool | None,
    dsn: str | None,
    **terms: Unpack[Options],
) -> None:
    """Make a collection of another scheme from the Markdown that one keeps.

    Prints a verdict for each version as a JSON line. After Ctrl-C the same command goes on, and
    later it takes what came since. Then `pgsimhash collection rename` gives it the old name.
    """
    console = people()
    with (
        connect(dsn, collection=collection, create=False) as store,
        progress_bar(console, "refingerprint") as progress,
    ):
        verdicts = maintenance.refingerprint(
            store,
            into,
            scheme,
            layout=layout,
            keep_markdown=keep_markdown,
            approximate=approximate,
            progress=progress,
            **terms,
        )
        code = print_verdicts(verdicts, console, summary)
    context.exit(code)


@click.command()
@click.option("--save", is_flag=True, help="Store the verdicts in place of the ones there are.")
@stored_terms_options
@summary_option
@collection_option
@dsn_option
@click.pass_context
def rejudge(
    context: click.Context,
    save: bool,
    summary: bool | None,
    collection: str,
    dsn: str | None,
    **terms: Unpack[Options],
) -> None:
    """Give every stored version a verdict anew, on other terms.

    As if all came again in the same order; no page is read. Prints a JSON line for each version.
    With --save reports follow the new verdicts, and after Ctrl-C the same command goes on.
    """
    console = people()
    with (
        connect(dsn, collection=collection, create=False) as store,
        progress_bar(console, "rejudge") as progress,
    ):
        code = print_verdicts(
            maintenance.rejudge(store, save=save, progress=progress, **terms),
            console,
            summary,
            stopped="Stopped. What was printed is stored; run again to continue."
            if save
            else "Stopped. Nothing was stored.",
        )
    context.exit(code)


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
