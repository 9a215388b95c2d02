"""A simhash as SQLAlchemy's type and expressions; they need PostgreSQL 14, and no schema of ours.

``within`` is a lookup as ``sql/layout.sql`` does it, written out for anyone's table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self, SupportsIndex

from sqlalchemy import (
    ARRAY,
    BigInteger,
    BindParameter,
    Boolean,
    Column,
    ColumnElement,
    FromClause,
    Integer,
    Table,
    Text,
    bindparam,
    type_coerce,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DontWrapMixin
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import operators
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.visitors import InternalTraversal
from sqlalchemy.types import NullType, TypeDecorator

from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.bits import BITS, check_distance, check_simhash, from_bigint, to_bigint
from pgsimhash.search.layout import Layout, get_layout
from pgsimhash.search.permutation import Permutation

_BY_SIZE: Final = frozenset(
    {
        operators.lt,
        operators.le,
        operators.gt,
        operators.ge,
        operators.between_op,
        operators.not_between_op,
    }
)


class RefusedValueError(ArgumentError, DontWrapMixin):
    """What a simhash column was given is none; SQLAlchemy passes it on as it is."""


class _Comparator(TypeDecorator.Comparator[int], BigInteger.Comparator[int]):
    """What ``column.`` offers where the column holds simhashes."""

    def hamming_distance(self, other: object) -> ColumnElement[int]:
        """Return in how many bits the column and another simhash differ, 0 to 64.

        Args:
            other: an ``int`` from 0 to 2**64-1, or an expression: another column, a bindparam.

        Raises:
            ArgumentError: it is neither.
        """
        return _Distance(self.expr, as_simhash(other))

    def within(self, other: object, distance: SupportsIndex) -> ColumnElement[bool]:
        """Return the condition that the column and another simhash differ in few bits at most.

        It is exact, goes by the indexes of :func:`pgsimhash.sqlalchemy.simhash_columns`, and is
        never true where the column is NULL.

        Args:
            other: an ``int`` from 0 to 2**64-1, or an expression, such as another table's column.
            distance: 0 to the largest that the column's layout answers.

        Raises:
            ArgumentError: the layout does not answer the distance, ``other`` is no simhash, or the
                column has no prefix columns beside it.
        """
        return _Within(self.expr, as_simhash(other), *_lookup(self.expr, distance))

    def operate(self, op: Any, *other: Any, **options: Any) -> ColumnElement[Any]:
        """Refuse what would go by the size of the signed number.

        Raises:
            ArgumentError: it is ``<``, ``<=``, ``>``, ``>=`` or ``BETWEEN``.
        """
        if op in _BY_SIZE:
            raise ArgumentError(
                "no_order",
                "simhashes are not compared by size, for the server's bigint is signed: ask for "
                ".within(simhash, distance); to read in pages, compare sqlalchemy.type_coerce("
                "column, BigInteger)",
            )
        return super().operate(op, *other, **options)


class SIMHASH(TypeDecorator[int]):
    """A simhash: an ``int`` from 0 to 2**64-1 in Python, a ``bigint`` in the server.

    Args:
        layout: the name of the layout whose prefix columns stand beside the column, which
            ``within`` needs; :func:`pgsimhash.sqlalchemy.simhash_columns` makes them.

    Raises:
        ArgumentError: no layout has the name.
    """

    impl = BigInteger
    cache_ok = True
    comparator_factory = _Comparator

    def __init__(self, layout: str | None = None) -> None:
        super().__init__()
        self.layout = None if layout is None else get_layout(layout).name

    def process_bind_param(self, value: int | None, dialect: Dialect) -> int | None:
        """Return what the server stores for a simhash."""
        if value is None:
            return None
        try:
            return to_bigint(value)
        except ArgumentError as error:
            raise RefusedValueError(error.reason, str(error)) from None

    def process_result_value(self, value: int | None, dialect: Dialect) -> int | None:
        """Return the simhash that the server stores so."""
        return None if value is None else from_bigint(value)

    def literal_processor(self, dialect: Dialect) -> Callable[[Any], str]:
        """Return what writes a simhash into a script."""

        def written(value: int | None) -> str:
            # As a bare number the lowest bigint would be a numeric.
            return f"CAST({self.process_bind_param(value, dialect)} AS BIGINT)"

        return written


def as_simhash(value: object) -> ColumnElement[int]:
    """Return an ``int`` or an expression as an expression of simhashes.

    Raises:
        ArgumentError: it is neither.
    """
    if hasattr(value, "__clause_element__"):
        value = value.__clause_element__()
    if isinstance(value, ColumnElement):
        return type_coerce(value, _SIMHASH) if isinstance(value.type, NullType) else value
    # Not literal(), which takes three times as long.
    return bindparam(None, check_simhash(value), _SIMHASH, unique=True)  # type: ignore[arg-type]


_SIMHASH: Final = SIMHASH()


def prefix_name(name: str, permutation: Permutation) -> str:
    """Return the name of the column with a permutation's prefix of the simhash ``name``."""
    return f"{name}_{permutation.column}"


