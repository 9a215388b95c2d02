"""Which schema the tables and functions are in: ``pgsimhash``, or one by a name of the user's.

All SQL in files says ``pgsimhash``; :func:`in_schema` says the other name in its place. A
connection works with one schema, so that none of the functions that take a connection has to be
told which.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, LiteralString
from weakref import WeakKeyDictionary

from pgsimhash.errors import ArgumentError, StoreError, check_type

if TYPE_CHECKING:
    import psycopg

SCHEMA: Final = "pgsimhash"
"""The schema that all is in unless another one is named."""

SCHEMA_VARIABLE: Final = "PGSIMHASH_SCHEMA"

# No name that needs escaping, and none that PostgreSQL cuts off.
_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
_OTHERS: Final = frozenset({"public", "information_schema"})

# Before a name, also in texts that are made into statements; not in hints such as "run: pgsimhash
# migrate", nor in pgsimhash_caller.
_NAMED: Final = re.compile(r"(?<![\w.])pgsimhash(?=\.[a-z_%])|(?<=CREATE SCHEMA )pgsimhash\b")
_QUOTED: Final = re.compile(r"(?<=nspname = ')pgsimhash(?=')")


def check_schema_name(name: str) -> str:
    """Return ``name`` if the tables can be in a schema of this name.

    Not in ``public``: others may create there what would run in place of the functions.

    Raises:
        ArgumentError: they cannot.
    """
    check_type("a schema", name, str, wanted="its name, such as schema='crawl'")
    if not _PLAIN.fullmatch(name) or name.startswith("pg_") or name in _OTHERS:
        raise ArgumentError(
            "invalid_schema",
            f"{name!r} cannot be the schema's name; give one of 1 to 63 lower-case letters a to z, "
            "digits and _, no digit first, that neither begins with pg_ nor is public or "
            "information_schema",
        )
    return name


def configured_schema(schema: str | None = None) -> str:
    """Return ``schema``, else PGSIMHASH_SCHEMA, else ``pgsimhash``.

    Raises:
        ArgumentError: the tables cannot be in a schema of this name.
    """
    if schema is None:
        schema = os.environ.get(SCHEMA_VARIABLE) or SCHEMA
    return check_schema_name(schema)


def in_schema(text: LiteralString, schema: str) -> LiteralString:
    """Return SQL that is written for ``pgsimhash``, for ``schema`` (a checked name)."""
    if schema == SCHEMA:
        return text
    # Quotes, for the name may be a keyword.
    named = _NAMED.sub(f'"{schema}"', text)
    return _QUOTED.sub(schema, named)


def schema_of(connection: psycopg.BaseConnection[Any]) -> str:
    """Return the schema that a connection works with."""
    return _schemas.get(getattr(connection, "unpinned", connection), SCHEMA)


@contextmanager
def bound_to_schema(
    connection: psycopg.BaseConnection[Any], schema: str | None = None
) -> Iterator[None]:
    """Let a connection work with a schema from now on; not if the block fails.

    Args:
        connection: a connection.
        schema: which; None means what the connection works with already, else
            :func:`configured_schema`.

    Raises:
        ArgumentError: the tables cannot be in a schema of this name.
        StoreError: the connection works with another one already.
    """
    # Others stand for it; see pgsimhash/db/pinned.py.
    connection = getattr(connection, "unpinned", connection)
    present = _schemas.get(connection)
    wanted = present if schema is None and present is not None else configured_schema(schema)
    # Whatever is open on the connection would go on in the other schema.
    if present not in (None, wanted):
        raise StoreError(
            "other_schema",
            f"the connection works with the schema {present} already, not with {wanted}; open "
            "another connection for that, with a pool of its own where there are pools",
        )
    _schemas[connection] = wanted
    try:
        yield
    except BaseException:
        if present is None:
            _schemas.pop(connection, None)
        raise


_schemas: WeakKeyDictionary[psycopg.BaseConnection[Any], str] = WeakKeyDictionary()
