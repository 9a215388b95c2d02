"""Simhashes in your own tables and queries, with SQLAlchemy.

For your own tables there are :class:`SIMHASH` and :func:`simhash_lock`, which only need PostgreSQL
14. For joins with the package's tables there are :class:`Page`, :class:`Collection`,
:data:`clusters`, :func:`find` and :func:`near_pages`. All tables are in ``metadata.tables``, such
as ``"pgsimhash.runs"``.
"""

import re
from typing import Any, Final, SupportsIndex
from weakref import WeakSet

import sqlalchemy as sa
from sqlalchemy import BigInteger, Column, ColumnElement, Index, Integer, Text, column, func
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Mapped, Mapper, declarative_base, relationship

from pgsimhash.db.schema_names import SCHEMA, check_schema_name, read_sql
from pgsimhash.errors import check_type, invalid_argument
from pgsimhash.hashing.bits import check_distance
from pgsimhash.schema.scripts import prefix_of
from pgsimhash.search.layout import DISTANCE_MAX, get_layout
from pgsimhash.sqlalchemy.simhash_type import SIMHASH, as_simhash, prefix_name

__all__ = [
    "SIMHASH",
    "Collection",
    "Page",
    "clusters",
    "find",
    "metadata",
    "near_pages",
    "simhash_lock",
]

_made: Final[WeakSet[sa.Table]] = WeakSet()


@sa.event.listens_for(sa.Table, "after_parent_attach")
def _add_prefixes(table: sa.Table, _metadata: sa.MetaData) -> None:
    """Add what searches need to a new table: prefix columns, and indexes."""
    _made.add(table)
    for simhash in list(table.columns):
        if not isinstance(simhash.type, SIMHASH) or simhash.type.layout is None:
            continue
        for permutation in get_layout(simhash.type.layout).permutations:
            name = prefix_name(simhash.name, permutation)
            # A copy of a table, or the table of a revision of Alembic, has it already.
            if name in table.columns:
                continue
            if len(name.encode()) > _LONGEST:
                raise invalid_argument(
                    f"the name of the column {name} would have more than {_LONGEST} bytes, which "
                    f"PostgreSQL truncates; give {simhash.name} a shorter one"
                )
            # This parameter style does not double percent signs.
            dialect = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]
            # Nor is a colon the mark of a value.
            quoted = dialect.identifier_preparer.quote(simhash.name).replace(":", "\\:")
            filled = sa.Computed(prefix_of(permutation, quoted, "::bigint"), persisted=True)
            prefix = Column(name, BigInteger, filled, info={_IS_PREFIX: True})
            table.append_column(prefix)
            if permutation.number == 1 and not simhash.index:
                Index(None, simhash)
            Index(None, prefix, simhash)


@sa.event.listens_for(Column, "after_parent_attach")
def _add_prefixes_later(column: Column[Any], table: sa.Table) -> None:
    """Do so for a column that joins the table later, as of a subclass without its own table."""
    if isinstance(column.type, SIMHASH) and table in _made:
        _add_prefixes(table, table.metadata)


@sa.event.listens_for(Mapper, "instrument_class")
def _leave_out_prefixes(mapper: Mapper[Any], _class: type) -> None:
    """Map no prefix columns, so that no object loads them."""
    prefixes = {each.name for each in mapper.persist_selectable.c if each.info.get(_IS_PREFIX)}
    mapper.exclude_properties = {*(mapper.exclude_properties or ()), *prefixes}


_LONGEST: Final = 63
_IS_PREFIX: Final = "pgsimhash.prefix"
_PG_TYPE: Final = 1247
"""The first key of the lock, the oid of pg_type; the second is that of the table's row type."""


def simhash_lock(table: type[Any] | sa.FromClause) -> sa.Select[tuple[Any]]:
    """Return a statement that waits for other transactions that executed it for the same table.

    ``table`` is an ORM class or a table of SQLAlchemy Core. Execute the statement before you look
    for near rows and insert. Otherwise two transactions that do so at the same time both find none.
    The lock is held until the transaction ends and blocks nothing else. It needs READ COMMITTED, so
    that the lookup sees rows that were committed meanwhile.
    """
    mapped_table: Any = getattr(sa.inspect(table, raiseerr=False), "local_table", table)
    check_type(mapped_table, sa.TableClause, "a lock needs an ORM class or a table")
    # One row without a row of the table: an identifier gets a translated schema, a text does not.
    one, row = sa.select(sa.true()).subquery(), mapped_table.alias()
    kind = sa.cast(func.pg_catalog.pg_typeof(row.table_valued()), Integer)
    lock = func.pg_catalog.pg_advisory_xact_lock(sa.literal(_PG_TYPE, Integer), kind)
    return sa.select(lock).select_from(one.outerjoin(row, sa.false()))


