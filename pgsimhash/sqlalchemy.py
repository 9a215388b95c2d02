"""Simhashes in the tables of a project of its own, by SQLAlchemy."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Computed, Index
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeDecorator

from pgsimhash.bits import from_bigint, to_bigint
from pgsimhash.layout import DEFAULT_LAYOUT, get_layout
from pgsimhash.permutation import Permutation


class SIMHASH(TypeDecorator[int]):
    """A simhash: an ``int`` with 0 <= x < 2**64 in Python, a ``bigint`` in the server."""

    impl = BigInteger
    cache_ok = True

    def __init__(self, layout: str | None = None) -> None:
        super().__init__()
        self.layout = None if layout is None else get_layout(layout).name

    def process_bind_param(self, value: int | None, dialect: object) -> int | None:
        """Return what the server stores for a simhash."""
        return None if value is None else to_bigint(value)

    def process_result_value(self, value: int | None, dialect: object) -> int | None:
        """Return the simhash that the server stored."""
        return None if value is None else from_bigint(value)


def simhash_columns(
    name: str = "simhash", layout: str = DEFAULT_LAYOUT.name, *, nullable: bool = True
) -> list[SchemaItem]:
    """Return what a table needs for a simhash that is searched: columns, and an index for each."""
    chosen = get_layout(layout)
    columns: list[Column[Any]] = [
        Column(name, SIMHASH(chosen.name), nullable=nullable),
        *(prefix_column(name, permutation) for permutation in chosen.permutations),
    ]
    # Without a name, so that they follow the naming convention of the table's metadata.
    indexes = [
        Index(None, name),
        *(Index(None, prefix_name(name, each), name) for each in chosen.permutations),
    ]
    return [*columns, *indexes]


def prefix_name(name: str, permutation: Permutation) -> str:
    """Return the name of the column with a permutation's prefix of the simhash ``name``."""
    return f"{name}_{permutation.column}"


def prefix_column(name: str, permutation: Permutation) -> Column[int]:
    """Return the column that the server fills with a permutation's prefix of ``name``."""
    quoted = PGDialect().identifier_preparer.quote(name)
    return Column(
        prefix_name(name, permutation),
        BigInteger,
        Computed(_prefix(permutation, quoted), persisted=True),
    )


def _prefix(permutation: Permutation, simhash: str) -> str:
    parts = (
        (f"(({simhash} >> {block.shift}) & {block.mask}::bigint)", position)
        for block, position in permutation.places
    )
    return " | ".join(f"({part} << {position})" if position else part for part, position in parts)
