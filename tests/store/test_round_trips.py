"""How many statements a call sends: a service waits for each answer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from pgsimhash import connect

PREPARES = 6  # Calls after which psycopg has prepared the statements.


def sent(connection: psycopg.Connection[Any], call: Callable[[], object], file: Path) -> int:
    """Return the number of statements that a call sends, by libpq's trace of the protocol."""
    with file.open("w") as trace:
        connection.pgconn.trace(trace.fileno())
        call()
        connection.pgconn.untrace()
    fields = [line.split("\t") for line in file.read_text().splitlines()]
    return sum(sender == "F" and kind in {"Query", "Execute"} for _, sender, _, kind, *_ in fields)


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
            store.add(f"https://example.com/{number}", number)
        adds = sent(connection, lambda: store.add("https://example.com/", 3), tmp_path / "add")
        finds = sent(connection, lambda: store.find(3), tmp_path / "find")
    assert (adds, finds) == (4, 1)
