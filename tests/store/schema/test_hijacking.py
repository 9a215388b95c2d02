"""Other users' functions and operators never run with the rights of the schema's users.

A second role creates better matches for all calls in `public`. Any role with the right to create
objects there can do so: on PostgreSQL 14, and in databases upgraded from it, that is every role. By
default its functions win if PostgreSQL's own have other argument types; with `public` before
`pg_catalog` they always win.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from alembic import command
from pgsimhash.store.layouts import set_default_layout
from pgsimhash.store.loading import LARGE
from psycopg import conninfo, sql
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

import pgsimhash
from pgsimhash import Store, analysis, connect, connect_async, maintenance
from pgsimhash.db import migrate, statements
from pgsimhash.db.pinned import pinned
from pgsimhash.db.schema_names import SCHEMA
from pgsimhash.maintenance.removal import delete_collection
from pgsimhash.pages.match_settings import MatchOptions
from pgsimhash.pages.policies import PolicySettings
from pgsimhash.search.layout import LAYOUTS
from pgsimhash.store.collection import collection_names
from pgsimhash.store.lookups import find_each
from pgsimhash.store.runs import Run, is_stored
from pgsimhash.testing import fresh_database
from tests.pooler import PROGRAM, REQUIRED, pooler
from tests.refusals import sqlstate
from tests.roles import dropped_afterwards
from tests.store.content import rebuild_apart
from tests.store.maintain.test_rebuilding_scheme import WORDS
from tests.store.test_store import FAR, page, paragraph

NOW = datetime.now(UTC)
DAY = timedelta(days=1)

PINNED = "search_path=pg_catalog, pg_temp"

TYPES = (
    *("boolean", "smallint", "integer", "bigint", "numeric", "real", "double precision"),
    *("oid", "regclass", "tid", "text", "character varying", "name", "bytea", "jsonb"),
    *("interval", "timestamp with time zone", "timestamp with time zone[]"),
    *("smallint[]", "integer[]", "bigint[]", "text[]", "character varying[]"),
)
OPERATORS = (
    *("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||"),
    *("#", "&", "|", "<<", ">>", "?", "~", "!~", "~~", "@>"),
)

BODY = "LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'hijacked'; END$$"

INTERNAL = {"internal", "cstring", '"any"', "record", "trigger"}

# Syntax that looks like a call; and unnest of several arrays, which PostgreSQL's grammar resolves
# and which cannot be qualified.
NO_CALLS = {"coalesce", "greatest", "least", "nullif"}
SEVERAL = {"add_pages", "ask"}


def without_texts(script: str) -> str:
    """The script without its comments, and with empty strings."""
    return re.sub(r"--[^\n]*|'(?:[^']|'')*'", "''", script)


def calls(script: str) -> set[str]:
    """The unqualified function calls of a script."""
    found = re.findall(r"(?<![\w.$%])([a-z_]\w*)\s*\(", without_texts(script))
    aliases = re.findall(r"\bAS (\w+) \(", script)
    return set(found) - NO_CALLS - set(aliases)


def plant(connection: psycopg.Connection) -> None:
    """Create functions and operators in `public` for types that PostgreSQL would convert."""
    scripts = [migrate.upgrade_sql(), *statements.queries().values()]
    called = {name for script in scripts for name in re.findall(r"\b([a-z_]\w*)\(", script)}
    known = connection.execute(
        "SELECT DISTINCT proname, pronargs, provariadic <> 0 FROM pg_proc "
        "WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY (%s)",
        [sorted(called)],
    ).fetchall()
    signatures: list[tuple[str, ...]] = [*product(TYPES), *product(TYPES, TYPES)]
    signatures += [("text",) * 3, ("text",) * 4]
    functions = {
        (name, *signature): "bigint"
        for name, count, variadic in known
        for signature in signatures
        if len(signature) == count or (variadic and len(signature) >= count)
    }
    # Also copies of PostgreSQL's own, for arguments of plpgsql.
    for name, signature, returned in connection.execute(
        "SELECT proname, ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes) AS t), "
        "format_type(prorettype, NULL) FROM pg_proc "
        "WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND proname = ANY (%s)",
        [sorted(called)],
    ):
        if not INTERNAL & {*signature, returned}:
            functions[name, *signature] = returned
    exact = connection.execute(
        "SELECT oprname, format_type(oprleft, NULL), format_type(oprright, NULL) FROM pg_operator "
        "WHERE oprleft <> 0 AND 'record'::regtype NOT IN (oprleft, oprright)"
    ).fetchall()
    operators = {*product(OPERATORS, TYPES, TYPES), *exact}
    functions |= {("taken", *pair): "boolean" for _, *pair in operators}
    made = [
        f"CREATE FUNCTION public.{name}({', '.join(signature)}) RETURNS {returned} {BODY}"
        for (name, *signature), returned in functions.items()
    ]
    made += [
        f"CREATE OPERATOR public.{operator} "
        f"(FUNCTION = public.taken, LEFTARG = {left}, RIGHTARG = {right})"
        for operator, left, right in operators
    ]
    made += [f"CREATE TABLE public.{name} ()" for name in ("added", "removed", "masks", "pages")]
    made += [f"CREATE TABLE public.{name} ()" for name in ("c", "simhashes")]
    connection.execute(";\n".join(made))


@pytest.fixture(scope="module")
def second_role(server_dsn: str) -> Iterator[str]:
    """A role without rights."""
    name = f"pgsimhash_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(name)))
        yield name
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


@pytest.fixture(scope="module")
def planted(server_dsn: str, second_role: str) -> Iterator[str]:
    """The name of a database without the schema, in whose `public` the second role waits."""
    role = sql.Identifier(second_role)
    with fresh_database(server_dsn) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(role))
            connection.execute(sql.SQL("SET ROLE {}").format(role))
            plant(connection)
        yield str(conninfo.conninfo_to_dict(dsn)["dbname"])


@pytest.fixture
def hostile_dsn(server_dsn: str, planted: str) -> Iterator[str]:
    """The DSN of a copy of that database."""
    with fresh_database(server_dsn, planted) as dsn:
        yield dsn


def with_path(dsn: str, path: str) -> str:
    return conninfo.make_conninfo(dsn, options=f"-csearch_path={path}")


def deploy_all(dsn: str) -> None:
    """Deploy the schema and every layout."""
    migrate.upgrade(dsn)
    for layout in LAYOUTS:
        connect(dsn, collection=layout, layout=layout).close()


def fill(store: Store) -> None:
    for number, age in ((1, 90), (2, 80), (2, 70), (3, 60), (4, 1)):
        html = page(paragraph(number), paragraph(number + age))
        store.ingest(f"https://a.example/{number}", html, fetched_at=NOW - age * DAY)
    store.ingest("https://b.example/1", page(paragraph(1), paragraph(91)))
    store.ingest("https://b.example/1", page(paragraph(1), paragraph(91)))
    store.add_simhashes(np.array([5, 6, 5], dtype=np.uint64))
    # A large batch takes several statements.
    large = [(f"https://z.example/{n}", FAR) for n in range(20)]
    pages = [("https://c.example/1", 5), ("https://c.example/2", 7), *large]
    list(store.add_many(pages, window_size=9))
    wide = MatchOptions(scope="global", distance=3, max_age=DAY, verify=True)
    list(store.add_many([("https://c.example/3", FAR)], **wide))


def read_again(store: Store) -> None:
    file = Path(__file__).parents[3] / "examples" / "pages" / "tide-pools.html"
    assert [len(list(maintenance.ingest_files(store, [file]))) for _ in range(2)] == [1, 0]


def look_up(store: Store) -> None:
    assert len(store.find(5, 8)) == 3
    assert len(store.find(5, 8, host="c.example", since=NOW - DAY, limit=9)) == 2
    assert len(store.near_pages(5, 8)) == 2
    assert len(store.near_pages("https://c.example/1", 8, limit=3)) == 1
    assert store.exists(5)
    asked = np.array([5, FAR], dtype=np.uint64)
    assert len(store.find_many(asked).queries) == 4
    with store.session.looking_up(8) as (connection, collection):
        assert len(find_each(connection, collection, [5, FAR], 8)[0]) == 3
    with store.session.read() as connection:
        for run in (None, Run(2**62, "nobody")):
            assert not is_stored(connection, store.opened, [], run)
        store.session.memory.take_in(connection, store.opened)
    assert len(store.find_many(asked).queries) == 4
    assert len(analysis.simhashes(store)) == 9
    assert len(analysis.sample(store, 100)[0]) == 28
    labelled = [analysis.LabelledPair("https://a.example/1", "https://a.example/2", "copy")]
    assert analysis.evaluate(labelled, store).left_out == 0
    assert store.get("https://a.example/1") is not None
    assert store.decide("https://a.example/9", page(paragraph(4), paragraph(5))).duplicate_of
    analysis.explain(store, "https://a.example/1", "https://b.example/1")
    assert len(analysis.versions(store, "https://a.example/2")) == 2
    assert store.should_fetch("https://a.example/2", older_than=DAY) in (True, False)
    assert analysis.report(store).all_clusters
    assert any(row.pages for row in store.status())
    assert sum(len(block.low) for block in store.pairs(8))
    assert list(analysis.page_pairs(store, 8))
    assert store.save_clusters(8)


def change(store: Store) -> None:
    maintenance.change_settings(store, distance=3)
    maintenance.change_settings(store, distance=8)
    maintenance.mark(store, "https://a.example/1", "https://a.example/2", same=False)
    maintenance.mark(store, "https://a.example/1", "https://c.example/1", same=True)
    assert maintenance.unmark(store, "https://a.example/1", "https://a.example/2")
    assert len(maintenance.marks(store)) == 1
    maintenance.set_policy(
        store, "a.example/*", PolicySettings(max_copies=2, expire_after=30 * DAY)
    )
    maintenance.set_policy(store, "d.example", PolicySettings(window_size=3))
    assert maintenance.policy_for(store, "https://www.a.example/").max_copies == 2
    assert maintenance.remove_policy(store, "e.example") is False
    assert len(maintenance.policies(store)) == 2
    store.ingest("https://d.example/1", page(paragraph(6), paragraph(7)))
    name = f"{store.collection} anew"
    rebuild_apart(store, name, scheme=WORDS)
    maintenance.rebuild(store, distance=3, scope="global", replace=True)


def move(store: Store, layout: str, connection: psycopg.Connection) -> None:
    connection = pinned(connection)
    store.add_simhashes(np.array([77], dtype=np.uint64))
    for step in (layout, "22+21+21"):
        maintenance.rebuild(store, layout=step, replace=True)
    set_default_layout(connection, LAYOUTS[layout])
    set_default_layout(connection, LAYOUTS["22+21+21"])


def remove(store: Store) -> None:
    assert store.expire()
    store.expire(50 * DAY)
    assert store.delete("https://c.example/2").versions == 1
    assert store.delete_host("b.example").versions == 1
    store.start_run("last")
    store.add("https://a.example/5", 99)
    assert maintenance.undo(store)[1].versions == 1
    maintenance.rename(store, f"{store.collection} renamed")


HARM = """
UPDATE pgsimhash.pages SET duplicate_of = 0, distance = 0 WHERE url = 'https://c.example/3';
UPDATE pgsimhash.pages SET distance = 12 WHERE duplicate_of IS NOT NULL AND url <> '';
INSERT INTO pgsimhash.last_seen (collection_id, page_id, seen_at)
SELECT collection_id, 0, pg_catalog.now() FROM pgsimhash.collections;
DELETE FROM pgsimhash.simhashes;
INSERT INTO pgsimhash.simhashes (collection_id, simhash, standalone)
SELECT collection_id, 4711, false FROM pgsimhash.collections
"""


def harm_and_repair(store: Store, clean: psycopg.Connection) -> None:
    for statement in HARM.split(";\n"):
        clean.execute(statement)
    found = {one.reason for one in maintenance.check(store, repair=True)}
    assert len(found) >= 4
    assert list(maintenance.check(store)) == []


SQL = """
SELECT * FROM pgsimhash.near_duplicates(7, 3, 'sql');
SELECT * FROM pgsimhash.near_pages(7, 3, 'sql');
SELECT * FROM pgsimhash.near_duplicates(ARRAY[7, 8], 3, 'sql');
SELECT pgsimhash.has_near_duplicate(7, 3, 'sql');
SELECT pgsimhash.probes(7, 1, 2, 1), pgsimhash.radii(5), pgsimhash._flips(1, 3);
SELECT pgsimhash.add_simhashes('sql', ARRAY[1, 2, 2]), pgsimhash.count_simhashes('sql');
SELECT pgsimhash._simhash_slice('sql', 0, 2), pgsimhash.delete_simhashes('sql', ARRAY[1]);
SELECT pgsimhash.delete_url('sql', 'x'), pgsimhash.delete_host('sql', 'x');
INSERT INTO pgsimhash.pages (collection_id, url, simhash, fetched_at)
SELECT collection_id, 'https://a.example/' || n::text, n, now() - interval '99 days'
FROM pgsimhash.collections, pg_catalog.generate_series(1, 9) AS n WHERE name = 'sql';
SELECT * FROM pgsimhash.near_pages('https://a.example/1', 3, 'sql');
SELECT pgsimhash.set_policy('sql', 'a.example/*', expire_after => interval '90 days');
SELECT * FROM pgsimhash.policy_for('sql', 'https://a.example/1');
SELECT pgsimhash.mark('sql', 'https://a.example/1', 'https://a.example/2', false);
SELECT pgsimhash.mark('sql', 'https://a.example/1', 'https://a.example/3', true);
SELECT pgsimhash.unmark('sql', 'https://a.example/1', 'https://a.example/2');
CALL pgsimhash.expire('sql', batch => 4);
CALL pgsimhash.expire('sql', interval '1 day');
SELECT pgsimhash.remove_policy('sql', 'a.example/*');
SELECT pgsimhash.rename_collection('sql', 'other', true);
SELECT pgsimhash._masks(8, 3), pgsimhash.signature_distance(1, 2, 3, 4)
"""


def test_unprotected_statements_call_the_planted_functions(hostile_dsn: str) -> None:
    with psycopg.connect(hostile_dsn, autocommit=True) as connection:
        for trap in (
            "SELECT format('%s', 'text'::text)",
            "SELECT unnest(ARRAY[1, 2])",
            "SELECT 1::bigint & 1",
            "SELECT nextval('name'::text)",
            "SELECT ARRAY['a'] || ARRAY['b']",
            "SELECT 'pg_class'::regclass = 1::oid",
        ):
            with pytest.raises(psycopg.errors.RaiseException, match="hijacked"):
                connection.execute(trap)


@pytest.mark.parametrize("path", ["public", "public,pg_catalog"])
def test_a_superuser_runs_nothing_of_another_role_from_python(hostile_dsn: str, path: str) -> None:
    """All calls, over a connection of the store and over the caller's."""
    statements.query_in.cache_clear()
    clean_dsn = with_path(hostile_dsn, "pg_catalog")
    hostile_dsn = with_path(hostile_dsn, path)
    migrate.upgrade(hostile_dsn)
    roles = migrate.create_roles(hostile_dsn, f"test_{uuid.uuid4().hex[:12]}")
    with (
        dropped_afterwards(clean_dsn, roles),
        psycopg.connect(clean_dsn, autocommit=True) as clean,
        psycopg.connect(hostile_dsn, autocommit=True) as connection,
        connect(hostile_dsn, collection="one", keep_markdown=True, statement_timeout=60) as opened,
    ):
        lent = connect(connection, collection="two", keep_markdown=True)
        with connect(hostile_dsn, collection="three", layout="32+32") as loaded:
            assert loaded.add_simhashes(np.arange(LARGE, dtype=np.uint64)) == LARGE
        for store, layout in ((opened, "16+16+16+16"), (lent, "5 choose 2")):
            fill(store)
            look_up(store)
            with connection.transaction():
                assert [list(lent.clusters(8)) for _ in range(2)]
            change(store)
            move(store, layout, connection)
            remove(store)
            read_again(store)
        assert "one renamed" in collection_names(pinned(connection))
        delete_collection(connection, "one renamed")
        harm_and_repair(connect(connection, collection="two renamed", create=False), clean)
        assert connection.execute("SHOW search_path").fetchone() == (path,)
    unused = set(statements.queries()) - used_queries()
    assert unused == {"pin_search_path", "unpin_search_path", "is_worker"}


