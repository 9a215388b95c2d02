"""Sent statements: no other role can replace what they call, and a service waits for few."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgsimhash import connect
from pgsimhash.db import statements
from tests.sent_statements import is_a_call


@pytest.mark.parametrize("statement", [
    "SELECT now()", "SELECT * FROM find(%(simhash)s::pg_catalog.int8)",
    'SELECT * FROM pgsimhash.find("a" => %(a)s::text)',
    'SELECT * FROM pgsimhash.find("a" => %(a)s)',
    "SELECT * FROM pgsimhash.find(\"a\" => %(a)s::pg_catalog.text) WHERE url = 'x'",
    "SELECT * FROM pgsimhash.pages",
])  # fmt: skip
def test_other_statements_are_refused(statement: str) -> None:
    assert not is_a_call(statement)


def test_every_function_is_called_in_this_form() -> None:
    for name in statements._functions():
        assert is_a_call(statements.call_of(name, "pgsimhash"))
        assert is_a_call(statements.call_of(name, "crawl"))


def test_the_tests_check_what_is_sent(
    connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "call_of", lambda *_: "SELECT now()")
    with pytest.raises(AssertionError, match=r"pgsimhash\.db\.statements sends: SELECT now"):
        statements.fetch(connection, "layout")


PREPARES = 6  # Calls after which psycopg has prepared the statements.


def sent(connection: psycopg.Connection[Any], call: Callable[[], object], file: Path) -> int:
    """Return the number of statements that a call sends, by libpq's trace of the protocol."""
    with file.open("w") as trace:
        connection.pgconn.trace(trace.fileno())
        call()
        connection.pgconn.untrace()
    # Only the first line of a statement has these fields.
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    kinds = [parts[3] for parts in lines if parts[1:2] == ["F"]]
    return kinds.count("Query") + kinds.count("Execute")


def test_a_request_that_writes_its_own_row_too(dsn: str, tmp_path: Path) -> None:
    """Three of the seven are the request's: BEGIN, its own row, and COMMIT."""
    with psycopg.connect(dsn) as connection:
        store = connect(connection)
        connection.commit()

        def post(number: int) -> None:
            html = f"<p>{number} A short page that a service receives as JSON, one of many others."
            assert store.ingest(f"https://example.com/{number}", html).page_id is not None
            connection.execute("SELECT 'the row of the request'")
            connection.commit()

        for number in range(PREPARES):
            post(number)
        assert sent(connection, lambda: post(PREPARES), tmp_path / "trace") == 7


def test_calls_on_a_connection_of_their_own(dsn: str, tmp_path: Path) -> None:
    """BEGIN, the collection with the timeouts, the decision, and COMMIT; or only the lookup."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        store = connect(connection)
        for number in range(PREPARES):
            store.add_page(f"https://example.com/{number}", number)
        adds = sent(connection, lambda: store.add_page("https://example.com/", 3), tmp_path / "add")
        finds = sent(connection, lambda: store.find(3), tmp_path / "find")
        gets = sent(connection, lambda: store.get("https://example.com/"), tmp_path / "get")
    assert (adds, finds, gets) == (4, 1, 1)


@pytest.mark.one_server("there a store also asks whether the node is a worker")
def test_a_request_that_opens_its_store(dsn: str, tmp_path: Path) -> None:
    """Four of them open the store, and two are a savepoint."""
    connect(dsn).close()
    with psycopg.connect(dsn) as connection:

        def post() -> None:
            with connect(connection, create=False) as store:
                store.ingest("https://example.com/", "<p>" + "one two three four " * 20)

        assert sent(connection, post, tmp_path / "trace") <= 10