def prefix_sql(permutation: Permutation, simhash: str) -> str:
    """Return a permutation's prefix in SQL, of a simhash in SQL."""
    parts = (
        (f"(({simhash} >> {block.shift}) & {block.mask}::bigint)", position)
        for block, position in permutation.places
    )
    return " | ".join(f"({part} << {position})" if position else part for part, position in parts)


class _Distance(FunctionElement[int]):
    """In how many bits two simhashes differ; one element, for SQLAlchemy takes time for each."""

    name = "hamming_distance"
    type = Integer()
    inherit_cache = True


@compiles(_Distance, "postgresql")
def _distance_sql(element: _Distance, compiler: SQLCompiler, **options: Any) -> str:
    return _bit_count(*(f"({compiler.process(part, **options)})" for part in element.clauses))


def _bit_count(one: str, other: str) -> str:
    # The server's own, whatever search_path says.
    return f"pg_catalog.bit_count(CAST({one} # {other} AS BIT({BITS})))"


@dataclass(frozen=True, eq=False, slots=True)
class _Searched:
    """A column that lookups go by; as a key it is itself, which takes no time."""

    table: Table
    name: str
    layout: Layout
    most: int


@dataclass(frozen=True, eq=False, slots=True)
class _Lookup:
    """What is looked up where; statements that are alike in this are compiled once."""

    searched: _Searched
    distance: int
    places: tuple[int, ...]
    """Which of the arrays of flips each permutation takes."""


class _Within(ColumnElement[bool]):
    """Whether a column is in an array of the simhashes in its table that are within a distance.

    The table is read by itself, whatever the statement around does with it: the indexes hold all
    that is looked at. The probes are arrays that subqueries make, which hides them from the
    planner: with their elements known it would estimate each of them, which takes longer than the
    lookup, and could prefer a scan.

    It is one element, for SQLAlchemy takes time for each, and as long as a lookup for some more.
    """

    type = Boolean()
    _traverse_internals = [  # noqa: RUF012
        ("column", InternalTraversal.dp_clauseelement),
        ("sought", InternalTraversal.dp_clauseelement),
        ("flips", InternalTraversal.dp_clauseelement_list),
        ("lookup", InternalTraversal.dp_plain_obj),
    ]

    def __init__(
        self,
        column: ColumnElement[Any],
        sought: ColumnElement[int],
        lookup: _Lookup,
        flips: list[BindParameter[str]],
    ) -> None:
        self.column = column
        self.sought = sought
        self.lookup = lookup
        self.flips = flips
        # As a comparison does it, so that the ORM sees whose columns these are.
        self._propagate_attrs = column._propagate_attrs or sought._propagate_attrs

    @property
    def _from_objects(self) -> list[FromClause]:
        return [*self.column._from_objects, *self.sought._from_objects]

    def self_group(self, against: object = None) -> Self:
        """Return it as it is: it is written in parentheses."""
        return self