@pytest.fixture
def waiting_dsn(hostile_dsn: str) -> str:
    """The DSN of a database with the schema, in which `public` is first in every search_path."""
    clean_dsn = with_path(hostile_dsn, "pg_catalog")
    migrate.upgrade(clean_dsn)
    with psycopg.connect(clean_dsn, autocommit=True) as connection:
        database = sql.Identifier(connection.info.dbname)
        path = sql.SQL("ALTER DATABASE {} SET search_path = public, pg_catalog")
        connection.execute(path.format(database))
    return hostile_dsn


@contextmanager
def opened_over(kind: str, dsn: str, folder: Path) -> Iterator[tuple[Any, Any]]:
    """A source for a store, and a connection of the same session, if there is one."""
    if kind == "pool":
        with ConnectionPool(dsn, min_size=1, max_size=1) as pool:
            yield pool, None
    elif kind == "pooler":
        with pooler(dsn, folder, 1) as pooled, psycopg.connect(pooled, autocommit=True) as other:
            yield pooled, other
    elif kind == "Session":
        # SQLAlchemy's own queries when it connects are not checked.
        clean = conninfo.make_conninfo(dsn, options="-csearch_path=pg_catalog")
        engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(clean))
        with Session(engine) as session:
            session.execute(text("SET search_path = public, pg_catalog"))
            yield session, session.connection().connection.driver_connection
        engine.dispose()
    else:
        with psycopg.connect(dsn, autocommit=kind == "autocommit") as connection:
            yield connection, connection


