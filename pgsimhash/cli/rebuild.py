"""Commands that rebuild and rename a collection."""

from __future__ import annotations

from typing import Unpack

import click

from pgsimhash import maintenance
from pgsimhash.cli.collections import collection_fields
from pgsimhash.cli.options import Checked, dsn_option, match_options
from pgsimhash.cli.printing import people, print_json, tell
from pgsimhash.cli.work import progress_bars
from pgsimhash.db.schema_names import check_schema_name
from pgsimhash.pages.policies import MatchOptions
from pgsimhash.pages.records import Verdict
from pgsimhash.schemes import BUILT_IN
from pgsimhash.store import connect


@click.command()
@click.argument("name")
@click.option(
    "--into",
    metavar="NAME",
    help="The old collection's new name, by default NAME-2; with --into-schema the new "
    "collection's, by default the same.",
)
@click.option(
    "--into-schema",
    type=Checked("name", check_schema_name),
    help="Create the new collection in this schema, which may have another layout.",
)
@click.option(
    "--scheme",
    type=click.Choice(BUILT_IN),
    help="The new scheme; it fingerprints the stored Markdown.",
)
@click.option(
    "--keep-markdown/--no-keep-markdown",
    default=None,
    help="Whether to store Markdown; by default as before.",
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
    into_schema: str | None,
    scheme: str | None,
    keep_markdown: bool | None,
    replace: bool,
    verdicts: bool,
    dsn: str | None,
    **options: Unpack[MatchOptions],
) -> None:
    """Rebuild a collection with another scheme or settings, or copy it into another schema.

    All versions arrive again in a new collection, which gets the name: each gets a new verdict.
    Lookups go on, and writers are refused meanwhile. It is one transaction, so Ctrl-C leaves
    everything unchanged. With --into-schema the old collection stays as it is.

    Prints a JSON line for each verdict with --verdicts, and a last one for the new collection. Exit
    code 1: some versions were omitted, such as those without stored Markdown.
    """
    failed = 0

    def told(verdict: Verdict) -> None:
        nonlocal failed
        failed += verdict.verdict == "failed"
        if verdicts:
            print_json(verdict.as_json())

    with connect(dsn, collection=name, create=False) as store, progress_bars(people()) as progress:
        rebuilt = maintenance.rebuild(
            store,
            into,
            into_schema=into_schema,
            scheme=scheme,
            keep_markdown=keep_markdown,
            replace=replace,
            verdicts=told,
            progress=progress,
            **options,
        )
    print_json(collection_fields(rebuilt))
    if not replace and into_schema is None:
        old = into or f"{name}-2"
        tell(f"The old collection is now {old}; pgsimhash collection delete {old} deletes it.")
    if failed:
        tell(f"{failed} versions were omitted; --verdicts shows why.")
        context.exit(1)


@click.command("rename")
@click.argument("old")
@click.argument("new")
@click.option("--swap", is_flag=True, help="Swap the names of two collections.")
@dsn_option
def rename(old: str, new: str, swap: bool, dsn: str | None) -> None:
    """Rename a collection, or swap the names of two with --swap."""
    with connect(dsn, collection=old, create=False) as store:
        maintenance.rename(store, new, swap=swap)
    print_json({"collection": new, "before": old, "swapped": swap})
