"""Rows as parameters of a statement, an array for each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def as_columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return what ``unnest`` takes, by name; a column that says nothing is None.

    Columns of integers are written here: psycopg asks of each value what it is, which for a batch
    takes longer than the lookup.
    """
    if not rows:
        return dict.fromkeys(names, "{}")
    columns: dict[str, Any] = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    for name, values in columns.items():
        kinds = set(map(type, values)) - {type(None)}
        if not kinds:
            columns[name] = None
        elif kinds == {int}:
            columns[name] = f"{{{','.join(map(str, values))}}}".replace("None", "NULL")
    return columns
