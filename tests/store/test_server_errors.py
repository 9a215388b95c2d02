"""Errors of the server: those of the schema have SQLSTATEs of their own; others are quoted."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql

import pgsimhash
from pgsimhash import Store, connect
from pgsimhash.db.server_errors import RAISED, translated_errors
from pgsimhash.errors import NoServerError, StoreError
from tests.conftest import ROOT
from tests.database import end_others, run_sql, wait_for_a_lock
from tests.refusals import because

URL = "https://a.example/"


def raise_in_trigger(dsn: str, state: str) -> None:
    """Let each INSERT into pages raise an error, as a user's trigger may."""
    statement = sql.SQL(
        "CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'no flights today' USING ERRCODE = {}; END $$; "
        "CREATE TRIGGER guard BEFORE INSERT ON pgsimhash.pages "
        "FOR EACH ROW EXECUTE FUNCTION guard()"
    )
    run_sql(dsn, statement.format(sql.Literal(state)))


@pytest.mark.one_server("Citus has no triggers on distributed tables")
@pytest.mark.parametrize(
    "state",
    ["P0001", "P0002", "42704", "55000", "55006", "22023", "23503", "23514", "25000", "02000"],
)
def test_an_error_of_a_users_trigger_is_quoted(store: Store, dsn: str, state: str) -> None:
    raise_in_trigger(dsn, state)
    for write in (
        lambda: store.add_page(URL, 5),
        lambda: list(store.add_pages([(URL, 5)])),
        lambda: list(store.ingest_many([(URL, "<p>" + "one two three " * 20)])),
    ):
        with pytest.raises(StoreError, match="no flights today") as raised:
            write()
        assert type(raised.value) is StoreError
        assert raised.value.reason in {"refused", "gave_up"}
    if raised.value.reason == "refused" and not state.startswith("22"):
        assert re.search(rf"SQLSTATE {state}, PL/pgSQL function .*guard\(\)", str(raised.value))


@pytest.mark.one_server("Citus has no triggers on distributed tables")
def test_a_users_trigger_that_says_try_again_is_not_obeyed_for_ever(store: Store, dsn: str) -> None:
    raise_in_trigger(dsn, "PS003")
    with pytest.raises(StoreError, match="no flights today", check=because("moved")):
        store.add_page(URL, 5)


@pytest.mark.one_server("Citus has no triggers on distributed tables")
def test_a_users_trigger_cannot_skip_pages_unnoticed(store: Store, dsn: str) -> None:
    run_id = store.start_run("skipped")
    store.add_page(URL, 5)
    run_sql(
        dsn,
        "CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$; "
        "CREATE TRIGGER skip BEFORE INSERT OR DELETE ON pgsimhash.pages "
        "FOR EACH ROW EXECUTE FUNCTION skip()",
    )
    for change in (
        lambda: store.add_page(f"{URL}b", 6),
        lambda: list(store.ingest_many([(f"{URL}c", "<p>" + "one two three " * 20)])),
        lambda: store.delete_page(URL),
        lambda: store.delete_host("a.example"),
        lambda: store.expire(timedelta(microseconds=1)),
        lambda: store.undo_run(run_id),
        store.delete_collection,
    ):
        with pytest.raises(StoreError, match=r"trigger|constraint", check=because("refused")):
            change()
    assert store.status().urls == 1


@pytest.mark.one_server("errors of COPY, by which Citus writes, have no SQLSTATE")
def test_a_constraint_of_a_user_is_quoted(store: Store, dsn: str) -> None:
    run_sql(dsn, "ALTER TABLE pgsimhash.pages ADD CONSTRAINT no_a CHECK (url !~ 'a.example')")
    with pytest.raises(StoreError, match=r'constraint "no_a".*23514', check=because("refused")):
        store.add_page(URL, 5)


def test_the_schema_raises_no_other_sqlstates_and_the_manual_lists_them() -> None:
    raised = set()
    for path in (ROOT / "sql").rglob("*.sql"):
        text = path.read_text(encoding="utf-8")
        states = re.findall(r"ERRCODE = '(\w+)'", text)
        assert len(states) == len(re.findall(r"RAISE (?:EXCEPTION|WARNING)", text)), path
        raised.update(states)
    # A missing right is reported like PostgreSQL's own.
    assert raised == {*RAISED, "insufficient_privilege"}
    page = (ROOT / "docs" / "sql-write.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(PS\w{3})` \|", page, re.MULTILINE)) == {*RAISED}


def test_an_internal_error_is_named(dsn: str) -> None:
    """As Citus reports a node that fails."""
    with (
        psycopg.connect(dsn) as connection,
        pytest.raises(
            pgsimhash.StoreError, match=r"the database gave up: a node failed; committed work stays"
        ),
        translated_errors(connection),
    ):
        connection.execute("DO $$ BEGIN RAISE 'a node failed' USING ERRCODE = 'XX000'; END $$")


def test_a_connection_that_is_lost_within_a_function_is_named_in_one_line(dsn: str) -> None:
    with connect(dsn, retry_seconds=0) as store, psycopg.connect(dsn) as holder:
        holder.execute("LOCK TABLE pgsimhash.pages")
        with ThreadPoolExecutor(1) as pool:
            looking_up = pool.submit(store.find, 7)
            wait_for_a_lock(dsn)
            end_others(dsn, [holder.info.backend_pid])
            with pytest.raises(NoServerError, match=r"^the connection .* again to continue$"):
                looking_up.result()


def test_saved_clusters_stay_if_the_connection_or_the_callers_score_fails(
    store: Store, dsn: str
) -> None:
    def lose(done: int, total: int) -> None:
        end_others(dsn)

    saved = "SELECT page_id FROM pgsimhash.clusters ORDER BY page_id"
    list(store.add_pages((f"https://a.example/{n}", n) for n in range(5)))
    assert store.save_clusters(3) == 1
    before = run_sql(dsn, saved)
    store.add_page("https://a.example/5", 5)
    with pytest.raises(NoServerError, match="run again to continue"):
        store.save_clusters(3, progress=lose)
    with pytest.raises(ZeroDivisionError):
        store.save_clusters(3, canonical=lambda page: 1 // 0)
    assert run_sql(dsn, saved) == before
    assert store.save_clusters(3) == 1
    assert run_sql(dsn, saved) == [(n,) for n in range(1, 7)]
