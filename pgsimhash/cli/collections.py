"""Commands that list, create, change, rebuild and delete collections."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

import click

from pgsimhash import maintenance, schemes
from pgsimhash.cli.options import (
    Command,
    checked,
    confirm,
    confirmation_option,
    distance_option,
    dsn_option,
    match_options,
    scheme_option,
)
from pgsimhash.cli.printing import print_json, print_message, printable
from pgsimhash.db.schema_names import check_schema_name
from pgsimhash.pages.policies import MatchOptions
from pgsimhash.pages.records import Verdict
from pgsimhash.schemes import DEFAULT_NAME
from pgsimhash.store import connect

if TYPE_CHECKING:
    from pgsimhash.store.collection import Collection


def _markdown_option(default: str) -> Callable[[Command], Command]:
    return click.option(
        "--keep-markdown/--no-keep-markdown",
        default=None,
        help=f"Whether to store the main content of new pages as Markdown; by default {default}.",
    )


@click.group()
def collection() -> None:
    """Create, change and delete collections.

    A collection is a set of pages that are compared with one another.
    """


@collection.command("list")
@dsn_option
def list_collections(dsn: str | None) -> None:
    """List the collections, a JSON line each; `status` counts their pages."""
    from pgsimhash.db.dsn import checked_connection
    from pgsimhash.store.collection import collection_names, find_collection

    with checked_connection(dsn) as connection:
        for name in collection_names(connection):
            known = find_collection(connection, name)
            if known is not None:
                _print_collection(known)


@collection.command()
@click.argument("name")
@scheme_option(DEFAULT_NAME)
@distance_option("the scheme's: 8; short 6; blog, interop 3; at most the layout's")
@_markdown_option("not")
@click.option(
    "--normalize-urls/--no-normalize-urls",
    default=None,
    help="Whether to normalize URLs (case, default ports, fragments, tracking parameters); by "
    "default not.",
)
@dsn_option
def create(
    name: str,
    scheme: str | None,
    distance: int | None,
    keep_markdown: bool | None,
    normalize_urls: bool | None,
    dsn: str | None,
) -> None:
    """Create a collection if it does not exist.

    Prints it as a JSON line. If it exists with other settings, it is an error that names the
    command to change them. `ingest --create` creates collections too.
    """
    from pgsimhash.db.dsn import checked_connection
    from pgsimhash.store.collection import create_collection

    with checked_connection(dsn) as connection:
        created = create_collection(
            connection,
            name,
            scheme=None if scheme is None else schemes.get_scheme(scheme),
            distance=distance,
            keep_markdown=keep_markdown,
            normalize_urls=normalize_urls,
        )
    _print_collection(created)


@collection.command("set")
@click.argument("name")
@distance_option("as it is")
@_markdown_option("as before")
@dsn_option
def change(name: str, distance: int | None, keep_markdown: bool | None, dsn: str | None) -> None:
    """Change the settings of a collection.

    Existing verdicts stay; `collection rebuild` repeats them. Prints the collection as a JSON line.
    """
    if distance is None and keep_markdown is None:
        raise click.UsageError("give at least one of --distance and --keep-markdown")
    with connect(dsn, collection=name, create=False) as store:
        maintenance.change_settings(store, distance=distance, keep_markdown=keep_markdown)
        _print_collection(store.opened)


@collection.command()
@click.argument("old")
@click.argument("new")
@click.option("--swap", is_flag=True, help="Swap the names of two collections.")
@dsn_option
def rename(old: str, new: str, swap: bool, dsn: str | None) -> None:
    """Rename a collection, or swap the names of two with --swap."""
    with connect(dsn, collection=old, create=False) as store:
        maintenance.rename(store, new, swap=swap)
    print_json({"collection": new, "before": old, "swapped": swap})


@collection.command()
@click.argument("name")
@click.option(
    "--into",
    metavar="NAME",
    help="The old collection's new name, by default NAME-2; with --into-schema the new "
    "collection's, by default the same.",
)
@click.option(
    "--into-schema",
    metavar="NAME",
    callback=checked(check_schema_name),
    help="Create the new collection in this schema, which may have another layout.",
)
@scheme_option("as before; another one fingerprints the stored Markdown")
@_markdown_option("as before")
@match_options
@click.option("--replace", is_flag=True, help="Delete the old collection at the end.")
@click.option("--verdicts", is_flag=True, help="Print each new verdict.")
@dsn_option
def rebuild(
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
    """Rebuild a collection with another scheme or settings.

    All versions arrive again in a new collection, which gets the name: each gets a new verdict.
    Lookups go on, and writers are refused meanwhile. It is one transaction, so Ctrl-C leaves
    everything unchanged. --into-schema copies the collection into another schema instead.

    Prints a JSON line for each verdict with --verdicts, and a last one for the new collection. Exit
    code 1: some versions were omitted, such as those without stored Markdown.
    """
    from pgsimhash.cli.console import progress_bar

    failed = 0

    def print_verdict(verdict: Verdict) -> None:
        nonlocal failed
        failed += verdict.verdict == "failed"
        if verdicts:
            print_json(verdict.as_json())

    with (
        connect(dsn, collection=name, create=False) as store,
        progress_bar("rebuild", prints=verdicts) as progress,
    ):
        rebuilt = maintenance.rebuild(
            store,
            into,
            into_schema=into_schema,
            scheme=scheme,
            keep_markdown=keep_markdown,
            replace=replace,
            verdicts=print_verdict,
            progress=lambda _, done, total: progress(done, total),
            **options,
        )
    _print_collection(rebuilt)
    if not replace and into_schema is None:
        old = into or f"{name}-2"
        print_message(
            f"The old collection is now {old}; pgsimhash collection delete {old} deletes it."
        )
    if failed:
        print_message(f"{failed} versions were omitted; --verdicts shows why.")
        sys.exit(1)


@collection.command()
@click.argument("name")
@confirmation_option
@dsn_option
def delete(name: str, yes: bool, dsn: str | None) -> None:
    """Delete a collection and everything in it.

    That is all pages, simhashes, policies, marks and runs. Asks first, or needs --yes without a
    terminal. It is one transaction, so Ctrl-C leaves everything unchanged. Prints a JSON line with
    the number of deleted versions.
    """
    from pgsimhash.db.dsn import checked_connection
    from pgsimhash.store.collection import open_collection

    with checked_connection(dsn) as connection:
        if not yes:
            open_collection(connection, name, create=False)
            confirm(f"Delete collection {printable(name)!r} and everything in it?")
        pages = maintenance.delete_collection(connection, name)
    print_json({"collection": name, "pages": pages})


def _print_collection(collection: Collection) -> None:
    fields = dataclasses.asdict(collection)
    print_json({"collection": fields.pop("name"), **fields})
