"""The schema inside a project that has an Alembic history of its own.

In a revision of the project's::

    import pgsimhash.alembic

    def upgrade():
        pgsimhash.alembic.upgrade(op, revision="0001")

    def downgrade():
        pgsimhash.alembic.downgrade(op)

runs on the project's connection and in its transaction, or goes into the script that ``--sql``
prints. Which revision the schema is at is recorded in the schema itself, as ``pgsimhash migrate``
does it; the project's own ``alembic_version`` has nothing of it.

For a table of the project's own there are the operations ``op.add_simhash`` and
``op.drop_simhash``: :class:`AddSimhash`, :class:`DropSimhash`. Alembic 1.18 and later know them
wherever this package is installed, older ones once this module is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from alembic.operations import MigrateOperation, Operations
from sqlalchemy import Computed, Connection, Index, Table, inspect, text
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex, DropIndex, ExecutableDDLElement
from sqlalchemy.sql.compiler import DDLCompiler

from pgsimhash.alembic_plugin import render_item
from pgsimhash.errors import ArgumentError, StoreError
from pgsimhash.layout import DEFAULT_LAYOUT, get_layout
from pgsimhash.schema_names import configured_schema

if TYPE_CHECKING:
    from alembic.migration import MigrationContext
    from alembic.runtime.migration import RevisionStep


__all__ = ["AddSimhash", "DropSimhash", "downgrade", "include_name", "render_item", "upgrade"]


class HasContext(Protocol):
    """Alembic's ``op``, as a revision imports it, or an ``Operations`` of one's own."""

    def get_context(self) -> MigrationContext:
        """Return what the migration runs in."""


def upgrade(
    op: HasContext, revision: str = "0001", schema: str | None = None, *, since: str | None = None
) -> None:
    """Bring the schema up to ``revision``; where it is there or further, nothing happens.

    Args:
        op: Alembic's.
        revision: where to stop. A history says the same forever, so it names one.
        schema: what the schema is called; None means PGSIMHASH_SCHEMA, else ``pgsimhash``.
        since: for ``--sql``, which cannot ask: the revision that the schema is at before; None
            means that it is not there yet.

    Raises:
        ArgumentError: ``schema`` is no name that the schema can have, or the project's database is
            none of PostgreSQL.
        SchemaError: this package does not know ``revision``; or the schema, or something in it,
            belongs to a role that is neither the user, nor granted to the user, nor a superuser.
        StoreError: the connection is in no transaction (an ``autocommit_block``), in one that
            failed or in one that is read-only; or the user may not create the schema.
    """
    _migrate(op, revision, schema, since, up=True)


def downgrade(
    op: HasContext,
    revision: str = "base",
    schema: str | None = None,
    *,
    since: str | None = None,
) -> None:
    """Take the schema back to ``revision``; where it is there or less far, nothing happens.

    ``base`` leaves an empty schema.

    Args:
        op: Alembic's.
        revision: where to stop.
        schema: as for :func:`upgrade`.
        since: for ``--sql``: the revision that the schema is at before; None means the newest that
            this package knows.

    Raises:
        ArgumentError: as :func:`upgrade`.
        SchemaError: as :func:`upgrade`; or the schema is at a revision of a newer package.
        StoreError: as :func:`upgrade`.
    """
    _migrate(op, revision, schema, since, up=False)


def include_name(
    name: str | None, kind: str, parents: Mapping[str, Any], *, schema: str | None = None
) -> bool:
    """Whether autogenerate is to look at something: not where it is in the schema.

    For ``context.configure(include_name=...)`` in an ``env.py`` whose Alembic is older than 1.18,
    or that turns the plugin off.

    Args:
        name: what is found.
        kind: ``"schema"``, ``"table"``, ``"column"``, ...
        parents: where it is, as Alembic says it.
        schema: as for :func:`upgrade`.

    Raises:
        ArgumentError: ``schema`` is no name that the schema can have.
    """
    found = name if kind == "schema" else parents.get("schema_name")
    return found != configured_schema(schema)


def _migrate(
    op: HasContext, revision: str, schema: str | None, since: str | None, *, up: bool
) -> None:
    # Where the plugin is loaded, Alembic does not have these yet.
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory

    from pgsimhash import migrate

    outer = op.get_context()
    if outer.dialect.name != "postgresql":
        raise ArgumentError(
            "invalid_connection",
            f"the migration is one of a database of {outer.dialect.name}; call it where op is "
            "connected to PostgreSQL",
        )
    wanted_schema = configured_schema(schema)
    with migrate.refusals_translated():
        scripts = ScriptDirectory.from_config(migrate.config_for(wanted_schema))
        script = scripts.get_revision(revision)
        wanted = "" if script is None else script.revision
        if since is None and not up:
            since = scripts.get_current_head()

        def steps(heads: Any, _context: MigrationContext) -> Iterable[RevisionStep]:
            if up:
                return scripts._upgrade_revs(wanted, heads)
            return scripts._downgrade_revs(wanted or "base", heads)

        options = {
            "version_table": migrate.VERSION_TABLE,
            "version_table_schema": wanted_schema,
            "script": scripts,
            "fn": steps,
        }
        if outer.as_sql:
            inner = _script_context(outer, since, options)
            kept: AbstractContextManager[None] = migrate.search_path_kept_by_script(inner.execute)
        else:
            connection = outer.connection
            assert isinstance(connection, Connection)
            _check_connection(connection)
            migrate.wait_for_others(connection)
            inner = MigrationContext.configure(connection=connection, opts=options)
            kept = migrate.search_path_kept(connection)
        found = "".join(inner.get_current_heads())
        if (found >= wanted) if up else (found <= wanted):
            return
        with kept:
            migrate.run_revisions(inner, wanted_schema)
            if not up and not wanted:
                # An empty schema is nothing that the project's autogenerate could want to drop.
                table = f'"{wanted_schema}".{migrate.VERSION_TABLE}'
                inner.execute(f"DROP TABLE {table}")


def _script_context(
    outer: MigrationContext, since: str | None, options: dict[str, Any]
) -> MigrationContext:
    """Return one that writes where ``outer`` writes, without doubling percent signs."""
    from alembic.migration import MigrationContext

    return MigrationContext.configure(
        dialect_name="postgresql",
        dialect_opts={"paramstyle": "named"},
        opts={
            **options,
            "as_sql": True,
            "output_buffer": outer.output_buffer,
            "starting_rev": since,
        },
    )


_MARKED: Final = text("SELECT pg_catalog.set_config('pgsimhash.in_transaction', 'yes', true)")

_STATE: Final = text(
    "SELECT pg_catalog.current_setting('pgsimhash.in_transaction', true) = 'yes', "
    "pg_catalog.current_setting('transaction_read_only')"
)


def _check_connection(connection: Connection) -> None:
    connection.execute(_MARKED)
    in_transaction, read_only = connection.execute(_STATE).one()
    if not in_transaction:
        raise StoreError(
            "no_transaction",
            "the schema is migrated in a transaction, as a whole or not at all, and the connection "
            "is in none; call it outside of op.get_context().autocommit_block(), and without "
            "isolation_level AUTOCOMMIT",
        )
    if read_only == "on":
        raise StoreError(
            "read_only",
            "the database is read-only here, and a migration writes; connect to the primary server",
        )


@dataclass
class _SimhashOperation(MigrateOperation):
    table: str
    column: str
    layout: str
    schema: str | None
    concurrently: bool
    nullable: bool = True

    def __post_init__(self) -> None:
        self.layout = get_layout(self.layout).name


@Operations.register_operation("add_simhash")
class AddSimhash(_SimhashOperation):
    """A column for simhashes in a table of the project's own, with what a search goes by."""

    @classmethod
    def add_simhash(
        cls,
        operations: Operations,
        table: str,
        column: str = "simhash",
        layout: str = DEFAULT_LAYOUT.name,
        schema: str | None = None,
        *,
        nullable: bool = True,
        concurrently: bool = False,
    ) -> None:
        """Add what :func:`pgsimhash.sqlalchemy.simhash_columns` lists: columns, then indexes.

        The columns come by one ALTER TABLE, which writes the table anew once.

        Args:
            operations: Alembic's ``op``.
            table: the project's table.
            column: the name of the column for the simhash.
            layout: how its 64 bits are cut.
            schema: the one that the table is in; None means the first of the search_path.
            nullable: whether rows may be without a simhash; they have to, where there are any.
            concurrently: build the indexes beside writers. That ends the transaction, so after a
                failure the columns stay; run again, it drops the invalid index and goes on.

        Raises:
            ArgumentError: no layout has the name, or it would take too many columns.
            StoreError: with ``concurrently``: the project's env.py holds a transaction that
                Alembic cannot end, an index was not built, or the table has other columns with
                these names.
        """
        operations.invoke(cls(table, column, layout, schema, concurrently, nullable))

    def reverse(self) -> MigrateOperation:
        """Return what takes it back."""
        return DropSimhash(self.table, self.column, self.layout, self.schema, self.concurrently)