metadata = sa.MetaData(schema=SCHEMA)

# SQLAlchemy's types by their names in PostgreSQL, and by the short one in the files of SQL.
_TYPES: Final[dict[str, Any]] = {
    **postgresql.base.ischema_names,
    "timestamptz": sa.DateTime(timezone=True),
}
_TABLE: Final = re.compile(r"^CREATE TABLE pgsimhash\.(\w+) \((.*?)^\)", re.DOTALL | re.MULTILINE)
# Without the prefix columns, which depend on the layout.
_COLUMN: Final = re.compile(r"^    (?!prefix_)([a-z_]+) ([a-z]+)(\[\])?", re.MULTILINE)
_KEY: Final = re.compile(r"PRIMARY KEY \((.*)\)")


def _read_table(name: str, body: str) -> None:
    """Add a table of ``sql/tables.sql`` to the metadata, with its keys."""
    (key,) = _KEY.findall(body)
    columns: list[Column[Any]] = []
    for each, kind, array in _COLUMN.findall(body):
        known = SIMHASH() if each in ("simhash", "structure") else _TYPES[kind]
        columns.append(Column(each, postgresql.ARRAY(known) if array else known))
    table = sa.Table(name, metadata, *columns, sa.PrimaryKeyConstraint(*key.split(", ")))
    if "REFERENCES" in body:
        referred = f"{SCHEMA}.collections.collection_id"
        table.append_constraint(sa.ForeignKeyConstraint(["collection_id"], [referred]))


for _name, _body in _TABLE.findall(read_sql("tables.sql")):
    _read_table(_name, _body)

clusters, collections, pages = (
    metadata.tables[f"{SCHEMA}.{name}"] for name in ("clusters", "collections", "pages")
)


def find(
    simhash: object,
    distance: SupportsIndex | None = None,
    collection: str = "default",
    schema: str = SCHEMA,
) -> sa.TableValuedAlias:
    """Return a table expression of a collection's simhashes within a distance.

    Its columns are ``simhash`` and ``distance``. ``simhash`` is an ``int`` from 0 to 2**64-1, or an
    expression. If it is a column of another table, the result is lateral: ``select(Article,
    near.c.distance).join(near, true())``. ``distance`` is 0 to 12, if the layout supports it; None
    means the collection's. ``schema`` is that of the package's tables.
    """
    query, columns = as_simhash(simhash), ("simhash", "distance")
    return _called("find", query, distance, collection, schema, columns)


def near_pages(
    page: object,
    distance: SupportsIndex | None = None,
    collection: str = "default",
    schema: str = SCHEMA,
) -> sa.TableValuedAlias:
    """Return a table expression of a collection's pages near another page or a simhash.

    Its columns are ``url``, ``distance``, ``simhash``, ``title``, ``fetched_at`` and ``page_id``.

    ``page`` is a URL or a simhash, or an expression of either; the rest is that of :func:`find`.
    """
    query = sa.literal(page, Text()) if isinstance(page, str) else as_simhash(page)
    columns = ("url", "distance", "simhash", "title", "fetched_at", "page_id")
    return _called("near_pages", query, distance, collection, schema, columns)


def _called(
    name: str,
    query: ColumnElement[Any],
    distance: SupportsIndex | None,
    collection: str,
    schema: str,
    columns: tuple[str, ...],
) -> sa.TableValuedAlias:
    limit = None if distance is None else check_distance(distance, DISTANCE_MAX)
    function = getattr(getattr(func, check_schema_name(schema)), name)
    call = function(query, sa.literal(limit, Integer()), sa.literal(collection, Text()))
    typed = [column(each, pages.c[each].type) for each in columns]
    result: sa.TableValuedAlias = call.table_valued(*typed, joins_implicitly=True)
    return result


_Row: Any = declarative_base(metadata=metadata)
"""The base of classes whose columns are those of their tables, also for type checkers."""


class Collection(_Row):  # type: ignore[misc]
    """A collection, read-only: a row of the table ``collections``."""

    __table__ = collections


class Page(_Row):  # type: ignore[misc]
    """A version of a page, read-only: a row of the table ``pages``."""

    __table__ = pages

    collection: Mapped[Collection] = relationship(viewonly=True)
    """The collection of the page."""


@sa.event.listens_for(_Row, "before_insert", propagate=True)
@sa.event.listens_for(_Row, "before_update", propagate=True)
@sa.event.listens_for(_Row, "before_delete", propagate=True)
def _refuse(_mapper: object, _connection: object, row: object) -> None:
    raise invalid_argument(
        f"{type(row).__name__} is read-only: write with a store, such as pgsimhash.connect(session)"
    )
