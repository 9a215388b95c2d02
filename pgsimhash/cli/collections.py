"""Commands that list, create, change, rebuild and delete collections."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

import click

import pgsimhash
from pgsimhash import maintenance, schemes
from pgsimhash.cli import options
from pgsimhash.cli.printing import print_json, print_message, printable
from pgsimhash.db.schema_names import check_schema_name
from pgsimhash.pages.records import Verdict
from pgsimhash.schemes import DEFAULT_NAME

if TYPE_CHECKING:
    from pgsimhash.store.collection import Collection


def _markdown_option(default: str) -> options.Option:
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
@options.dsn
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
@options.scheme(DEFAULT_NAME)
@options.distance("the scheme's: 8; short 6; blog, interop 3; at most the layout's")
@_markdown_option("not")
@click.option(
    "--normalize-urls/--no-normalize-urls",
    default=None,
    help="Whether to normalize URLs (case, default ports, fragments, tracking parameters); by "
    "default not.",
)
@options.dsn
def create(name: str, scheme: str | None, dsn: str | None, **settings: Any) -> None:
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
            **settings,
        )
    _print_collection(created)


@collection.command("set")
@click.argument("name")
@options.distance("as it is")
@_markdown_option("as before")
@options.dsn
def change(name: str, dsn: str | None, **settings: Any) -> None:
    """Change the settings of a collection.

    Existing verdicts stay; `collection rebuild` repeats them. Prints the collection as a JSON line.
    """
    if all(value is None for value in settings.values()):
        raise click.UsageError("give at least one of --distance and --keep-markdown")
    with pgsimhash.connect(dsn, collection=name, create=False) as store:
        maintenance.change_settings(store, **settings)
        _print_collection(store.opened)


@collection.command()
@click.argument("old")
@click.argument("new")
@options.flag("--swap", "Swap the names of two collections.")
@options.dsn
def rename(old: str, new: str, swap: bool, dsn: str | None) -> None:
    """Rename a collection, or swap the names of two with --swap."""
    with pgsimhash.connect(dsn, collection=old, create=False) as store:
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
    callback=options.checked(check_schema_name),
    help="Create the new collection in this schema, which may have another layout.",
)
@options.scheme("as before; another one fingerprints the stored Markdown")
@_markdown_option("as before")
@options.match
@options.flag("--replace", "Delete the old collection at the end.")
@options.flag("--verdicts", "Print each new verdict.")
@options.dsn
def rebuild(
    name: str,
    into: str | None,
    into_schema: str | None,
    replace: bool,
    verdicts: bool,
    dsn: str | None,
    **settings: Any,
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
        pgsimhash.connect(dsn, collection=name, create=False) as store,
        progress_bar("rebuild", prints=verdicts) as progress,
    ):
        rebuilt = maintenance.rebuild(
            store,
            into,
            into_schema=into_schema,
            replace=replace,
            verdicts=print_verdict,
            progress=lambda _, done, total: progress(done, total),
            **settings,
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
@options.yes
@options.dsn
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
            options.confirm(f"Delete collection {printable(name)!r} and everything in it?")
        pages = maintenance.delete_collection(connection, name)
    print_json({"collection": name, "pages": pages})


def _print_collection(collection: Collection) -> None:
    fields = dataclasses.asdict(collection)
    print_json({"collection": fields.pop("name"), **fields})