@Operations.register_operation("drop_simhash")
class DropSimhash(_SimhashOperation):
    """The opposite: the columns go, and their indexes with them."""

    @classmethod
    def drop_simhash(
        cls,
        operations: Operations,
        table: str,
        column: str = "simhash",
        layout: str = DEFAULT_LAYOUT.name,
        schema: str | None = None,
        *,
        concurrently: bool = False,
    ) -> None:
        """Drop what :meth:`AddSimhash.add_simhash` adds; arguments as there.

        With ``concurrently`` the indexes go first, beside readers and writers.

        Raises:
            ArgumentError: no layout has the name, or it would take too many columns.
            StoreError: with ``concurrently``: the project's env.py holds a transaction that
                Alembic cannot end.
        """
        operations.invoke(cls(table, column, layout, schema, concurrently))

    def reverse(self) -> MigrateOperation:
        """Return what takes it back."""
        return AddSimhash(self.table, self.column, self.layout, self.schema, self.concurrently)


@Operations.implementation_for(AddSimhash)
def _add(operations: Operations, wanted: AddSimhash) -> None:
    context, table = operations.get_context(), _table_of(operations, wanted)
    if not wanted.concurrently:
        context.impl.execute(_AlterTable(table, "ADD COLUMN"))
        for index in _indexes(table):
            context.impl.create_index(index)
        return
    _check_can_commit(context)
    if context.as_sql:
        context.impl.execute(_AlterTable(table, "ADD COLUMN IF NOT EXISTS"))
    elif not _has_columns(context, table, wanted):
        context.impl.execute(_AlterTable(table, "ADD COLUMN"))
    with context.autocommit_block():
        for index in _indexes(table):
            valid = None if context.as_sql else _is_valid(context, index)
            if valid:
                continue
            if context.as_sql or valid is False:
                context.impl.execute(_concurrent(DropIndex(index, if_exists=True), index))
            try:
                context.impl.execute(_concurrent(CreateIndex(index), index))
            except DBAPIError as error:
                raise StoreError(
                    "gave_up",
                    f"the index {index.name} was not built: {str(error.orig).strip()}; migrate "
                    "again, which drops what is left of it first",
                ) from error


