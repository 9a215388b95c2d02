"""Verifies collections in bounded memory, explains what is wrong, and mends what can be mended.

What is read is so in one snapshot, and whatever writes is one transaction: writers that go on
meanwhile make no false alarm. Tables are read as they lie on disk, so that indexes are held against
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import class_row

from pgsimhash.connection import translated_errors
from pgsimhash.maintenance.check_objects import (
    can_look_at_rows,
    check_indexes,
    check_objects,
    check_sequences,
)
from pgsimhash.maintenance.check_rows import check_rows
from pgsimhash.maintenance.check_scope import Connection, Scope
from pgsimhash.maintenance.check_verdicts import check_verdicts
from pgsimhash.maintenance.rebuild_work import check_autocommit
from pgsimhash.maintenance.violations import Violation
from pgsimhash.pinned import pinned
from pgsimhash.schema_names import bound_to_schema
from pgsimhash.statements import query
from pgsimhash.store import Store
from pgsimhash.store.collection import Collection
from pgsimhash.store.session import LOCK_TIMEOUT


def check(store: Store, *, repair: bool = False, verdicts: bool = False) -> Iterator[Violation]:
    """Yield what is wrong with the collection and with what the schema has beside its rows.

    Checked are: that each page's simhash is in the table of the layout with the prefixes that the
    layout gives, and no simhash without a page but those added by themselves; that a scan finds
    nothing that the indexes do not; that originals are there and as far away as is said; runs,
    marks, policies, sequences; indexes, constraints, triggers and functions of the schema. While an
    index that lookups go by is not sound, no row is looked at.

    It writes nothing unless it repairs, and then in short transactions under the collection's lock.
    Nothing that anybody stored goes: where the right way is not certain, it is left.

    Args:
        store: whose collection it is, over a connection with ``autocommit`` such as its own.
        repair: whether to mend what can be mended.
        verdicts: whether to give each page its verdict again, by the present settings, and to
            tell of those that count as originals and would not. That is certain only where nothing
            was deleted, no settings or marks changed and no call named its own.

    Raises:
        CollectionError: no collection of the scheme has the name any more.
        StoreError: the connection is in a transaction, row security may hide rows from the role,
            or the database does not answer.
    """
    session = store.session
    with session.reading() as (connection, collection):
        check_autocommit(connection, "a check")
    scope = Scope(session.read, session.transaction, (collection,), everything=False, repair=repair)
    yield from _check(scope, verdicts=verdicts)


def check_all(
    connection: psycopg.Connection[Any], *, repair: bool = False, verdicts: bool = False
) -> Iterator[Violation]:
    """Do as :func:`check` for all collections, each table read once, and for what none has.

    The schema is that of :func:`pgsimhash.maintenance.delete_collection`.

    Raises:
        StoreError: the connection is in a transaction, row security may hide rows from the role,
            or the database does not answer.
    """
    connection = pinned(connection)
    with bound_to_schema(connection):
        check_autocommit(connection, "a check")

    @contextmanager
    def read() -> Iterator[Connection]:
        with translated_errors(connection):
            yield connection

    @contextmanager
    def write() -> Iterator[Connection]:
        with translated_errors(connection), connection.transaction():
            bounds = {"lock_timeout": None, "otherwise": LOCK_TIMEOUT}
            connection.execute(query("bound_waits", connection), bounds)
            yield connection

    with read(), connection.cursor(row_factory=class_row(Collection)) as cursor:
        found = cursor.execute(query("all_collections", connection)).fetchall()
    scope = Scope(read, write, tuple(found), everything=True, repair=repair)
    yield from _check(scope, verdicts=verdicts)


def _check(scope: Scope, *, verdicts: bool) -> Iterator[Violation]:
    yield from check_objects(scope)
    disagree = False
    for violation in check_indexes(scope):
        disagree |= not violation.repaired
        yield violation
    # What is not found through such an index may be there, and a repair would do harm.
    if not disagree and can_look_at_rows(scope):
        with scope.read() as connection:
            connection.execute(query("check_row_security", connection))
        yield from check_rows(scope)
        yield from check_sequences(scope)
        if verdicts:
            yield from check_verdicts(scope)
