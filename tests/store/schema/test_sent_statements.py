"""The rule of tests/sent_statements.py refuses what another role could replace."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from pgsimhash import connect
from pgsimhash.db import statements
from tests.sent_statements import is_a_call


@pytest.mark.parametrize("statement", [
    "SELECT now()", "SELECT * FROM near_duplicates(%(simhash)s::pg_catalog.int8)",
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


def test_how_many_statements_a_call_sends(
    dsn: str, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = 0
    execute = psycopg.Cursor.execute

    def counted(cursor: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal sent
        sent += 1
        return execute(cursor, *arguments, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", counted)

    def statements_of(call: Callable[[], object]) -> int:
        before = sent
        call()
        return sent - before

    with connect(dsn) as store:
        assert statements_of(lambda: store.add("https://a.example/2", 2**60)) == 2
        assert statements_of(lambda: store.find(1)) == 1
        assert statements_of(lambda: store.get("https://a.example/2")) == 1
    html = "<p>" + " ".join(f"word{number}" for number in range(99))

    def post() -> None:
        """What a service does for a request, in its own transaction."""
        with connect(connection, create=False) as lent:
            lent.ingest("https://a.example/3", html)

    # Four of them open the store, and two are a savepoint.
    assert statements_of(post) <= 7