@Operations.implementation_for(DropSimhash)
def _drop(operations: Operations, unwanted: DropSimhash) -> None:
    context, table = operations.get_context(), _table_of(operations, unwanted)
    if unwanted.concurrently:
        _check_can_commit(context)
        with context.autocommit_block():
            for index in _indexes(table):
                context.impl.execute(_concurrent(DropIndex(index, if_exists=True), index))
    # With the columns their indexes go.
    context.impl.execute(_AlterTable(table, "DROP COLUMN"))


def _table_of(operations: Operations, wanted: _SimhashOperation) -> Table:
    """Return a table of these columns only, with the names that the project's metadata gives."""
    from pgsimhash.sqlalchemy import simhash_columns

    made = simhash_columns(wanted.column, wanted.layout, nullable=wanted.nullable)
    metadata = operations.schema_obj.metadata()
    return Table(wanted.table, metadata, *made, schema=wanted.schema)


def _indexes(table: Table) -> list[Index]:
    return sorted(table.indexes, key=lambda index: str(index.name))


class _AlterTable(ExecutableDDLElement):
    """One ALTER TABLE that does the same with each of the table's columns."""

    def __init__(self, table: Table, change: str) -> None:
        self.table = table
        self.change = change


@compiles(_AlterTable)
def _alter_table(element: _AlterTable, compiler: DDLCompiler, **_options: object) -> str:
    columns = list(element.table.c)
    if element.change.startswith("ADD"):
        parts = [compiler.get_column_specification(each) for each in columns]
    else:
        # Those first that are made from another one.
        parts = [compiler.preparer.format_column(each) for each in reversed(columns)]
    changes = ", ".join(f"{element.change} {part}" for part in parts)
    return f"ALTER TABLE {compiler.preparer.format_table(element.table)} {changes}"


def _has_columns(context: MigrationContext, table: Table, wanted: AddSimhash) -> bool:
    """Whether the columns are there, from a try that failed later."""
    assert context.connection is not None
    present = {
        each["name"]: each["computed"]["sqltext"] if "computed" in each else ""
        for each in inspect(context.connection).get_columns(table.name, schema=table.schema)
    }
    if not any(each.name in present for each in table.c):
        return False
    for each in table.c:
        wanted_text = str(each.computed.sqltext) if isinstance(each.computed, Computed) else ""
        if each.name not in present or _plain(present[each.name]) != _plain(wanted_text):
            raise StoreError(
                "other_table",
                f"the table {table.fullname} has columns with the names of {wanted.column} and its "
                f"prefixes, and they are not those of layout {wanted.layout!r}; drop them, or give "
                "the column another name",
            )
    return True


def _plain(expression: str) -> str:
    return "".join(each for each in expression if each not in "()'\" \n")


_VALID: Final = text(
    "SELECT i.indisvalid AND i.indisready FROM pg_catalog.pg_index AS i "
    "WHERE i.indexrelid = pg_catalog.to_regclass(:name)"
)


def _is_valid(context: MigrationContext, index: Index) -> bool | None:
    """Return whether an index can be used, None where there is none."""
    assert context.connection is not None
    assert index.table is not None
    # Of the driver's own, names would have their percent signs doubled.
    quoting = PGDialect(paramstyle="named").identifier_preparer  # type: ignore[no-untyped-call]
    name, schema = quoting.format_index(index), index.table.schema
    if schema is not None:
        name = f"{quoting.quote_schema(schema)}.{name}"
    found: bool | None = context.connection.scalar(_VALID, {"name": name})
    return found


def _concurrent(statement: Any, index: Index) -> Any:
    index.dialect_options["postgresql"]["concurrently"] = True
    return statement


def _check_can_commit(context: MigrationContext) -> None:
    if not context.as_sql and context._in_external_transaction:
        raise StoreError(
            "needs_autocommit",
            "indexes are built concurrently outside of a transaction, and env.py began one that "
            "Alembic cannot end; let context.begin_transaction() begin it, or leave out "
            "concurrently=True",
        )
