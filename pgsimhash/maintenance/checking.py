"""Verify that the rows of a collection are consistent, and repair them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from pgsimhash.db.statements import fetch
from pgsimhash.hashing.bits import format_simhash
from pgsimhash.store import Store
from pgsimhash.store.lookups import count_pages, record_values

_SLICE: Final = 20_000
"""Approximate rows per statement."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A row that contradicts the others, or an object that runs code of another role.

    Attributes:
        collection: the name of the collection, None for an object of the schema.
        reason: a code; ``docs/maintain.md`` lists them.
        page_id: the id of the page, None for an object of the schema.
        url: the URL of the page.
        simhash: the simhash, None if the row has none.
        repair: how a repair changes the row, None if it does not.
        repaired: whether it was repaired.
        object: the object and the other role, None for a row.
    """

    collection: str | None
    reason: str
    page_id: int | None = None
    url: str | None = None
    simhash: int | None = None
    repair: str | None = None
    repaired: bool = False
    object: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the violation as JSON values."""
        simhash = None if self.simhash is None else format_simhash(self.simhash)
        return {**dataclasses.asdict(self), "simhash": simhash}


def check(store: Store, *, repair: bool = False) -> Iterator[Violation]:
    """Yield every row of the collection that contradicts the others, and objects of other roles.

    The objects come first. They are of the whole schema, and no repair changes them: triggers,
    rules and objects that run code of a role other than the schema's owner, and grants with which
    such a role can create them.

    The collection is checked in slices, each in one snapshot. So memory is bounded, and concurrent
    writers cause no false alarm. Only slices with a violation are locked, and only for a repair.

    Raises:
        StoreError: row security may hide rows from the role.
    """
    session = store.session
    with session.reading() as (connection, collection):
        slices = 1 + count_pages(connection, collection) // _SLICE
        objects = foreign_objects(connection)
    yield from objects
    for number in range(slices):
        with session.reading() as (connection, collection):
            violations = _slice(connection, collection.name, number, slices, repair=False)
        if violations and repair:
            with session.writing() as (connection, collection):
                violations = _slice(connection, collection.name, number, slices, repair=True)
        yield from violations


def foreign_objects(connection: psycopg.Connection[Any]) -> list[Violation]:
    """Return the objects of the schema that run code of another role."""
    return [
        Violation(None, reason, object=f"{described}, of the role {role}")
        for reason, described, role in fetch(connection, "foreign_objects")
    ]


def _slice(
    connection: psycopg.Connection[Any], collection: str, number: int, slices: int, *, repair: bool
) -> list[Violation]:
    values = {"collection": collection, "repair": repair, "slice": number, "slices": slices}
    rows = fetch(connection, "check_collection", values, dict_row)
    return [Violation(collection, **record_values(row), repaired=repair) for row in rows]
