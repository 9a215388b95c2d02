"""Rows as parameters of a statement, an array for each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def as_columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return what ``unnest`` takes, by name; a column that says nothing is None.

    Columns of integers and of texts are written here: psycopg asks of each value what it is, which
    for a batch takes longer than the lookup.
    """
    if not rows:
        return dict.fromkeys(names, "{}")
    return {
        name: as_array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)
    }


def as_array(values: Sequence[Any]) -> Any:
    """Return a column as a parameter, None if it says nothing."""
    kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return None if values else "{}"
    if kinds == {int}:
        return f"{{{','.join(map(str, values))}}}".replace("None", "NULL")
    if kinds == {str}:
        return _as_texts(values)
    return list(values)


def _as_texts(values: Sequence[str | None]) -> str | list[str | None]:
    """Return an array of texts, all of them escaped at once."""
    given = [value for value in values if value is not None]
    joined = "\0".join(given)
    if joined.count("\0") >= len(given):
        # One that PostgreSQL has no place for: psycopg says so.
        return list(values)
    quoted = '"' + joined.replace("\\", "\\\\").replace('"', '\\"').replace("\0", '"\0"') + '"'
    if len(given) == len(values):
        return "{" + quoted.replace("\0", ",") + "}"
    rest = iter(quoted.split("\0"))
    return "{" + ",".join("NULL" if value is None else next(rest) for value in values) + "}"
