"""The rule of tests/sent_statements.py refuses what another role could replace."""

import psycopg
import pytest

from pgsimhash.db import plain, statements
from tests.sent_statements import is_a_call


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT now()",
        "SELECT * FROM near_duplicates(%(simhash)s::pg_catalog.int8)",
        'SELECT * FROM pgsimhash.find("a" => %(a)s::text)',
        'SELECT * FROM pgsimhash.find("a" => %(a)s)',
        "SELECT * FROM pgsimhash.find(\"a\" => %(a)s::pg_catalog.text) WHERE url = 'x'",
        "SELECT * FROM pgsimhash.pages",
    ],
)
def test_other_statements_are_refused(statement: str) -> None:
    assert not is_a_call(statement)


def test_every_function_is_called_in_this_form() -> None:
    for name in statements._functions():
        assert is_a_call(statements.query_in(name, "pgsimhash"))
        assert is_a_call(statements.query_in(name, "crawl"))


def test_the_tests_check_what_is_sent(connection: psycopg.Connection) -> None:
    with pytest.raises(AssertionError, match=r"pgsimhash\.db\.plain sends: SELECT now"):
        plain.plain(connection).execute("SELECT now()")
