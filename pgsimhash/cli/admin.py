"""Commands that show what is stored, check and mark it, and deploy the schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import click

from pgsimhash import maintenance
from pgsimhash.cli import database, drawn
from pgsimhash.cli.options import LAYOUT, collection_option, confirm, dsn_option, yes_option
from pgsimhash.cli.printing import people, print_json, print_text, printable, tell
from pgsimhash.db.schema_names import bound_to_schema, schema_of
from pgsimhash.pages.records import CollectionStatus
from pgsimhash.store import connect

if TYPE_CHECKING:
    import psycopg


@click.command()
@dsn_option
@click.option("--sql", is_flag=True, help="Print the SQL script instead, for an empty database.")
@click.option(
    "--no-transaction",
    is_flag=True,
    help="With --sql: without BEGIN and COMMIT, to run in your own transaction.",
)
@click.option("--downgrade", metavar="REVISION", help="Go back to REVISION; base drops all tables.")
@yes_option
@click.option(
    "--layout",
    type=LAYOUT,
    help="The layout of a new schema; by default 22+21+21.",
)
@click.option(
    "--citus",
    is_flag=True,
    help="Let Citus keep a new schema on one of its nodes; the DSN is the coordinator's.",
)
@click.option(
    "--roles",
    metavar="[PREFIX]",
    is_flag=False,
    flag_value="",
    help="Also create roles PREFIX_owner, _writer, _reader; the default PREFIX is DATABASE_SCHEMA.",
)
def migrate(
    dsn: str | None,
    sql: bool,
    no_transaction: bool,
    downgrade: str | None,
    yes: bool,
    layout: str | None,
    citus: bool,
    roles: str | None,
) -> None:
    """Create or upgrade the schema pgsimhash.

    --dsn embedded names the embedded server, and --schema gives the schema another name. --sql
    changes nothing: pipe the script to psql.

    --downgrade asks first, or needs --yes without a terminal.
    """
    # Alembic is slow to import, and only this command needs it.
    from pgsimhash.db import migrate as migrations

    if sql and (downgrade or roles is not None):
        raise click.UsageError("--sql is only for upgrades, without --roles")
    if no_transaction and not sql:
        raise click.UsageError("--no-transaction needs --sql")
    if downgrade and (layout or citus or roles is not None):
        raise click.UsageError("--layout, --citus and --roles are only for upgrades")
    if yes and not downgrade:
        raise click.UsageError("--yes needs --downgrade")
    if sql:
        script = migrations.upgrade_sql(transaction=not no_transaction, citus=citus, layout=layout)
        print_text(script)
        return
    if database.configured_dsn(dsn) is None:
        raise click.UsageError(
            f"name the database in --dsn or {database.DSN_VARIABLE}; --dsn {database.EMBEDDED} is "
            "the embedded server, which is migrated automatically when it is first used"
        )
    where = database.resolve_dsn(dsn)
    if downgrade:
        if not yes:
            _confirm_downgrade(where, downgrade)
        migrations.downgrade(where, downgrade)
    else:
        migrations.upgrade(where, citus=citus, layout=layout)
    with (
        database.open_connection(where) as connection,
        bound_to_schema(connection),
    ):
        name = database.describe(connection)
        revision = database.schema_revision(connection)
    done = f"The schema {schema_of(connection)} is at revision {revision or 'base'} in {name}."
    people().print(done, soft_wrap=True)
    if roles is not None:
        created_roles = migrations.create_roles(where, roles or None)
        people().print(f"Its roles are {', '.join(created_roles)}.", soft_wrap=True)


def _confirm_downgrade(where: str, revision: str) -> None:
    with database.open_connection(where) as connection, bound_to_schema(connection):
        schema, name = schema_of(connection), database.describe(connection)
    confirm(
        f"Downgrade the schema {schema} in {name} to revision {printable(revision)}, and delete "
        "all data in the dropped tables?"
    )


@click.command()
@click.option("--collection", help="Show this collection instead of all.")
@dsn_option
def status(collection: str | None, dsn: str | None) -> None:
    """Show what every collection holds: a JSON line each, and a table on a terminal.

    It counts versions ("pages"), URLs, simhashes and duplicates, with the share and bytes of the
    duplicates, and the time and age of the last write. "schema_bytes" is the size on disk of all
    collections together. `pgsimhash analyse report` adds clusters, distances, hosts and changes.

    The counts of more than 100,000 pages or simhashes are "estimated", within some per cent.
    """
    with database.checked_connection(dsn) as connection:
        if collection is not None:
            # Raises the error if it does not exist.
            database.open_collection(connection, collection, create=False)
        shown = database.read_status(connection, collection)
    for counters in shown:
        print_json(counters.as_json())
    console = people()
    if console.is_terminal:
        console.print(_table(shown))
        for size in {row.schema_bytes for row in shown}:
            console.print(f"{drawn.decimal(size)} on disk with all collections and indexes")


def _table(collections: Iterable[CollectionStatus]) -> drawn.Table:
    table = drawn.Table(
        "collection", "scheme", "pages", "URLs", "simhashes", "duplicates", "last write"
    )
    for row in collections:
        counts = row.pages, row.urls, row.simhashes, row.duplicates
        figures = [_shown_count(count, row.estimated) for count in counts]
        share = "" if row.duplicate_percent is None else f" ({row.duplicate_percent:g} %)"
        table.add_row(
            row.collection,
            row.scheme,
            *figures[:-1],
            f"{figures[-1]}{share}",
            "-" if row.last_write_age is None else f"{_shown_age(row.last_write_age)} ago",
        )
    return table


def _shown_count(count: int, estimated: bool) -> str:
    return f"about {float(f'{count:.3g}'):,.0f}" if estimated else f"{count:,}"


def _shown_age(age: timedelta) -> str:
    seconds = int(age.total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


@click.command()
@click.option("--collection", help="Check this collection instead of all.")
@click.option("--repair", is_flag=True, help="Repair the violations.")
@dsn_option
@click.pass_context
def check(context: click.Context, collection: str | None, repair: bool, dsn: str | None) -> None:
    """Check the rows of collections and the owners of code; repair rows with --repair.

    Prints a JSON line for each row that contradicts others: "reason" is a code, "repair" says how
    --repair changes the row. The same for each object that runs code of another role than the
    schema's owner, without a repair. Writers can continue meanwhile.

    Exit code 1: violations were found and not repaired.
    """
    count = repaired = 0
    with database.checked_connection(dsn) as connection:
        for violation in _violations(connection, collection, repair=repair):
            print_json(violation.as_json())
            count += 1
            repaired += violation.repaired
    tell(f"{count} found, {repaired} of them repaired." if count else "No violations were found.")
    if repaired < count:
        context.exit(1)


def _violations(
    connection: psycopg.Connection[Any], collection: str | None, *, repair: bool
) -> Iterator[maintenance.Violation]:
    """Yield the objects of other roles once, also without a collection, then rows."""
    # It loads psycopg, which `--help` does not need.
    from pgsimhash.maintenance.checking import foreign_objects

    yield from foreign_objects(connection)
    for name in [collection] if collection else database.collection_names(connection):
        with connect(connection, collection=name, create=False) as store:
            for violation in maintenance.check(store, repair=repair):
                if violation.object is None:
                    yield violation


@click.command()
@click.argument("urls", metavar="[URL URL]", nargs=-1)
@click.option("--same", "said", flag_value="same", help="Must-link: they are duplicates.")
@click.option(
    "--different", "said", flag_value="different", help="Cannot-link: they are not duplicates."
)
@click.option("--remove", "said", flag_value="remove", help="Remove the mark.")
@collection_option
@dsn_option
@click.pass_context
def mark(
    context: click.Context,
    urls: tuple[str, ...],
    said: Literal["same", "different", "remove"] | None,
    collection: str,
    dsn: str | None,
) -> None:
    """Mark two pages as the same or as different; without URLs list the marks.

    The URLs must be known. Both pages are decided again at once. A mark overrides simhashes in
    their later verdicts and in clusters too. Exits with 1 if there is no mark to remove.
    """
    if len(urls) not in (0, 2) or (said is None) != (not urls):
        raise click.UsageError("give two URLs with --same, --different or --remove, or no URL")
    with connect(dsn, collection=collection, create=False) as store:
        if said is None:
            for mark_ in maintenance.marks(store):
                print_json(mark_.as_json())
        elif said != "remove":
            maintenance.mark(store, *urls, same=said == "same")
            people().print(f"Marked as {said}.")
        elif maintenance.unmark(store, *urls):
            people().print("Taken back.")
        else:
            people().print("These two had no mark.")
            context.exit(1)
