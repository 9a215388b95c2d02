"""The rule for every statement that the package sends, checked wherever a test makes it send one.

A statement calls one of the schema's functions with typed parameters; all names and types in it are
qualified. So it calls nothing that another role could put into the caller's search_path.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from unittest import mock

import psycopg
import pytest

from pgsimhash.db.schema_names import read_sql

_ARGUMENT = r'"\w+" => %\(\w+\)s::pg_catalog\.\w+(?:\[\])?'
_COLUMN = r'(?:\("\w+"\)\.)?"\w+"'
_COLUMNS = rf"\*|{_COLUMN}(?:, {_COLUMN})*"
_CALL = re.compile(
    rf'SELECT (?:{_COLUMNS}) FROM (?:\w+|"\w+")\.\w+\((?:{_ARGUMENT}(?:, {_ARGUMENT})*)?\)'
)
_BEFORE = re.compile(
    r"SELECT 1|(?:(?:ROLLBACK TO |RELEASE )?SAVEPOINT) pgsimhash|"
    r"SELECT pg_catalog\.pg_backend_pid\(\)|SELECT version_num FROM \S+\.alembic_version"
)
SENT_FILES = "deployed.sql", "citus_worker.sql", "foreign_objects.sql"
_FILES = [
    re.compile(re.escape(read_sql(name)).replace("pgsimhash", r'"?\w+"?')) for name in SENT_FILES
]

# These deploy, or execute statements of the caller.
_OTHERS = (
    "pgsimhash.alembic", "pgsimhash.schema.migrate", "pgsimhash.embedded", "pgsimhash.sqlalchemy",
    "pgsimhash.testing",
)  # fmt: skip


def is_a_call(statement: str) -> bool:
    return any(form.fullmatch(statement) for form in (_CALL, _BEFORE, *_FILES))


def _checked(execute: Callable[..., Any]) -> Callable[..., Any]:
    def run(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        frame = sys._getframe(1)
        # `connection.execute` of psycopg is a step between.
        while frame.f_globals["__name__"].startswith("psycopg") and frame.f_back is not None:
            frame = frame.f_back
        sender = frame.f_globals.get("__name__", "")
        if sender.startswith("pgsimhash") and not sender.startswith(_OTHERS):
            assert isinstance(query, str), f"{sender} sends {query!r}"
            assert is_a_call(query), f"{sender} sends: {query}"
        return execute(cursor, query, *arguments, **options)

    return run


@pytest.fixture(scope="session", autouse=True)
def checked_statements() -> Iterator[None]:
    """Every statement that the package sends in any test has the form that nobody can hijack."""
    kinds = psycopg.Cursor, psycopg.ServerCursor, psycopg.AsyncCursor, psycopg.AsyncServerCursor
    with ExitStack() as patches:
        for kind in kinds:
            checked = _checked(kind.execute)
            patches.enter_context(mock.patch.object(kind, "execute", checked))
        yield