@pytest.mark.parametrize("kind", ["autocommit", "transaction"])
def test_with_a_libpq_that_has_no_pipelines(
    waiting_dsn: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psycopg.Pipeline, "is_supported", lambda: False)
    test_whatever_a_store_is_opened_over(waiting_dsn, kind, tmp_path)


@pytest.mark.parametrize("kind", ["autocommit", "transaction", "Session", "pool", "pooler"])
def test_whatever_a_store_is_opened_over(waiting_dsn: str, kind: str, tmp_path: Path) -> None:
    if kind == "pooler" and PROGRAM is None and not REQUIRED:
        pytest.skip("pgbouncer is not installed")
    with opened_over(kind, waiting_dsn, tmp_path) as (where, session):
        store = connect(where, keep_markdown=True)
        fill(store)
        look_up(store)
        # Calls that need many transactions are refused in one.
        if kind not in ("transaction", "Session"):
            change(store)
            remove(store)
        assert store.delete_host("a.example").versions
        if session is not None:
            assert session.execute("SHOW search_path").fetchone() == ("public, pg_catalog",)
        store.close()


@pytest.mark.parametrize("kind", ["DSN", "autocommit", "transaction", "pool"])
def test_whatever_an_asynchronous_store_is_opened_over(waiting_dsn: str, kind: str) -> None:
    async def use(where: Any) -> None:
        async with await connect_async(where) as store:
            await store.ingest("https://a.example/1", page(paragraph(1), paragraph(2)))
            assert (await store.add("https://a.example/2", 5)).verdict == "new"
            assert [match.distance for match in await store.find(7)] == [1]
            assert (await store.delete("https://a.example/2")).versions == 1

    async def run() -> None:
        if kind == "DSN":
            await use(waiting_dsn)
        elif kind == "pool":
            async with AsyncConnectionPool(waiting_dsn, open=False, min_size=1) as pool:
                await use(pool)
        else:
            async with await psycopg.AsyncConnection.connect(
                waiting_dsn, autocommit=kind == "autocommit"
            ) as connection:
                await use(connection)
                cursor = await connection.execute("SHOW search_path")
                assert await cursor.fetchone() == ("public, pg_catalog",)

    asyncio.run(run())


