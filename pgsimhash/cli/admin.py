"""Commands about the database itself."""

from __future__ import annotations

import dataclasses

import click
from rich.table import Table

from pgsimhash.cli.options import dsn_option, people, print_json
from pgsimhash.connection import (
    check_schema,
    open_connection,
    resolve_dsn,
    schema_revision,
    translated_errors,
)
from pgsimhash.layout import LAYOUTS, get_layout
from pgsimhash.store.layouts import set_default_layout
from pgsimhash.store.status import read_status


@click.command()
@dsn_option
@click.option("--sql", is_flag=True, help="Print the SQL script instead, for an empty database.")
@click.option("--downgrade", metavar="REVISION", help="Go back to REVISION; base drops all tables.")
@click.option(
    "--layout",
    type=click.Choice(list(LAYOUTS)),
    help="Also let new collections have this layout; pgsimhash plan compares them.",
)
def migrate(dsn: str | None, sql: bool, downgrade: str | None, layout: str | None) -> None:
    """Create or upgrade the schema pgsimhash.

    The same as `alembic upgrade head` in a checkout. With --sql nothing is changed: pipe the
    script to psql.
    """
    # Alembic takes a while to import, and only this command needs it.
    from pgsimhash import migrate as migrations

    if sql and (downgrade or layout):
        raise click.UsageError("--sql goes with a plain upgrade only")
    if downgrade and layout:
        raise click.UsageError("--layout goes with an upgrade only")
    if sql:
        click.echo(migrations.upgrade_sql(), nl=False)
        return
    where = resolve_dsn(dsn)
    if downgrade:
        migrations.downgrade(where, downgrade)
    else:
        migrations.upgrade(where)
    with open_connection(where) as connection:
        revision = schema_revision(connection)
        if layout is not None:
            with translated_errors(connection):
                set_default_layout(connection, get_layout(layout))
    people().print(f"The schema pgsimhash is at revision {revision or 'base'}.")


@click.command()
@dsn_option
def status(dsn: str | None) -> None:
    """Show what every collection holds: a JSON line each, and a table on a terminal."""
    with (
        open_connection(resolve_dsn(dsn), autocommit=True) as connection,
        translated_errors(connection),
    ):
        check_schema(connection)
        collections = read_status(connection)
    for collection in collections:
        print_json(dataclasses.asdict(collection))
    console = people()
    if console.is_terminal:
        table = Table("collection", "scheme", "pages", "URLs", "simhashes", "duplicates")
        for row in collections:
            figures = (row.pages, row.urls, row.simhashes, row.duplicates)
            table.add_row(row.collection, row.scheme, *(f"{figure:,}" for figure in figures))
        console.print(table)
