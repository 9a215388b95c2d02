"""The SQLAlchemy type of simhashes and its expressions; they need no schema of the package.

``within`` is the lookup of ``sql/layout.sql`` for any table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, SupportsIndex

import sqlalchemy as sa
from sqlalchemy import BigInteger
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DontWrapMixin
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import operators
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.visitors import InternalTraversal
from sqlalchemy.types import NullType, TypeDecorator

from pgsimhash.errors import ArgumentError, invalid_argument
from pgsimhash.hashing.bits import BITS, check_distance, check_simhash, from_bigint, to_bigint
from pgsimhash.schema.scripts import prefix_of
from pgsimhash.search.layout import DEFAULT_LAYOUT, Layout, Permutation, get_layout

_BY_ORDER: Final = {
    operators.lt, operators.le, operators.gt, operators.ge,
    operators.between_op, operators.not_between_op,
}  # fmt: skip
_EQUALS_ANY: Final = operators.custom_op[Any]("= ANY", is_comparison=True)


class RefusedValueError(ArgumentError, DontWrapMixin):
    """The value for a simhash column is invalid; SQLAlchemy does not wrap this error."""


class _Comparator(TypeDecorator.Comparator[int], BigInteger.Comparator[int]):
    def hamming_distance(self, other: object) -> sa.ColumnElement[int]:
        """Return the number of bits in which the column and another simhash differ, 0 to 64.

        ``other`` is an ``int`` from 0 to 2**64-1, or an expression: another column, a bindparam.
        """
        return _Distance(self.expr, as_simhash(other))

    def within(self, other: object, distance: SupportsIndex) -> sa.ColumnElement[bool]:
        """Return the condition that the column and another simhash differ in few bits at most.

        It is exact, uses the indexes that come with :class:`SIMHASH`, and is never true if the
        column is NULL. ``other`` is an ``int`` from 0 to 2**64-1, or an expression, such as another
        table's column; ``distance`` is 0 to the largest that the column's layout supports.
        """
        column: sa.ColumnElement[Any] = self.expr
        origins = list(column.base_columns)
        layout = _layout_of(origins[0]) if len(origins) == 1 else None
        if layout is None:
            raise invalid_argument(
                f"{column} has no prefix columns for lookups: give it a type with a layout, "
                f"such as SIMHASH({DEFAULT_LAYOUT.name!r}), or search a collection with find()"
            )
        limit = check_distance(distance, layout.distances[-1])
        lookup = _lookup(origins[0], layout.name, limit)
        near = _Near(as_simhash(other), lookup)
        return sa.BinaryExpression(column, near, _EQUALS_ANY, type_=_BOOLEAN)

    def operate(self, op: Any, *other: Any, **options: Any) -> sa.ColumnElement[Any]:
        """Refuse comparisons that would use the order of the signed number."""
        if op in _BY_ORDER:
            raise invalid_argument(
                "simhashes cannot be ordered, because the server's bigint is signed: use "
                ".within(simhash, distance); to read in pages, compare sqlalchemy.type_coerce("
                "column, BigInteger)"
            )
        return super().operate(op, *other, **options)


class SIMHASH(TypeDecorator[int]):
    """A simhash: an ``int`` from 0 to 2**64-1 in Python, a ``bigint`` in the database.

    Without a ``layout``, such as "22+21+21", ``within`` cannot search it. With one, its table gets
    a generated column such as ``<name>_prefix_63_42`` for each permutation of the layout, an index
    on the simhash, and one on each prefix with the simhash. The naming convention of the metadata
    names them, by default ``ix_<table>_<name>_prefix_63_42``. The ORM does not load the prefixes.
    """

    impl = BigInteger
    cache_ok = True
    comparator_factory = _Comparator

    def __init__(self, layout: str | None = None) -> None:
        super().__init__()
        self.layout = None if layout is None else get_layout(layout).name

    def process_bind_param(self, value: int | None, dialect: Dialect) -> int | None:
        """Return the stored value of a simhash."""
        if value is None:
            return None
        try:
            return to_bigint(value)
        except ArgumentError as error:
            raise RefusedValueError(error.reason, str(error)) from None

    def process_result_value(self, value: int | None, dialect: Dialect) -> int | None:
        """Return the simhash of a stored value."""
        return None if value is None else from_bigint(value)

    def literal_processor(self, dialect: Dialect) -> Callable[[Any], str]:
        """Return a function that renders a simhash as a literal."""
        # Without the cast, the lowest bigint would be a numeric.
        return lambda value: f"CAST({self.process_bind_param(value, dialect)} AS BIGINT)"


def as_simhash(value: object) -> sa.ColumnElement[int]:
    """Return an ``int`` or an expression as an expression of simhashes."""
    if hasattr(value, "__clause_element__"):
        value = value.__clause_element__()
    if isinstance(value, sa.ColumnElement):
        return sa.type_coerce(value, _SIMHASH) if isinstance(value.type, NullType) else value
    # literal() takes three times as long.
    return sa.bindparam(None, check_simhash(value), _SIMHASH, unique=True)  # type: ignore[arg-type]


_SIMHASH: Final = SIMHASH()
_BOOLEAN: Final = sa.Boolean()


def prefix_name(name: str, permutation: Permutation) -> str:
    """Return the name of the prefix column of a permutation.

    It says which bits, so that columns of another layout have other names.
    """
    bits = (f"_{block.shift + block.width - 1}_{block.shift}" for block in permutation.leading)
    return f"{name}_prefix{''.join(bits)}"


class _Distance(FunctionElement[int]):
    """The Hamming distance as one element, because SQLAlchemy takes time for each element."""

    name = "hamming_distance"
    type = sa.Integer()
    inherit_cache = True
    stringify_dialect = "postgresql"


@compiles(_Distance, "postgresql")
def _distance_sql(element: _Distance, compiler: SQLCompiler, **options: Any) -> str:
    return _bit_count(*(f"({compiler.process(part, **options)})" for part in element.clauses))


def _bit_count(one: str, other: str) -> str:
    # Qualified, so that search_path does not matter.
    return f"pg_catalog.bit_count(CAST({one} # {other} AS BIT({BITS})))"


@dataclass(frozen=True, eq=False, slots=True)
class _Lookup:
    """A search of a column; statements with the same object are compiled once."""

    column: sa.Column[Any]
    layout: Layout
    distance: int
    flips: list[sa.BindParameter[str]]
    """For each permutation an array as text, because drivers adapt arrays slowly."""


class _Near(sa.ColumnElement[Any]):
    """The array of the simhashes of a table within a distance.

    The table is read separately, independent of the surrounding statement: the indexes contain all
    needed columns. The probes are arrays from subqueries: the planner would estimate each element
    of others, which takes longer than the lookup, and might choose a sequential scan. It is one
    element, because SQLAlchemy takes time for each, about as long as a lookup.
    """

    type = sa.ARRAY(_SIMHASH)
    stringify_dialect = "postgresql"
    _traverse_internals = [  # noqa: RUF012
        ("sought", InternalTraversal.dp_clauseelement),
        ("flips", InternalTraversal.dp_clauseelement_list),
        ("lookup", InternalTraversal.dp_plain_obj),
    ]

    def __init__(self, sought: sa.ColumnElement[int], lookup: _Lookup) -> None:
        self.sought, self.flips, self.lookup = sought, lookup.flips, lookup
        # Like comparisons do, so that the ORM sees which classes the columns belong to.
        self._propagate_attrs = sought._propagate_attrs

    @property
    def _from_objects(self) -> list[sa.FromClause]:
        return self.sought._from_objects


@lru_cache(maxsize=256)
def _layout_of(column: sa.ColumnElement[Any]) -> Layout | None:
    """Return the layout of a column whose table has all prefix columns."""
    kind, table = column.type, getattr(column, "table", None)
    if not isinstance(kind, SIMHASH) or kind.layout is None or not isinstance(table, sa.Table):
        return None
    layout = get_layout(kind.layout)
    names = [prefix_name(str(column.name), each) for each in layout.permutations]
    return layout if all(name in table.c for name in names) else None


@lru_cache(maxsize=256)
def _lookup(column: sa.Column[Any], layout_name: str, distance: int) -> _Lookup:
    layout = get_layout(layout_name)
    texts = [
        "{" + ",".join(map(str, permutation.flips(radius))) + "}"
        for permutation, radius in zip(layout.permutations, layout.radii(distance), strict=True)
    ]
    # Permutations of the same width and radius share their flips.
    shared = {text: sa.bindparam(None, text, sa.Text(), unique=True) for text in texts}
    return _Lookup(column, layout, distance, [shared[text] for text in texts])


@compiles(_Near, "postgresql")
def _near_sql(element: _Near, compiler: SQLCompiler, **options: Any) -> str:
    options.pop("add_to_result_map", None)
    options["include_table"] = True
    lookup, quote = element.lookup, compiler.preparer.quote
    table, name = compiler.preparer.format_table(lookup.column.table), str(lookup.column.name)
    sought = compiler.process(element.sought, **options)
    flips = [compiler.process(each, **options) for each in element.flips]
    # Some drivers would not send a bare number as bigint.
    query, simhash = f"CAST({sought} AS BIGINT)", f"_pgsimhash.{quote(name)}"
    # All interpolated parts are quoted, or made of numbers.
    parts = (
        f"SELECT {simhash} FROM {table} AS _pgsimhash "  # noqa: S608
        f"WHERE _pgsimhash.{quote(prefix_name(name, permutation))} = ANY (ARRAY("
        f"SELECT {prefix_of(permutation, query)} # _pgsimhash_flip "
        f"FROM unnest(CAST({flip} AS BIGINT[])) AS _pgsimhash_flip)) "
        f"AND {_bit_count(simhash, query)} <= {lookup.distance}"
        for permutation, flip in zip(lookup.layout.permutations, flips, strict=True)
    )
    return f"(ARRAY({' UNION ALL '.join(parts)}))"
