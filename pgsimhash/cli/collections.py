"""Commands that list, change and delete collections."""

from __future__ import annotations

import dataclasses

import click

from pgsimhash import maintenance, schemes
from pgsimhash.cli import database
from pgsimhash.cli.options import (
    confirm,
    distance_option,
    dsn_option,
    scheme_option,
    yes_option,
)
from pgsimhash.cli.printing import print_json, printable
from pgsimhash.schemes import DEFAULT_NAME
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.store import connect


def collection_fields(collection: database.Collection) -> dict[str, object]:
    """Return the printed fields of a collection."""
    about = dataclasses.asdict(collection)
    return {"collection": about.pop("name"), **about}


@click.command("list")
@dsn_option
def list_collections(dsn: str | None) -> None:
    """List the collections, a JSON line each; `status` counts their pages."""
    with database.checked_connection(dsn) as connection:
        for name in database.collection_names(connection):
            collection = database.find_collection(connection, name)
            if collection is not None:
                print_json(collection_fields(collection))


@click.command()
@click.argument("name")
@scheme_option(DEFAULT_NAME)
@click.option(
    "--distance",
    type=click.IntRange(0, DISTANCE_MAX),
    help="Its default distance; by default the scheme's (8; short 6; blog, interop 3), or the "
    "layout's maximum.",
)
@click.option(
    "--keep-markdown/--no-keep-markdown",
    default=None,
    help="Whether to store the main content of each page; by default not.",
)
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
    """Create a collection if it does not exist, and print it as a JSON line.

    If it exists with other settings, it is an error that names the command to change them. `ingest
    --create` creates collections too.
    """
    with database.checked_connection(dsn) as connection:
        collection = database.create_collection(
            connection,
            name,
            scheme=None if scheme is None else schemes.get_scheme(scheme),
            distance=distance,
            keep_markdown=keep_markdown,
            normalize_urls=normalize_urls,
        )
    print_json(collection_fields(collection))


@click.command("set")
@click.argument("name")
@distance_option("as it is")
@click.option(
    "--keep-markdown/--no-keep-markdown",
    default=None,
    help="Whether to store the main content of new pages.",
)
@dsn_option
def set_one(name: str, distance: int | None, keep_markdown: bool | None, dsn: str | None) -> None:
    """Change the settings of a collection.

    Existing verdicts stay; `collection rebuild` repeats them. Prints the collection as
    a JSON line.
    """
    if distance is None and keep_markdown is None:
        raise click.UsageError("give at least one of --distance and --keep-markdown")
    with connect(dsn, collection=name, create=False) as store:
        maintenance.change_settings(store, distance=distance, keep_markdown=keep_markdown)
        print_json(collection_fields(store.opened))


@click.command("delete")
@click.argument("name")
@yes_option
@dsn_option
def delete_one(name: str, yes: bool, dsn: str | None) -> None:
    """Delete a collection and everything in it: pages, simhashes, policies, marks and runs.

    Asks first, or needs --yes without a terminal. It is one transaction, so Ctrl-C leaves
    everything unchanged. Prints a JSON line with the number of deleted versions.
    """
    with database.checked_connection(dsn) as connection:
        if not yes:
            database.open_collection(connection, name, create=False)
            confirm(f"Delete collection {printable(name)!r} and everything in it?")
        pages = maintenance.delete_collection(connection, name)
    print_json({"collection": name, "pages": pages})
