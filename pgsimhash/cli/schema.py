"""Commands that deploy the schema, manage its collections, and show and check what they hold."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

import pgsimhash
from pgsimhash.cli import options, people, show, terminal
from pgsimhash.db.schema_names import bound_to_schema, check_schema_name, schema_of
from pgsimhash.pages.records import Verdict, Violation
from pgsimhash.schemes import DEFAULT_NAME
from pgsimhash.search.layout import LAYOUTS

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]


@click.command()
@options.dsn
@options.flag("--sql", "Print the SQL script instead, for an empty database.")
@options.flag(
    "--no-transaction", "With --sql: without BEGIN and COMMIT, to run in your own transaction."
)
@options.value("--from since REVISION", "With --sql: upgrade a schema from REVISION.")
@options.value("--downgrade REVISION", "Go back to REVISION; base drops all tables.")
@options.yes
@options.value(
    "--layout", "The layout of a new schema; by default 22+21+21.", click.Choice(list(LAYOUTS))
)
@options.flag(
    "--citus", "Let Citus keep a new schema on one of its nodes; the DSN is the coordinator's."
)
@options.value(
    "--roles [PREFIX]",
    "Also create roles PREFIX_owner, _writer, _reader; the default PREFIX is DATABASE_SCHEMA.",
    is_flag=False,
    flag_value="",
)
def migrate(
    dsn: str | None,
    sql: bool,
    no_transaction: bool,
    since: str | None,
    downgrade: str | None,
    yes: bool,
    layout: str | None,
    citus: bool,
    roles: str | None,
) -> None:
    """Create or upgrade the schema pgsimhash.

    --schema gives it another name. Pipe the script of --sql to psql; with --from, also give the
    schema's --layout. --downgrade asks first, or needs --yes without a terminal.
    """
    # Alembic is slow to import, and only this command needs it.
    from pgsimhash.db.connections import open_connection
    from pgsimhash.db.dsn import resolve_dsn
    from pgsimhash.schema import migrate as migrations
    from pgsimhash.schema.deployed import create_roles, describe, schema_revision

    if sql and (downgrade or roles is not None):
        raise click.UsageError(
            "--sql is only for upgrades: SELECT pgsimhash.create_roles() creates the roles, and "
            "`alembic downgrade REVISION:base --sql` prints a downgrade"
        )
    if (no_transaction or since) and not sql:
        raise click.UsageError("--no-transaction and --from need --sql")
    if downgrade and (layout or citus or roles is not None):
        raise click.UsageError("--layout, --citus and --roles are only for upgrades")
    if sql:
        script = migrations.upgrade_sql(
            since=since, transaction=not no_transaction, citus=citus, layout=layout
        )
        if script:
            show.text(script)
        else:
            show.message(f"Revision {since} is the newest one: there is nothing to do.")
        return
    server = resolve_dsn(dsn)
    if not downgrade:
        migrations.upgrade(server, citus=citus, layout=layout)
    with open_connection(server) as connection, bound_to_schema(connection):
        schema, name = schema_of(connection), describe(connection)
        if downgrade:
            if not yes:
                options.confirm(
                    f"Downgrade the schema {schema} in {name} to revision "
                    f"{show.printable(downgrade)}, and delete all data in the dropped tables?"
                )
            connection.rollback()
            migrations.downgrade(server, downgrade)
        revision = schema_revision(connection) or "base"
    show.message(f"The schema {schema} is at revision {revision} in {name}.")
    if roles is not None:
        created = create_roles(server, roles or None)
        show.message(f"Its roles are {', '.join(created)}.")


@click.command()
@options.one_collection("Show this collection instead of all.")
@options.with_connection
def status(connection: Connection, collection: str | None) -> None:
    """Show what every collection holds.

    In a pipe, prints a JSON line each. "pages" counts versions, "schema_bytes" is
    the size on disk of all collections together. Counts of more than 100,000 are "estimated",
    within some per cent. `pgsimhash analyse report` adds clusters, hosts and changes.
    """
    from pgsimhash.store.collection import open_collection
    from pgsimhash.store.lookups import read_status

    if collection is not None:
        # Raises the error if it does not exist.
        open_collection(connection, collection, create=False)
    collections = read_status(connection, collection)
    terminal.rows(collections, terminal.STATUS, title=people.status(collections))


@click.command()
@options.one_collection("Check this collection instead of all.")
@options.flag("--repair", "Repair the violations.")
@options.with_connection
def check(connection: Connection, collection: str | None, repair: bool) -> None:
    """Check the rows of collections and the owners of code.

    Prints a JSON line for each row that contradicts others: "reason" is a code, "repair" says how
    --repair changes the row. The same for each object that runs code of another role than the
    schema's owner, without a repair. Exits with 1 if violations were found and not repaired.
    """
    from pgsimhash.store.collection import collection_names
    from pgsimhash.store.maintenance import foreign_objects

    counts = Counter[bool]()

    def violations() -> Iterator[Violation]:
        # Once, also without a collection.
        yield from foreign_objects(connection)
        for name in [collection] if collection else collection_names(connection):
            with pgsimhash.connect(connection, collection=name, create=False) as store:
                yield from (row for row in store.check(repair=repair) if row.object is None)

    def counted() -> Iterator[Violation]:
        for violation in violations():
            counts[violation.repaired] += 1
            yield violation

    terminal.rows(counted(), terminal.VIOLATIONS)
    said = f"{counts.total()} found, {counts[True]} of them repaired."
    show.message(said if counts else "No violations were found.")
    sys.exit(bool(counts[False]))


def _markdown_option(default: str) -> options.Option:
    content = "the main content of new pages as Markdown"
    return options.switch("keep-markdown", f"Whether to store {content}; by default {default}.")


@click.group()
def collection() -> None:
    """Create, change and delete collections, which are pages compared with one another."""


@collection.command("list")
@options.with_connection
def list_collections(connection: Connection) -> None:
    """List the collections, a JSON line each; `status` counts their pages."""
    from pgsimhash.store.collection import collection_names, find_collection

    names = collection_names(connection)
    if not names:
        show.message(f"The schema {schema_of(connection)} has no collection yet.")
    found = (find_collection(connection, name) for name in names)
    terminal.rows(filter(None, found), terminal.COLLECTIONS)


@collection.command()
@click.argument("name")
@options.scheme(DEFAULT_NAME)
@options.distance("the scheme's: 8; blog, interop 3; at most the layout's")
@_markdown_option("not")
@options.switch(
    "normalize-urls",
    "Whether to normalize URLs (case, default ports, fragments, tracking parameters); by default "
    "not.",
)
@options.with_connection
def create(connection: Connection, name: str, **settings: Any) -> None:
    """Create a collection if it does not exist.

    Prints it as a JSON line. It is an error if it exists with other settings.
    """
    from pgsimhash.store.collection import open_collection

    terminal.record(open_collection(connection, name, create=True, **settings).as_json())


@collection.command("set")
@options.with_named_store("name")
@options.distance("as it is")
@_markdown_option("as before")
def change(store: pgsimhash.Store, **settings: Any) -> None:
    """Change the settings of a collection.

    Existing verdicts stay; `collection rebuild` repeats them. Prints the collection as a JSON line.
    """
    if all(value is None for value in settings.values()):
        raise click.UsageError("give at least one of --distance and --keep-markdown")
    store.change_settings(**settings)
    terminal.record(store.collection.as_json())


@collection.command()
@options.with_named_store("old")
@click.argument("new")
@options.flag("--swap", "Swap the names of two collections.")
def rename(store: pgsimhash.Store, new: str, swap: bool) -> None:
    """Rename a collection, or swap the names of two with --swap."""
    old = store.collection.name
    store.rename(new, swap=swap)
    terminal.record({"name": new, "before": old, "swapped": swap})


@collection.command()
@options.with_named_store("name")
@options.value(
    "--into NAME",
    "The old collection's new name, by default NAME-2; with --into-schema the new "
    "collection's, by default the same.",
)
@options.value(
    "--into-schema NAME",
    "Create the new collection in this schema, which may have another layout.",
    callback=options.checked(check_schema_name),
)
@options.scheme("as before; another one fingerprints the stored Markdown")
@_markdown_option("as before")
@options.match
@options.flag("--replace", "Delete the old collection at the end.")
@options.flag("--verdicts", "Print each new verdict.")
def rebuild(
    store: pgsimhash.Store,
    into: str | None,
    into_schema: str | None,
    replace: bool,
    verdicts: bool,
    **settings: Any,
) -> None:
    """Rebuild a collection with another scheme or settings.

    All versions arrive again in a new collection, which gets the name, and get new verdicts.
    Lookups go on, writers are refused meanwhile, and Ctrl-C leaves everything unchanged. No page is
    read again, so --content and --ignore are refused. Prints the new collection as a JSON line.
    Exits with 1 if some versions were omitted, such as those without stored Markdown.
    """
    failed, name = 0, store.collection.name

    def print_verdict(verdict: Verdict) -> None:
        nonlocal failed
        failed += verdict.kind == "failed"
        if verdicts:
            terminal.record(verdict.as_json())

    with show.progress_bar("rebuild", prints=verdicts) as progress:
        rebuilt = store.rebuild(
            into,
            into_schema=into_schema,
            replace=replace,
            verdicts=print_verdict,
            progress=lambda _, done, total: progress(done, total),
            **settings,
        )
    others = store.count_reread() if store.collection.selectors else 0
    terminal.record(rebuilt.as_json())
    if not replace and into_schema is None:
        old = into or f"{name}-2"
        show.message(
            f"The old collection is now {old}; pgsimhash collection delete {old} deletes it."
        )
    if others:
        show.message(
            f"{others:,} pages were read by other selectors than those of the policies; a rebuild "
            "reads Markdown, pgsimhash ingest --reread the pages."
        )
    if failed:
        show.message(f"{failed} versions were omitted; --verdicts shows why.")
        sys.exit(1)


@collection.command()
@options.with_named_store("name")
@options.yes
def delete(store: pgsimhash.Store, yes: bool) -> None:
    """Delete a collection and everything in it.

    Asks first, or needs --yes without a terminal. Ctrl-C leaves everything unchanged. Prints a JSON
    line with the number of deleted versions.
    """
    name = store.collection.name
    if not yes:
        options.confirm(f"Delete collection {show.printable(name)!r} and everything in it?")
    terminal.record({"name": name, "deleted": store.delete_collection()})
