"""A simhash as SQLAlchemy's type and expressions; they need PostgreSQL 14, and no schema of ours.

``within`` is a lookup as ``sql/layout.sql`` does it, written out for anyone's table.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any, Final, SupportsIndex

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Integer,
    Table,
    Text,
    and_,
    any_,
    literal,
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

from pgsimhash.bits import BITS, check_simhash, from_bigint, to_bigint
from pgsimhash.errors import ArgumentError
from pgsimhash.layout import Layout, get_layout
from pgsimhash.permutation import Permutation

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
        table, name, layout = _searched(self.expr)
        sought = as_simhash(other)
        radii = layout.radii(distance)
        most = literal(operator.index(distance), Integer())
        texts = [_flips(*each) for each in zip(layout.permutations, radii, strict=True)]
        # Permutations of one width and radius share theirs.
        flips = {text: literal(text, Text()) for text in texts}
        places = tuple(list(flips).index(text) for text in texts)
        found = _Near((table, name, layout, places), sought, most, *flips.values())
        return and_(self.expr == any_(found), self.hamming_distance(sought) <= most)

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
        return type_coerce(value, SIMHASH()) if isinstance(value.type, NullType) else value
    return literal(check_simhash(value), SIMHASH())  # type: ignore[arg-type]


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


class _Near(FunctionElement[Any]):
    """An array of the simhashes in a table's column that are within a distance.

    The table is read by itself, whatever the statement around does with it: the indexes hold all
    that is looked at. The probes are arrays that subqueries make, which hides them from the
    planner: with their elements known it would estimate each of them, which takes longer than the
    lookup, and could prefer a scan.
    """

    name = "near"
    type = ARRAY(SIMHASH())
    _traverse_internals = [  # noqa: RUF012
        *FunctionElement._traverse_internals,
        ("own", InternalTraversal.dp_plain_obj),
    ]

    def __init__(
        self,
        own: tuple[Table, str, Layout, tuple[int, ...]],
        sought: ColumnElement[int],
        most: ColumnElement[int],
        *flips: ColumnElement[str],
    ) -> None:
        super().__init__(sought, most, *flips)
        self.own = own


def _searched(column: ColumnElement[Any]) -> tuple[Table, str, Layout]:
    """Return the table that a column comes from by way of whatever aliases, its name and layout."""
    origins = list(column.base_columns)
    kind, table = origins[0].type, getattr(origins[0], "table", None)
    if len(origins) == 1 and isinstance(kind, SIMHASH) and kind.layout and isinstance(table, Table):
        layout, name = get_layout(kind.layout), str(origins[0].name)
        if all(prefix_name(name, each) in table.c for each in layout.permutations):
            return table, name, layout
    raise ArgumentError(
        "no_prefixes",
        f"{column} has no prefix columns beside it that a lookup could go by: make it by "
        "pgsimhash.sqlalchemy.SimhashMixin or simhash_columns(), or look up what a collection "
        "holds by near_duplicates()",
    )


@compiles(_Near, "postgresql")
def _near_sql(element: _Near, compiler: SQLCompiler, **options: Any) -> str:
    options.pop("add_to_result_map", None)
    options["include_table"] = True
    table, name, layout, places = element.own
    quote = compiler.preparer.quote
    source = compiler.preparer.format_table(table)
    sought, most, *flips = (compiler.process(part, **options) for part in element.clauses)
    # A bare number would not be sure to be a bigint with every driver.
    sought = f"CAST({sought} AS BIGINT)"
    own = f"_pgsimhash.{quote(name)}"
    # All that stands between is quoted, or made of numbers.
    parts = (
        f"SELECT {own} FROM {source} AS _pgsimhash "  # noqa: S608
        f"WHERE _pgsimhash.{quote(prefix_name(name, permutation))} = ANY (ARRAY("
        f"SELECT ({prefix_sql(permutation, sought)}) # _pgsimhash_flip "
        f"FROM unnest(CAST({flips[place]} AS BIGINT[])) AS _pgsimhash_flip)) "
        f"AND {_bit_count(own, sought)} <= {most}"
        for permutation, place in zip(layout.permutations, places, strict=True)
    )
    return f"ARRAY({' UNION ALL '.join(parts)})"


@cache
def _flips(permutation: Permutation, radius: int) -> str:
    # As text, for drivers are slow to write arrays.
    return "{" + ",".join(map(str, permutation.flips(radius))) + "}"
