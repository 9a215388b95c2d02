"""Checks the rows of collections: simhashes, originals, runs, marks and settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pgsimhash.bits import from_bigint
from pgsimhash.layout import Layout, get_layout
from pgsimhash.maintenance.check_scope import (
    Connection,
    Look,
    Mend,
    Row,
    Scope,
    Values,
    by_collection,
    rows_of,
    walk,
)
from pgsimhash.maintenance.violations import Violation, violation
from pgsimhash.schema_names import schema_of
from pgsimhash.statements import query
from pgsimhash.store.collection import Collection, lock_collections

_RUNS: Final = 1000
"""How many runs are counted in one statement."""


def check_rows(scope: Scope) -> Iterator[Violation]:
    """Yield what is wrong with the rows of the collections, table by table."""
    for name in sorted({one.layout for one in scope.collections}):
        yield from _simhashes(scope, get_layout(name))
    ids = scope.ids()
    originals = Look("wrong_originals", "pages", ids)
    yield from _found(scope, None, originals, _mend_originals)
    yield from _found(scope, "run_unknown", Look("pages_without_run", "pages", ids), _list_runs)
    yield from _found(scope, "seen_astray", Look("seen_without_page", "last_seen", ids), _forget)
    for collection in scope.collections:
        if collection.source_id is None:
            yield from _runs(scope, collection)
        yield from _marks(scope, collection)
        yield from _distances(scope, collection)
    yield from _astray(scope)


def _simhashes(scope: Scope, layout: Layout) -> Iterator[Violation]:
    """Check a layout's table, and that the pages of its collections are found there."""
    ids = scope.ids(layout.name)
    things = {"table": layout.table, "prefix": f"prefix{layout.suffix}"}
    for permutation in layout.permutations:
        columns = {"column": permutation.column}
        number = {"permutation": permutation.number}
        wrong = Look("wrong_prefixes", layout.table, ids, things, columns, number)
        yield from _found(scope, "prefix_wrong", wrong, _fill_prefixes)
    missing = Look("pages_without_simhash", "pages", ids, things)
    yield from _found(scope, "simhash_missing", missing, _put_simhashes)
    table = {"table": layout.table}
    unused = Look("simhashes_without_page", layout.table, ids, table)
    yield from _found(scope, "simhash_unused", unused, _drop_simhashes)


def _found(scope: Scope, reason: str | None, look: Look, mend: Mend) -> Iterator[Violation]:
    """Yield what a look finds; without a reason, its rows say it."""
    for rows, left in walk(scope, look, mend):
        for row in rows:
            told = {"table": look.things.get("table", look.table), **look.columns, **row}
            if "simhash" in row:
                told["simhash"] = f"{from_bigint(row['simhash']):016x}"
            code = reason or told.pop("reason")
            name = scope.name(told.pop("collection_id"))
            yield violation(code, name, repaired=row not in left, **told)


def _fill_prefixes(connection: Connection, look: Look, rows: Sequence[Row], bounds: Values) -> None:
    place = {"table": look.table, "column": look.columns["column"], "schema": schema_of(connection)}
    (column,) = rows_of(connection, "is_generated", place)
    statement = "fill_prefixes" if column["generated"] else "set_prefixes"
    connection.execute(look.text(connection, statement), {**look.values, **bounds})
    _note(connection, rows)


def _put_simhashes(connection: Connection, _: Look, rows: Sequence[Row], __: Values) -> None:
    for collection_id, own in by_collection(rows):
        simhashes = {row["simhash"] for row in own}
        values = {"collection_id": collection_id, "simhashes": sorted(simhashes)}
        connection.execute(query("put_simhashes", connection), values)
    _note(connection, rows)


def _drop_simhashes(connection: Connection, _: Look, rows: Sequence[Row], __: Values) -> None:
    for collection_id, own in by_collection(rows):
        values = {"collection_id": collection_id, "simhashes": [row["simhash"] for row in own]}
        connection.execute(query("drop_simhashes", connection), values)


def _note(connection: Connection, rows: Sequence[Row]) -> None:
    """Let those forget who hold simhashes in memory: they hear of pages only."""
    for collection_id, _ in by_collection(rows):
        connection.execute(query("note_load", connection), {"collection_id": collection_id})


