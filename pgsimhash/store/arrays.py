"""Convert rows to statement parameters: one array per column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FEW: Final = 8
"""Up to this many texts, psycopg's own adaptation is as fast."""


def as_columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return the columns for ``unnest``, by name; a column without values becomes None.

    Integers and texts are formatted here: psycopg inspects each value, which takes longer than the
    lookup of a batch.
    """
    if not rows:
        return dict.fromkeys(names, "{}")
    columns: dict[str, Any] = dict(zip(names, zip(*rows, strict=True), strict=True))
    for name, values in columns.items():
        kinds = set(map(type, values)) - {type(None)}
        if kinds == {int}:
            columns[name] = f"{{{','.join(map(str, values))}}}".replace("None", "NULL")
        elif kinds == {str} and len(values) > _FEW:
            columns[name] = as_texts(values)
        else:
            columns[name] = list(values) if kinds else None
    return columns


def as_texts(values: Sequence[str | None]) -> Any:
    """Return an array of texts."""
    texts: list[Any] = list(values)
    if None in texts:
        texts = [value for value in texts if value is not None]
    joined = "\0".join(texts)
    if joined.count("\0") >= max(1, len(texts)):
        # An invalid character: psycopg raises the error.
        return list(values)
    if not texts:
        return "{" + ",".join(["NULL"] * len(values)) + "}"
    quoted = '"' + joined.replace("\\", "\\\\").replace('"', '\\"').replace("\0", '"\0"') + '"'
    if len(texts) == len(values):
        return "{" + quoted.replace("\0", ",") + "}"
    rest = iter(quoted.split("\0"))
    return "{" + ",".join(["NULL" if value is None else next(rest) for value in values]) + "}"


def bigint_array(simhashes: NDArray[np.uint64]) -> str:
    """Return simhashes as a PostgreSQL array literal."""
    return f"{{{','.join(map(str, simhashes.view('int64').tolist()))}}}"
