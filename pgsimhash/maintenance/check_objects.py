"""Checks what the rows rely on: tables, indexes, constraints, triggers, functions, sequences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import psycopg
from psycopg import sql

from pgsimhash.errors import StoreError
from pgsimhash.layout import DEFAULT_LAYOUT, Layout, get_layout
from pgsimhash.maintenance.check_scope import Look, Row, Scope, rows_of, walk
from pgsimhash.maintenance.violations import Violation, violation
from pgsimhash.pinned import execute_alone
from pgsimhash.schema_names import schema_of
from pgsimhash.statements import layout_statements, query, schema_script, split_statements
from pgsimhash.store.collection import lock_collections


class Thing(NamedTuple):
    """A table; an index, a constraint, a trigger or a filled column of one; or a function.

    A function goes by its name with the types of its arguments.
    """

    kind: str
    table: str
    name: str


_CREATED: Final = {
    kind: re.compile(pattern, re.MULTILINE)
    for kind, pattern in {
        "index": r"^CREATE INDEX (?P<name>\w+)\s+ON \S+\.(?P<table>\w+)",
        "trigger": r"^CREATE TRIGGER (?P<name>\w+)\s+AFTER INSERT ON \S+\.(?P<table>\w+)",
    }.items()
}
# Each has a comment, which names the types alone.
_FUNCTION: Final = re.compile(r"^COMMENT ON (?:FUNCTION|PROCEDURE) \S+?\.(\w+\([^)]*\)) IS")
_TABLE: Final = re.compile(r"^CREATE TABLE \S+\.(\w+)", re.MULTILINE)
_CONSTRAINT: Final = re.compile(r"CONSTRAINT (\w+)")
_FILLED: Final = re.compile(r"^ +(\w+) .*GENERATED (?:ALWAYS|BY DEFAULT) AS ", re.MULTILINE)
_KEYS: Final = re.compile(r"^CREATE (UNIQUE )?INDEX.*? ON \S+ (?:USING btree )?(.*)", re.DOTALL)
_UNSAID: Final = re.compile(r"WITH \([^)]*\)|[\s()]")
"""What the server writes otherwise than the files, and what is no matter of right or wrong."""
_LAST_NUMBER: Final = 2**63 - 1
_LEFTOVER: Final = re.compile(r"_cc(?:new|old)\d*$")
"""What an interrupted REINDEX CONCURRENTLY leaves behind ends in this."""

_UNSOUND: Final = {
    "index": "index_invalid",
    "constraint": "constraint_unchecked",
    "trigger": "trigger_disabled",
    "column": "column_changed",
}

_MENDING: Final = {
    "index": "REINDEX INDEX CONCURRENTLY {thing}",
    "constraint": "ALTER TABLE {table} VALIDATE CONSTRAINT {name}",
    "trigger": "ALTER TABLE {table} ENABLE TRIGGER {name}",
}

PAGE_KEYS: Final = {"pages_pkey": "page_id", "pages_url_idx": "url", "pages_simhash_idx": "simhash"}
"""The indexes of pages that lookups and verdicts go by, and the column that each goes by."""


class State(NamedTuple):
    """Whether something can be relied on, None where that is open, and what an index is on."""

    sound: bool | None
    keys: str | None


def check_objects(scope: Scope) -> Iterator[Violation]:
    """Yield what is missing in the schema, is something else, or cannot be relied on."""
    expected = _expected(scope)
    there = _there(scope, expected)
    for thing, statement in expected.items():
        if thing not in there:
            reason = "column_changed" if thing.kind == "column" else f"{thing.kind}_missing"
            yield _told(scope, reason, thing, statement)
    for thing, state in there.items():
        if thing in _changed(there, expected):
            yield _told(scope, "index_changed", thing, None)
        # Other columns are not filled at all.
        elif state.sound is False and (thing.kind != "column" or thing in expected):
            yield _told(scope, _UNSOUND[thing.kind], thing, _MENDING.get(thing.kind))


def check_indexes(scope: Scope) -> Iterator[Violation]:
    """Yield the indexes through which rows are not found that a scan of the table finds."""
    sound = _usable(scope)
    for index, key in PAGE_KEYS.items():
        look = Look("unindexed_pages", "pages", scope.ids(), columns={"key": key})
        yield from _agreement(scope, Thing("index", "pages", index), sound, look)
    for layout in _layouts_of(scope):
        for index, column in _prefix_indexes(layout).items():
            places = {"table": layout.table}, {"column": column}
            look = Look("unindexed_simhashes", layout.table, scope.ids(layout.name), *places)
            yield from _agreement(scope, Thing("index", layout.table, index), sound, look)


def can_look_at_rows(scope: Scope) -> bool:
    """Return whether all is there that the rows are checked by."""
    expected = _expected(scope)
    wanted = {Thing("index", "pages", index) for index in PAGE_KEYS} | {
        Thing("index", layout.table, f"{layout.table}_pkey") for layout in _layouts_of(scope)
    }
    called = {thing for thing in expected if thing.kind in ("table", "column", "function")}
    return wanted <= _usable(scope) and called <= _there(scope, expected).keys()


def check_sequences(scope: Scope) -> Iterator[Violation]:
    """Yield the sequences that draw numbers which rows have already."""
    with scope.read() as connection:
        found = rows_of(connection, "sequences_behind", {})
    for behind in found:
        refused = _advance(scope, behind) if scope.repair else None
        repaired = scope.repair and refused is None
        yield violation("sequence_behind", None, repaired=repaired, refused=refused, **behind)


def _advance(scope: Scope, behind: Row) -> str | None:
    """Let a sequence go on after the last row; return why it may not be."""
    if behind["largest"] == _LAST_NUMBER:
        return "no number comes after that: give the row another one"
    try:
        with scope.write() as connection:
            # Page ids are drawn under the locks.
            lock_collections(connection, scope.collections)
            connection.execute(query("advance_sequence", connection), behind)
    except StoreError as error:
        if error.reason != "not_permitted":
            raise
        return str(error)
    return None


def _agreement(scope: Scope, index: Thing, sound: set[Thing], look: Look) -> Iterator[Violation]:
    # Without it, each row would be looked for in the whole table.
    missed = sum(len(rows) for rows, _ in walk(scope, look)) if index in sound else 0
    if missed:
        yield _told(scope, "index_disagrees", index, _MENDING["index"], rows=missed)


def _told(scope: Scope, reason: str, thing: Thing, mending: str | None, **where: int) -> Violation:
    """Mend something, where that is asked for and can be, and return what was the matter."""
    tries = scope.repair and mending is not None
    refused = _refusal(scope, thing, mending) if tries and mending is not None else None
    where_it_is = {"table": thing.table} if thing.table else {}
    return violation(
        reason,
        None,
        repaired=tries and refused is None,
        refused=refused,
        **where_it_is,
        **{thing.kind: thing.name},
        **where,
    )


def _refusal(scope: Scope, thing: Thing, mending: str) -> str | None:
    """Run a statement in no transaction; return what the server says against it."""
    if thing.kind == "index" and _LEFTOVER.search(thing.name):
        mending = "DROP INDEX CONCURRENTLY {thing}"
    with scope.read() as connection:
        schema = schema_of(connection)
        names = {
            "thing": sql.Identifier(schema, thing.name),
            "name": sql.Identifier(thing.name),
            "table": sql.Identifier(schema, thing.table),
        }
        try:
            statement = sql.SQL(mending).format(**names)
            if "CONCURRENTLY" in mending:
                execute_alone(connection, statement)
            else:
                connection.execute(statement)
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            return str(error).strip().splitlines()[0]
    return None


def _there(scope: Scope, expected: Iterable[Thing]) -> dict[Thing, State]:
    functions = [thing.name for thing in expected if thing.kind == "function"]
    with scope.read() as connection:
        wanted = {"schema": schema_of(connection), "functions": functions}
        rows = rows_of(connection, "objects", wanted)
    return {
        Thing(row["kind"], row["table"], row["name"]): State(row["sound"], _keys(row["definition"]))
        for row in rows
    }


def _usable(scope: Scope) -> set[Thing]:
    expected = _expected(scope)
    there = _there(scope, expected)
    sound = {thing for thing, state in there.items() if state.sound and thing.kind == "index"}
    return sound - _changed(there, expected)


def _changed(there: Mapping[Thing, State], expected: Mapping[Thing, str | None]) -> set[Thing]:
    """Return the indexes that are on something else than the schema says."""
    wanted = {
        thing: _keys(statement) for thing, statement in expected.items() if thing.kind == "index"
    }
    return {thing for thing, keys in wanted.items() if thing in there and there[thing].keys != keys}


def _keys(definition: str | None) -> str | None:
    """Return what an index is on, and where, in one spelling."""
    found = _KEYS.match((definition or "").replace(" CONCURRENTLY", ""))
    return found and f"{found[1] or ''}{_UNSAID.sub('', found[2])}"


def _expected(scope: Scope) -> dict[Thing, str | None]:
    """Return what there has to be, with the statement that creates it where one does that alone."""
    with scope.read() as connection:
        schema = schema_of(connection)
        layouts = rows_of(connection, "layouts", {})
    statements = split_statements(schema_script(schema))
    for row in layouts:
        layout = get_layout(row["name"])
        if layout != DEFAULT_LAYOUT:
            statements += layout_statements("table", layout, schema)
            statements += layout_statements("functions", layout, schema)
            # Those of a layout in which a collection is still being made are built at the end.
            statements += layout_statements("indexes", layout, schema) if row["used"] else []
    return {thing: creation for one in statements for thing, creation in _things(one)}


def _things(statement: str) -> Iterator[tuple[Thing, str | None]]:
    for kind, pattern in _CREATED.items():
        if found := pattern.search(statement):
            # What formats it puts names into braces.
            creation = statement[found.start() :].replace("{", "{{").replace("}", "}}")
            creation = creation.replace("CREATE INDEX", "CREATE INDEX CONCURRENTLY", 1)
            yield Thing(kind, found["table"], found["name"]), creation
    if function := _FUNCTION.search(statement):
        yield Thing("function", "", " ".join(function[1].split())), None
    if table := _TABLE.search(statement):
        yield Thing("table", "", table[1]), None
        for name in _CONSTRAINT.findall(statement):
            yield Thing("constraint", table[1], name), None
        for name in _FILLED.findall(statement):
            yield Thing("column", table[1], name), None


def _layouts_of(scope: Scope) -> list[Layout]:
    return [get_layout(name) for name in sorted({one.layout for one in scope.collections})]


def _prefix_indexes(layout: Layout) -> dict[str, str]:
    first, *others = [permutation.column for permutation in layout.permutations]
    return {
        f"{layout.table}_pkey": first,
        **{f"{layout.table}_{column}_idx": column for column in others},
    }