def used_queries() -> set[str]:
    """The queries that Python has read from their files."""
    before = statements.query_in.cache_info().misses
    used = set()
    for name in statements.queries():
        statements.query_in(name, SCHEMA)
        if statements.query_in.cache_info().misses == before:
            used.add(name)
        before = statements.query_in.cache_info().misses
    return used


def test_a_superuser_runs_nothing_of_another_role_from_sql(hostile_dsn: str) -> None:
    deploy_all(hostile_dsn)
    for name in ("sql", "other"):
        connect(hostile_dsn, collection=name).close()
    with psycopg.connect(hostile_dsn, autocommit=True) as connection:
        for statement in SQL.split(";\n"):
            connection.execute(statement)
        for layout in LAYOUTS:
            connection.execute("SELECT pgsimhash.add_simhashes(%s, ARRAY[1, 2])", [layout])
            found = connection.execute(
                "SELECT * FROM pgsimhash.near_duplicates(3, 2, %s)", [layout]
            ).fetchall()
            assert sorted(found) == [(1, 1), (2, 1)]


def test_nothing_deployed_depends_on_what_another_role_made(hostile_dsn: str) -> None:
    """Generated columns, defaults, constraints and SQL-standard functions of all layouts."""
    deploy_all(hostile_dsn)
    with psycopg.connect(hostile_dsn) as connection:
        found = connection.execute(
            "SELECT pg_describe_object(d.classid, d.objid, d.objsubid) "
            "FROM pg_depend AS d "
            "JOIN pg_proc AS p ON d.refclassid = 'pg_proc'::regclass::oid AND p.oid = d.refobjid "
            "WHERE p.pronamespace = 'public'::regnamespace::oid AND p.proname <> 'taken' "
            "AND NOT (d.classid = 'pg_operator'::regclass::oid) "
            "UNION ALL "
            "SELECT pg_describe_object(d.classid, d.objid, d.objsubid) "
            "FROM pg_depend AS d JOIN pg_operator AS o "
            "ON d.refclassid = 'pg_operator'::regclass::oid AND o.oid = d.refobjid "
            "WHERE o.oprnamespace = 'public'::regnamespace::oid"
        ).fetchall()
    assert found == []


