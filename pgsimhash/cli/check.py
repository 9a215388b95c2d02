"""The command that checks collections."""

from __future__ import annotations

import click

from pgsimhash import maintenance
from pgsimhash.cli import database
from pgsimhash.cli.completion import CollectionName
from pgsimhash.cli.options import dsn_option
from pgsimhash.cli.printing import print_json, tell
from pgsimhash.store import connect


@click.command()
@click.option("--collection", type=CollectionName(), help="Check this collection instead of all.")
@click.option("--repair", is_flag=True, help="Repair the violations.")
@dsn_option
@click.pass_context
def check(context: click.Context, collection: str | None, repair: bool, dsn: str | None) -> None:
    """Check the rows of collections, and repair them with --repair.

    Prints a JSON line for each row that contradicts others: "reason" is a code, "repair" says how
    --repair changes the row. Writers can continue meanwhile.

    Exit code 1: violations were found and not repaired.
    """
    count = 0
    with database.checked_connection(dsn) as connection:
        names = [collection] if collection else database.collection_names(connection)
        for name in names:
            with connect(connection, collection=name, create=False) as store:
                for violation in maintenance.check(store, repair=repair):
                    print_json(violation.as_json())
                    count += 1
    tell(
        f"{count} found{', all repaired' if repair else ''}."
        if count
        else "No violations were found."
    )
    if count and not repair:
        context.exit(1)