def _mend_originals(connection: Connection, _: Look, rows: Sequence[Row], __: Values) -> None:
    gone = [row for row in rows if row["reason"] == "original_missing"]
    _by_pages(connection, "reset_originals", gone)
    wrong = [row for row in rows if row["reason"] == "distance_wrong"]
    _by_pages(connection, "correct_distances", wrong)


def _list_runs(connection: Connection, _: Look, rows: Sequence[Row], __: Values) -> None:
    _by_pages(connection, "extend_runs", rows)


def _forget(connection: Connection, _: Look, rows: Sequence[Row], __: Values) -> None:
    _by_pages(connection, "forget_seen", rows)


def _by_pages(connection: Connection, statement: str, rows: Sequence[Row]) -> None:
    for collection_id, own in by_collection(rows):
        values = {"collection_id": collection_id, "page_ids": [row["page_id"] for row in own]}
        connection.execute(query(statement, connection), values)


def _runs(scope: Scope, collection: Collection) -> Iterator[Violation]:
    """Check that the figures of runs add up, and that no more pages are there than they stored."""
    after_run = 0
    while rows := _some_runs(scope, collection, after_run):
        after_run = rows[-1]["run_id"]
        for row in rows:
            if row["pages"] == row["counted"] and row["there"] <= row["stored"]:
                continue
            if scope.repair:
                missing = max(0, row["there"] - row["stored"])
                with scope.write() as connection:
                    lock_collections(connection, [collection], loaders=True)
                    values = {"run_id": row["run_id"], "missing": missing}
                    scoped = {"collection_id": collection.collection_id, **values}
                    connection.execute(query("correct_run", connection), scoped)
            yield violation(
                "run_miscounted", collection.name, repaired=scope.repair, table="runs", **row
            )


def _some_runs(scope: Scope, collection: Collection, after_run: int) -> list[Row]:
    values = {"after_run": after_run, "batch": _RUNS, "collection_id": collection.collection_id}
    with scope.read() as connection:
        return rows_of(connection, "runs_with_pages", values)


def _marks(scope: Scope, collection: Collection) -> Iterator[Violation]:
    values = {"collection_id": collection.collection_id, "collection": collection.name}
    with scope.read() as connection:
        rows = rows_of(connection, "contrary_marks", values)
    for row in rows:
        yield violation("marks_contrary", collection.name, table="marks", **row)


def _distances(scope: Scope, collection: Collection) -> Iterator[Violation]:
    with scope.read() as connection:
        values = {"collection_id": collection.collection_id}
        rows = rows_of(connection, "unanswered_distances", values)
    for row in rows:
        yield violation("distance_unanswered", collection.name, **row)


def _astray(scope: Scope) -> Iterator[Violation]:
    """Check that no collection has rows where nobody looks for them, and no gone one has any."""
    with scope.read() as connection:
        layouts = [get_layout(row["name"]) for row in rows_of(connection, "layouts", {})]
        pages = rows_of(connection, "stray_pages", {}) if scope.everything else []
    for row in pages:
        yield violation("page_astray", None, table="pages", **row)
    for collection_id in [None] if scope.everything else scope.ids():
        for layout in layouts:
            yield from _stray_simhashes(scope, layout, collection_id)


def _stray_simhashes(
    scope: Scope, layout: Layout, collection_id: int | None
) -> Iterator[Violation]:
    look = Look("stray_simhashes", layout.table, [], {"table": layout.table})
    with scope.read() as connection:
        rows = look.rows(connection, {"layout": layout.name, "collection_id": collection_id})
    for row in rows:
        if scope.repair:
            with scope.write() as connection:
                gone = {"collection_ids": [row["collection_id"]], "loaders": True}
                connection.execute(query("lock_collections", connection), gone)
                drop = look.text(connection, "drop_strays")
                connection.execute(drop, {"collection_id": row["collection_id"]})
        yield violation(
            "simhash_astray",
            row.pop("name"),
            repaired=scope.repair and row["bare"] == 0,
            table=layout.table,
            **row,
        )
