"""Roles for one test: they belong to the server, and would outlive the test's database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.conftest import ON_CITUS


@contextmanager
def dropped_afterwards(dsn: str, names: list[str]) -> Iterator[None]:
    """Drop roles after the block; they would outlive the database."""
    try:
        yield
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            for name in names:
                role = sql.Identifier(name)
                connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(role))
                connection.execute(sql.SQL("DROP ROLE {}").format(role))


def as_role(dsn: str, name: str) -> str:
    if ON_CITUS:
        # It connects to the other nodes as this role.
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("ALTER ROLE {} LOGIN").format(sql.Identifier(name)))
    escaped = name.replace(" ", "\\ ")
    return make_conninfo(dsn, options=f"-c role={escaped}")
