"""The name of the schema: ``pgsimhash``, or your own; and its SQL files.

The files use ``pgsimhash``, and :func:`in_schema` replaces it. A connection uses one schema, so
functions that take a connection need no argument for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, LiteralString
from weakref import WeakKeyDictionary

from pgsimhash.errors import StoreError, check_type, invalid_argument

if TYPE_CHECKING:
    import psycopg

REVISION: Final = "0001"  # the schema revision of this package version
COMPATIBLE_FROM: Final = "0001"  # the oldest revision whose packages can use this one
SCHEMA: Final = "pgsimhash"  # the default schema
SCHEMA_VARIABLE: Final = "PGSIMHASH_SCHEMA"

SCHEMA_FILES: Final = (
    "tables.sql",
    "simhash.sql",
    "collections.sql",
    "layout.sql",
    "search.sql",
    "pages.sql",
    "marks.sql",
    "policies.sql",
    "delete.sql",
    "crawls.sql",
    "rule.sql",
    "batch.sql",
    "add.sql",
    "sources.sql",
    "check.sql",
    "roles.sql",
    "build.sql",
)  # in the order of deployment

# No name that needs escaping or is too long.
_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
# In public, other users may create functions that hide those of the package.
_OTHERS: Final = frozenset({"public", "information_schema"})

# Before a name, also in texts that become statements; not in hints such as "run: pgsimhash
# migrate", nor in pgsimhash_caller.
_NAMED: Final = re.compile(r"(?<![\w.])pgsimhash(?=\.[a-z_%])|(?<=CREATE SCHEMA )pgsimhash\b")
_QUOTED: Final = re.compile(r"(?<=')pgsimhash(?=')")


_PARAMETER: Final = re.compile(
    r"(?:^|,)\s*(OUT )?\"?(\w+)\"? ([a-z0-9_ ]+?)(\[\])?(?= DEFAULT|,|$)"
)


def check_schema_name(name: str) -> str:
    """Return a valid name for the schema; an ``ArgumentError`` says what is valid."""
    check_type(name, str, "the schema's name is a str")
    if not _PLAIN.fullmatch(name) or name.startswith("pg_") or name in _OTHERS:
        raise invalid_argument(
            f"{name!r} cannot be the schema's name; give one of 1 to 63 lower-case letters a to z, "
            "digits and _, that does not begin with a digit or pg_, and is not public or "
            "information_schema"
        )
    return name


def configured_schema(schema: str | None = None) -> str:
    """Return ``schema``, else PGSIMHASH_SCHEMA, else ``pgsimhash``, if the name is valid."""
    if schema is None:
        schema = os.environ.get(SCHEMA_VARIABLE) or SCHEMA
    return check_schema_name(schema)


def read_sql(path: str) -> LiteralString:
    """Return the text of the file ``sql/<path>``."""
    # The files ship with the package, so they are trusted like literals.
    return files("pgsimhash.sql").joinpath(path).read_text(encoding="utf-8")


def parameters_of(text: str) -> list[tuple[str, str, str, str]]:
    """Return the parameters of a function: OUT or nothing, name, type, and brackets of an array."""
    return _PARAMETER.findall(" ".join(text.split()))


def numbered(name: str) -> str:
    """Return the name under which this revision deploys a function or type of ``sql/``.

    The package only uses objects with its own number, and these only use each other. So those of
    two revisions can exist side by side, while packages of both are in use.
    """
    return f"_{name.removeprefix('_')}_{int(REVISION)}"


def in_schema(text: LiteralString, schema: str) -> LiteralString:
    """Return SQL written for ``pgsimhash``, adapted to ``schema`` (a checked name)."""
    if schema == SCHEMA:
        return text
    # Quoted, because the name may be a keyword.
    return _QUOTED.sub(schema, _NAMED.sub(f'"{schema}"', text))


def schema_of(connection: psycopg.BaseConnection[Any]) -> str:
    """Return the schema that a connection uses."""
    return _schemas.get(connection, SCHEMA)


@contextmanager
def bound_to_schema(
    connection: psycopg.BaseConnection[Any], schema: str | None = None
) -> Iterator[None]:
    """Bind a connection to a schema, by default :func:`configured_schema`, unless the block fails.

    Another one than the connection already uses is a ``StoreError``.
    """
    present = _schemas.get(connection)
    expected = configured_schema(schema)
    # Open cursors and transactions would continue in the other schema.
    if present not in (None, expected):
        raise StoreError(
            "wrong_transaction",
            f"the connection already uses the schema {present}, not {expected}; open "
            "another connection, and use another pool if it comes from one",
        )
    _schemas[connection] = expected
    try:
        yield
    except BaseException:
        if present is None:
            _schemas.pop(connection, None)
        raise


@contextmanager
def in_other_schema(connection: psycopg.BaseConnection[Any], schema: str) -> Iterator[None]:
    """Use another schema of the database for the statements of the block."""
    present = schema_of(connection)
    _schemas[connection] = check_schema_name(schema)
    try:
        yield
    finally:
        _schemas[connection] = present


_schemas: WeakKeyDictionary[psycopg.BaseConnection[Any], str] = WeakKeyDictionary()
