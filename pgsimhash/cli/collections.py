"""Commands that list collections, and that delete one."""

from __future__ import annotations

import dataclasses
import sys

import click

from pgsimhash.cli.options import dsn_option
from pgsimhash.cli.printing import print_json, printable
from pgsimhash.connection import checked_connection
from pgsimhash.maintenance.dropping import delete_collection
from pgsimhash.store.collection import (
    Collection,
    collection_names,
    find_collection,
    open_collection,
)


def collection_fields(collection: Collection) -> dict[str, object]:
    """Return what is printed of a collection."""
    about = dataclasses.asdict(collection)
    return {"collection": about.pop("name"), **about}


@click.command("list")
@dsn_option
def list_collections(dsn: str | None) -> None:
    """List the collections, a JSON line each; `status` counts what they hold."""
    with checked_connection(dsn) as connection:
        for name in collection_names(connection):
            found = find_collection(connection, name)
            if found is not None:
                print_json(collection_fields(found))


@click.command("delete")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@dsn_option
def delete_one(name: str, yes: bool, dsn: str | None) -> None:
    """Delete a collection and all in it: pages, simhashes, policies, marks and runs.

    Asks first, or wants --yes where there is no terminal. All of it goes or none: after Ctrl-C
    everything is as it was. Prints a JSON line with how many versions of pages are gone.
    """
    with checked_connection(dsn) as connection:
        if not yes:
            open_collection(connection, name, create=False)
            _confirm(name)
        pages = delete_collection(connection, name)
    print_json({"collection": name, "pages": pages})


def _confirm(name: str) -> None:
    """Ask whether a collection is to go.

    Raises:
        click.UsageError: there is no terminal, or the answer is no.
    """
    if not sys.stdin.isatty():
        raise click.UsageError("this deletes pages: say --yes")
    question = f"Delete collection {printable(name)!r} and all in it?"
    if not click.confirm(question, err=True):
        raise click.UsageError("nothing was deleted")
