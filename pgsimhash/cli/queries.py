"""Read simhashes to look up, one per line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.bits import check_simhash, format_simhash, parse_simhash


class Query(NamedTuple):
    """A simhash, and the keys to repeat in its matches."""

    simhash: int
    fields: dict[str, Any]


def read_queries(lines: Iterable[str], report: Callable[[str], None]) -> Iterator[Query]:
    """Yield the simhash of each line; report lines without one.

    Args:
        lines: each a simhash, or a JSON object with ``simhash``; empty lines are skipped.
        report: receives a message for each invalid line.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _parse(line)
        # JSON with a number of thousands of digits raises ValueError.
        except (ArgumentError, ValueError, RecursionError) as error:
            report(f"line {number}: {error}")


def _parse(line: str) -> Query:
    fields = json.loads(line) if line.lstrip().startswith("{") else {"simhash": line.strip()}
    value = fields.get("simhash")
    if value is None:
        raise ArgumentError("invalid_simhash", 'the object has no "simhash"')
    simhash = parse_simhash(value) if isinstance(value, str) else _number(value)
    return Query(simhash, {**fields, "simhash": format_simhash(simhash)})


def _number(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return parse_simhash(str(value)) if value < 0 else check_simhash(value)
    raise ArgumentError("invalid_simhash", f"{value!r} is not a simhash")
