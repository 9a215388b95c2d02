"""Simhashes in a project's own tables and queries, by SQLAlchemy.

For the project's own tables there are :class:`SIMHASH`, :class:`SimhashMixin`,
:func:`simhash_columns` and :func:`simhash_lock`, which need nothing but PostgreSQL 14. For joins
with what the package collects there are its tables, the classes :class:`Page` and
:class:`Collection`, and :func:`near_duplicates` and :func:`near_pages`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, SupportsIndex

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Computed,
    DateTime,
    Index,
    Integer,
    Table,
    TableValuedAlias,
    Text,
    column,
    event,
    func,
    literal,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    MappedColumn,
    foreign,
    mapped_column,
    relationship,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType

from pgsimhash.db.schema_names import SCHEMA, check_schema_name
from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.bits import check_distance
from pgsimhash.search.layout import DEFAULT_LAYOUT, DISTANCE_MAX, get_layout
from pgsimhash.search.permutation import Permutation
from pgsimhash.sqlalchemy.collection_tables import collections, last_seen, pages, runs, simhashes
from pgsimhash.sqlalchemy.locks import simhash_lock
from pgsimhash.sqlalchemy.setting_tables import marks, policies
from pgsimhash.sqlalchemy.simhash_type import SIMHASH, as_simhash, prefix_name, prefix_sql
from pgsimhash.sqlalchemy.tables import metadata

__all__ = [
    "SIMHASH",
    "Collection",
    "Page",
    "SimhashMixin",
    "collections",
    "last_seen",
    "marks",
    "metadata",
    "near_duplicates",
    "near_pages",
    "pages",
    "policies",
    "runs",
    "simhash_columns",
    "simhash_lock",
    "simhashes",
]


# -- The project's own tables ---------------------------------------------------------------------


def simhash_columns(
    name: str = "simhash", layout: str = DEFAULT_LAYOUT.name, *, nullable: bool = True
) -> list[SchemaItem]:
    """Return what a table needs for a simhash that is searched: columns and indexes.

    They are the column itself; a column ``<name>_prefix_<n>`` for each permutation of the layout,
    which the server fills; an index on the simhash, and one on each prefix with the simhash behind
    it. The indexes are named by the convention of the table's metadata
    (``ix_<table>_<name>_prefix_<n>`` if it has none).

    Args:
        name: the column's name.
        layout: how the 64 bits are cut: one of the names that ``pgsimhash collection plan`` lists.
        nullable: whether rows may be without a simhash.

    Raises:
        ArgumentError: no layout has the name, or it would take too many columns; or the name is too
            long for those of the prefixes.
    """
    permutations = get_layout(layout).permutations
    return [
        Column(name, SIMHASH(layout), nullable=nullable),
        *(
            Column(prefix_name(name, each), BigInteger, _filled(name, each))
            for each in permutations
        ),
        Index(None, name),
        *(Index(None, prefix_name(name, each), name) for each in permutations),
    ]


def _filled(name: str, permutation: Permutation) -> Computed:
    prefix = prefix_name(name, permutation)
    if len(prefix.encode()) > _LONGEST:
        raise ArgumentError(
            "invalid_column",
            f"the column {prefix} would have a name of more than {_LONGEST} bytes, which "
            f"PostgreSQL cuts off; give {name} a shorter one",
        )
    # One whose driver takes other marks than percent signs for values does not double those.
    dialect = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]
    # Nor is a colon the mark of a value.
    quoted = dialect.identifier_preparer.quote(name).replace(":", "\\:")
    return Computed(prefix_sql(permutation, quoted), persisted=True)


_LONGEST: Final = 63


class SimhashMixin:
    """Gives an ORM class a simhash that is searched, with its prefix columns and indexes.

    The class gets an attribute ``simhash`` in the layout ``__simhash_layout__``, unless it has one
    itself, or says None there. One of its own without a type, as of ``mapped_column(comment=...)``,
    gets the type. Every other column whose type is a ``SIMHASH`` with a layout is searched as
    well. The prefix columns are deferred: the server fills them, and no object loads
    them. The mixin stands before the declarative base: ``class Article(SimhashMixin, Base)``.

    Two transactions that look for near rows and insert at the same time both find nothing near,
    unless they execute :func:`simhash_lock` first.

    Raises:
        ArgumentError: a layout has not the name that is given, the mixin stands behind the base, or
            a column's name is too long for those of its prefixes.
    """

    __simhash_layout__: ClassVar[str | None] = DEFAULT_LAYOUT.name

    if TYPE_CHECKING:
        simhash: Mapped[int | None]

    def __init_subclass__(cls, **options: Any) -> None:
        if "__mapper__" in vars(cls):
            raise ArgumentError(
                "mixin_order",
                f"write class {cls.__name__}(SimhashMixin, ...), the declarative base behind it",
            )
        # Mixins and abstract classes wait for the classes that have tables.
        has_table = hasattr(cls, "registry") or hasattr(cls, "__tablename__")
        if has_table and not vars(cls).get("__abstract__"):
            layout = cls.__simhash_layout__
            if layout is not None:
                _give_simhash(cls, layout)
            _add_prefixes(cls)
        super().__init_subclass__(**options)


_LAST: Final = 1_000_000


def _give_simhash(cls: type[SimhashMixin], layout: str) -> None:
    present = getattr(cls, "simhash", None)
    if present is None:
        cls.simhash = mapped_column(SIMHASH(layout))
    elif isinstance(present, MappedColumn) and isinstance(present.column.type, NullType):
        # SQLAlchemy would take int for an INTEGER.
        present.column.type = SIMHASH(layout)


def _add_prefixes(cls: type) -> None:
    found = {
        key: value.column if isinstance(value, MappedColumn) else value
        for base in reversed(cls.__mro__)
        for key, value in list(vars(base).items())
        if isinstance(value, MappedColumn | Column)
    }
    for key, simhash in found.items():
        if not isinstance(simhash.type, SIMHASH) or simhash.type.layout is None:
            continue
        name = simhash.name or key
        for permutation in get_layout(simhash.type.layout).permutations:
            prefix = prefix_name(name, permutation)
            if hasattr(cls, prefix):
                continue
            # Behind the simhash, wherever that comes from.
            made: MappedColumn[int] = mapped_column(
                prefix, BigInteger, _filled(name, permutation), deferred=True, sort_order=_LAST
            )
            _index(made.column, name, alone=permutation.number == 1)
            setattr(cls, prefix, made)


def _index(prefix: Column[Any], name: str, *, alone: bool) -> None:
    # Once, for copies of the table copy its indexes too.
    @event.listens_for(prefix, "after_parent_attach", once=True)
    def attached(prefix: Column[Any], table: Table) -> None:
        # With index=True the column has made its own.
        if alone and not table.c[name].index:
            Index(None, table.c[name])
        Index(None, prefix, table.c[name])


# -- What the package collects --------------------------------------------------------------------


def near_duplicates(
    simhash: object,
    distance: SupportsIndex | None = None,
    collection: str = "default",
    schema: str = SCHEMA,
) -> TableValuedAlias:
    """Return a collection's simhashes within a distance, to be selected from and joined.

    Its columns are ``simhash`` and ``distance``. Beside a table whose column it is given, it is
    lateral: ``select(Article, near.c.distance).join(near, true())``.

    Args:
        simhash: an ``int`` from 0 to 2**64-1, or an expression.
        distance: 0 to 12, if the collection's layout answers that; None means the collection's.
        collection: the collection's name.
        schema: where the package's tables are.

    Raises:
        ArgumentError: an argument is wrong. What only the server can tell is SQLAlchemy's error.
    """
    return _called(
        "near_duplicates", as_simhash(simhash), distance, collection, schema
    ).table_valued(column("simhash", SIMHASH()), column("distance", Integer), joins_implicitly=True)


def near_pages(
    page: object,
    distance: SupportsIndex | None = None,
    collection: str = "default",
    schema: str = SCHEMA,
) -> TableValuedAlias:
    """Return a collection's pages near another page or a simhash, to be selected from and joined.

    Its columns are ``url``, ``distance``, ``simhash``, ``title``, ``fetched_at`` and ``page_id``.

    Args:
        page: a URL or a simhash, or an expression of either.
        distance: as for :func:`near_duplicates`.
        collection: the collection's name.
        schema: where the package's tables are.

    Raises:
        ArgumentError: as :func:`near_duplicates` does.
    """
    asked = literal(page, Text()) if isinstance(page, str) else as_simhash(page)
    found = _called("near_pages", asked, distance, collection, schema)
    return found.table_valued(
        column("url", Text),
        column("distance", Integer),
        column("simhash", SIMHASH()),
        column("title", Text),
        column("fetched_at", DateTime(timezone=True)),
        column("page_id", BigInteger),
        joins_implicitly=True,
    )


def _called(
    name: str,
    asked: ColumnElement[Any],
    distance: SupportsIndex | None,
    collection: str,
    schema: str,
) -> FunctionElement[Any]:
    most = None if distance is None else check_distance(distance, DISTANCE_MAX)
    function = getattr(getattr(func, check_schema_name(schema)), name)
    made: FunctionElement[Any] = function(
        asked, literal(most, Integer()), literal(collection, Text())
    )
    return made


class _Collected(DeclarativeBase):
    metadata = metadata


class Collection(_Collected):
    """A collection, to be read: a row of the table ``collections``."""

    __table__ = collections

    if TYPE_CHECKING:
        collection_id: Mapped[int]
        name: Mapped[str]
        scheme: Mapped[str]
        layout: Mapped[str]
        default_distance: Mapped[int]
        keep_markdown: Mapped[bool]
        normalize_urls: Mapped[bool]
        created_at: Mapped[datetime]


class Page(_Collected):
    """A version of a page, to be read: a row of the table ``pages``."""

    __table__ = pages

    collection: Mapped[Collection] = relationship(
        primaryjoin=lambda: foreign(pages.c.collection_id) == Collection.collection_id,
        viewonly=True,
    )
    """The collection that the page is in."""

    if TYPE_CHECKING:
        page_id: Mapped[int]
        collection_id: Mapped[int]
        url: Mapped[str]
        host: Mapped[str | None]
        simhash: Mapped[int]
        fetched_at: Mapped[datetime]
        run_id: Mapped[int | None]
        title: Mapped[str | None]
        canonical_url: Mapped[str | None]
        language: Mapped[str | None]
        features: Mapped[int | None]
        tokens: Mapped[int | None]
        html_bytes: Mapped[int | None]
        html_digest: Mapped[bytes | None]
        text_digest: Mapped[int | None]
        structure: Mapped[int | None]
        signature_high: Mapped[int | None]
        signature_low: Mapped[int | None]
        markdown: Mapped[str | None]
        duplicate_of: Mapped[int | None]
        distance: Mapped[int | None]


for _class in (Collection, Page):

    @event.listens_for(_class, "before_insert")
    @event.listens_for(_class, "before_update")
    @event.listens_for(_class, "before_delete")
    def _refuse(_mapper: object, _connection: object, row: object) -> None:
        raise ArgumentError(
            "read_only_class",
            f"{type(row).__name__} is there to be read: write by a store, as of "
            "pgsimhash.connect(session)",
        )