def test_every_function_is_bound_or_pinned_or_names_what_it_calls(dsn: str) -> None:
    """A caller's search_path has no effect in the functions and triggers of any layout."""
    deploy_all(dsn)
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT oid::regprocedure::text, prosrc, proconfig, prosqlbody IS NOT NULL "
            "FROM pg_proc WHERE pronamespace = 'pgsimhash'::regnamespace"
        ).fetchall()
        foreign = connection.execute(
            "SELECT tgname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid "
            "JOIN pg_proc AS p ON p.oid = t.tgfoid "
            "WHERE c.relnamespace = 'pgsimhash'::regnamespace AND NOT t.tgisinternal "
            "AND p.pronamespace <> 'pgsimhash'::regnamespace"
        ).fetchall()
    assert len(rows) > 7 * len(LAYOUTS)
    assert foreign == []
    unpinned = {
        name: source
        for name, source, settings, bound in rows
        if not bound and PINNED not in (settings or [])
    }
    # Transactions end only where no search_path is pinned.
    assert [name.partition("(")[0] for name in unpinned] == ["pgsimhash.expire"]
    (body,) = unpinned.values()
    assert calls(body) == set()
    assert re.findall(r"(?<!:)[=<>+*/%^|&~#!@?-]+", without_texts(body).replace(":=", "")) == []