class _Near(ColumnElement[Any]):
    """That array, while a statement is written."""

    type = ARRAY(_SIMHASH)

    def __init__(self, within: _Within) -> None:
        self.within = within

    @property
    def _from_objects(self) -> list[FromClause]:
        return self.within.sought._from_objects


def _lookup(
    column: ColumnElement[Any], distance: SupportsIndex
) -> tuple[_Lookup, list[BindParameter[str]]]:
    """Return what there is to look up for a column, by way of whatever aliases."""
    origins = column.base_columns
    searched = _searched(next(iter(origins))) if len(origins) == 1 else None
    if searched is None:
        raise ArgumentError(
            "no_prefixes",
            f"{column} has no prefix columns beside it that a lookup could go by: make it by "
            "pgsimhash.sqlalchemy.SimhashMixin or simhash_columns(), or look up what a collection "
            "holds by near_duplicates()",
        )
    return _prepared(searched, check_distance(distance, searched.most))


@lru_cache(maxsize=256)
def _searched(column: ColumnElement[Any]) -> _Searched | None:
    kind, table = column.type, getattr(column, "table", None)
    if isinstance(kind, SIMHASH) and kind.layout and isinstance(table, Table):
        assert isinstance(column, Column)
        layout, name = get_layout(kind.layout), str(column.name)
        if all(prefix_name(name, each) in table.c for each in layout.permutations):
            return _Searched(table, name, layout, layout.distances[-1])
    return None


@lru_cache(maxsize=256)
def _prepared(searched: _Searched, distance: int) -> tuple[_Lookup, list[BindParameter[str]]]:
    layout = searched.layout
    texts = [
        # As text, for drivers are slow to write arrays.
        "{" + ",".join(map(str, permutation.flips(radius))) + "}"
        for permutation, radius in zip(layout.permutations, layout.radii(distance), strict=True)
    ]
    # Permutations of one width and radius share theirs.
    different = list(dict.fromkeys(texts))
    lookup = _Lookup(searched, distance, tuple(different.index(text) for text in texts))
    return lookup, [bindparam(None, text, Text(), unique=True) for text in different]


@compiles(_Within, "postgresql")
def _within_sql(element: _Within, compiler: SQLCompiler, **options: Any) -> str:
    compared = element.column.bool_op("= ANY")(_Near(element))
    return f"({compiler.process(compared, **options)})"


@compiles(_Near, "postgresql")
def _near_sql(element: _Near, compiler: SQLCompiler, **options: Any) -> str:
    options.pop("add_to_result_map", None)
    options["include_table"] = True
    within = element.within
    searched, places = within.lookup.searched, within.lookup.places
    quote = compiler.preparer.quote
    source = compiler.preparer.format_table(searched.table)
    flips = [compiler.process(each, **options) for each in within.flips]
    # A bare number would not be sure to be a bigint with every driver.
    sought = f"CAST({compiler.process(within.sought, **options)} AS BIGINT)"
    own = f"_pgsimhash.{quote(searched.name)}"
    # All that stands between is quoted, or made of numbers.
    parts = (
        f"SELECT {own} FROM {source} AS _pgsimhash "  # noqa: S608
        f"WHERE _pgsimhash.{quote(prefix_name(searched.name, permutation))} = ANY (ARRAY("
        f"SELECT ({prefix_sql(permutation, sought)}) # _pgsimhash_flip "
        f"FROM unnest(CAST({flips[place]} AS BIGINT[])) AS _pgsimhash_flip)) "
        f"AND {_bit_count(own, sought)} <= {within.lookup.distance}"
        for permutation, place in zip(searched.layout.permutations, places, strict=True)
    )
    return f"(ARRAY({' UNION ALL '.join(parts)}))"