@pytest.mark.parametrize("name", sorted(statements.queries()))
def test_queries_call_functions_by_their_schema(name: str) -> None:
    found = calls(statements.queries()[name])
    assert found - ({"unnest"} if name in SEVERAL else set()) == set()


class TestForeignSchemas:
    """A schema with the name, created by a role that must not get the deployer's rights."""

    @pytest.fixture
    def foreign_dsn(self, empty_dsn: str, second_role: str) -> Iterator[str]:
        role = sql.Identifier(second_role)
        with psycopg.connect(empty_dsn, autocommit=True) as connection:
            database = sql.Identifier(connection.info.dbname)
            connection.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(database, role))
            for schema in map(sql.Identifier, ("pgsimhash", "crawl")):
                created = sql.SQL("CREATE SCHEMA {} AUTHORIZATION {}").format(schema, role)
                connection.execute(created)
            yield empty_dsn
            connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(role))

    def as_role(self, dsn: str, role: str) -> str:
        return conninfo.make_conninfo(dsn, options=f"-c role={role}")

    def test_a_foreign_schema_is_refused_with_its_owner_and_the_fix(
        self, foreign_dsn: str, second_role: str
    ) -> None:
        for schema in ("pgsimhash", "crawl"):
            refused = f'schema {schema} belongs to role "{second_role}".*role='
            with pytest.raises(pgsimhash.SchemaError, match=refused):
                migrate.upgrade(foreign_dsn, schema=schema)
        with (
            psycopg.connect(foreign_dsn) as connection,
            pytest.raises(psycopg.Error, check=sqlstate("PS040"), match=second_role),
        ):
            connection.execute(migrate.upgrade_sql())

    @pytest.mark.one_server("rights to a database are granted on each node")
    def test_only_its_owner_can_deploy_it(self, foreign_dsn: str, second_role: str) -> None:
        for _ in range(2):
            migrate.upgrade(self.as_role(foreign_dsn, second_role))
        with pytest.raises(pgsimhash.SchemaError, match=second_role):
            migrate.upgrade(foreign_dsn)

    def test_a_foreign_table_in_it_is_refused_too(self, foreign_dsn: str, second_role: str) -> None:
        with psycopg.connect(self.as_role(foreign_dsn, second_role)) as connection:
            connection.execute("CREATE TABLE pgsimhash.alembic_version (version_num text)")
        with psycopg.connect(foreign_dsn) as connection:
            connection.execute("ALTER SCHEMA pgsimhash OWNER TO CURRENT_USER")
        with pytest.raises(pgsimhash.SchemaError, match=r"table pgsimhash\.alembic_version"):
            migrate.upgrade(foreign_dsn)

    @pytest.mark.parametrize("granted", [True, False])
    @pytest.mark.one_server("rights to a database are granted on each node")
    def test_a_role_that_was_granted_may_own_it(
        self, foreign_dsn: str, second_role: str, granted: bool
    ) -> None:
        owner, member = sql.Identifier(second_role), sql.Identifier(f"{second_role}_member")
        with psycopg.connect(foreign_dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE ROLE {}").format(member))
            connection.execute(sql.SQL("GRANT ALL ON SCHEMA pgsimhash TO {}").format(member))
            if granted:
                connection.execute(sql.SQL("GRANT {} TO {}").format(owner, member))
            try:
                dsn = self.as_role(foreign_dsn, f"{second_role}_member")
                if granted:
                    migrate.upgrade(dsn)
                else:
                    with pytest.raises(pgsimhash.SchemaError, match="would run code"):
                        migrate.upgrade(dsn)
            finally:
                connection.execute(sql.SQL("DROP OWNED BY {}").format(member))
                connection.execute(sql.SQL("DROP ROLE {}").format(member))

    @pytest.mark.one_server("rights to a database are granted on each node")
    def test_a_schema_of_an_administrator_is_trusted(
        self, empty_dsn: str, second_role: str
    ) -> None:
        role = sql.Identifier(second_role)
        with psycopg.connect(empty_dsn, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA pgsimhash")
            connection.execute(sql.SQL("GRANT ALL ON SCHEMA pgsimhash TO {}").format(role))
            migrate.upgrade(self.as_role(empty_dsn, second_role))
            connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(role))


@pytest.mark.one_server("Citus sends all statements of a string to the workers")
def test_the_deployers_search_path_is_restored(empty_dsn: str) -> None:
    def path(connection: psycopg.Connection) -> str:
        (found,) = connection.execute("SHOW search_path").fetchall()[0]
        return str(found)

    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("SET search_path = public, pg_temp")
        connection.execute(migrate.upgrade_sql())
        assert path(connection) == "public, pg_temp"
        with connection.transaction():
            set_default_layout(connection, LAYOUTS["32+32"])
            assert path(connection) == "public, pg_temp"
    engine = migrate.engine_for(empty_dsn)
    config = migrate.config_for("pgsimhash")
    with engine.connect() as given:
        given.execute(text("SET search_path = public, pg_temp"))
        config.attributes["connection"] = given
        command.upgrade(config, "head")
        assert given.scalar(text("SHOW search_path")) == "public, pg_temp"
