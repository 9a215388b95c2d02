"""Send statements over blocking and asynchronous connections.

Every statement of the package is a call of a function of the schema, with qualified names and
types. So nobody can replace what it calls by an object in the caller's ``search_path``.

The package is written for blocking connections. Over an ``AsyncConnection`` it runs in a greenlet,
where :func:`waited` returns the thread to the event loop until the answer arrives.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from itertools import count
from typing import Any, Final, LiteralString, TypeVar

import psycopg
from psycopg.pq import Format, TransactionStatus
from psycopg.rows import RowFactory, tuple_row

from pgsimhash.db.schema_names import (
    SCHEMA_FILES,
    in_schema,
    numbered,
    parameters_of,
    read_sql,
    schema_of,
)

_FETCHED: Final = 2_000  # rows per fetch of a server-side cursor

_FUNCTION: Final = re.compile(
    r"^CREATE FUNCTION pgsimhash\.(\w+)\((.*?)\)\s+(?:RETURNS|LANGUAGE)", re.MULTILINE | re.DOTALL
)
_TYPES: Final = {
    "bigint": "int8",
    "integer": "int4",
    "boolean": "bool",
    "double precision": "float8",
}
_T = TypeVar("_T")
_numbers: Final = count()


def fetch(
    connection: psycopg.BaseConnection[Any],
    name: str,
    parameters: Mapping[str, Any] | None = None,
    rows: RowFactory[Any] = tuple_row,
    *,
    columns: tuple[str, ...] = (),
) -> list[Any]:
    """Call the function ``name``, or ``_name``, and return its rows, by default as tuples."""
    return execute(connection, call_of(name, schema_of(connection), columns), parameters, rows)


def execute(
    connection: psycopg.BaseConnection[Any],
    statement: LiteralString,
    parameters: Mapping[str, Any] | None = None,
    rows: RowFactory[Any] = tuple_row,
) -> list[Any]:
    """Execute a statement and return its rows."""
    asynchronous = isinstance(connection, psycopg.AsyncConnection)
    # The caller's connection may have its own cursor classes and row factories.
    kind: Any = psycopg.AsyncCursor if asynchronous else psycopg.Cursor
    cursor = kind(connection, row_factory=rows)
    # Times in text form depend on the DateStyle.
    cursor.format = Format.BINARY
    waited(cursor.execute(statement, parameters))
    fetched: list[Any] = waited(cursor.fetchall())
    return fetched


def stream(
    connection: psycopg.BaseConnection[Any], name: str, parameters: Mapping[str, Any]
) -> Generator[Any]:
    """Call a function in a transaction, and yield its rows without loading all of them."""
    if connection.pgconn.pipeline_status:
        raise psycopg.NotSupportedError("server-side cursors do not work in a pipeline")
    asynchronous = isinstance(connection, psycopg.AsyncConnection)
    kind: Any = psycopg.AsyncServerCursor if asynchronous else psycopg.ServerCursor
    plain: Any = psycopg.AsyncCursor if asynchronous else psycopg.Cursor
    cursor = kind(connection, f"pgsimhash_{next(_numbers)}", row_factory=tuple_row)
    cursor.format = Format.BINARY
    try:
        waited(cursor.execute(call_of(name, schema_of(connection)), parameters))
        while rows := waited(cursor.fetchmany(_FETCHED)):
            yield from rows
        waited(cursor.close())
    finally:
        # If the block was left, a rollback follows, which closes it on the server.
        waited(plain.close(cursor))


@contextmanager
def transaction(connection: psycopg.BaseConnection[Any]) -> Iterator[None]:
    """Run a block in a transaction, or in a savepoint of the present one."""
    block: Any = connection.transaction()  # type: ignore[attr-defined]
    with ExitStack() as stack:
        if isinstance(connection, psycopg.AsyncConnection):
            waited(block.__aenter__())
            stack.push(lambda *error: waited(block.__aexit__(*error)))
        else:
            stack.enter_context(block)
        yield


@contextmanager
def savepoint(connection: Any) -> Iterator[None]:
    """Begin a transaction that only the caller may commit, and run a block in a savepoint of it.

    In such a transaction, psycopg's blocks are savepoints too; before it, they would commit.
    """
    waited(connection.execute("SAVEPOINT pgsimhash"))
    try:
        yield
    except BaseException:
        with suppress(psycopg.Error):
            waited(connection.execute("ROLLBACK TO SAVEPOINT pgsimhash"))
        raise
    else:
        waited(connection.execute("RELEASE SAVEPOINT pgsimhash"))


def waited(result: Any) -> Any:
    """Return a result; for an awaitable, wait in the event loop, which needs a greenlet."""
    return await_(result) if hasattr(result, "__await__") else result


def in_thread(function: Callable[[], _T], asynchronous: bool) -> _T:
    """Return the result of a blocking function; in a greenlet, call it in a thread."""
    return await_(asyncio.to_thread(function)) if asynchronous else function()


def close(connection: Any) -> None:
    """Close a connection, also during garbage collection, which can wait for nothing."""
    if closing := connection.close():
        # It waits for nothing either.
        with suppress(StopIteration):
            closing.send(None)


def await_(awaitable: Awaitable[_T]) -> _T:
    """Wait in the event loop, from a greenlet."""
    # SQLAlchemy is slow to import. Its version 2.0 has only the second name.
    from sqlalchemy import util

    wait: Callable[[Awaitable[_T]], _T] = getattr(util, "await_", None) or util.await_only
    return wait(awaitable)


def is_idle(connection: psycopg.BaseConnection[Any]) -> bool:
    """Return whether a connection is in no transaction, also by psycopg's count."""
    # An interrupt before a BEGIN leaves a wrong one, and every later block would fail.
    begun = getattr(connection, "_num_transactions", 0)
    return connection.info.transaction_status == TransactionStatus.IDLE and not begun


def is_active(connection: psycopg.BaseConnection[Any]) -> bool:
    """Return whether a connection is in a transaction that can be committed."""
    return connection.info.transaction_status == TransactionStatus.INTRANS


@cache
def call_of(name: str, schema: str, columns: tuple[str, ...] = ()) -> LiteralString:
    """Return the call of a function in a schema, with all its parameters by name.

    A field of a composite column is ``column.field``.
    """
    functions = _functions()
    function = name if name in functions else f"_{name}"
    arguments = ", ".join(
        f'"{parameter}" => %({parameter})s::pg_catalog.{_TYPES.get(kind, kind)}{array}'
        for parameter, kind, array in functions[function]
    )
    # Names and types come from the package's own files.
    quoted = (
        '("{}")."{}"'.format(*column.split(".")) if "." in column else f'"{column}"'
        for column in columns
    )
    selected = ", ".join(quoted) or "*"
    call = f"SELECT {selected} FROM pgsimhash.{numbered(function)}({arguments})"  # noqa: S608
    return in_schema(call, schema)


@cache
def _functions() -> dict[str, list[list[str]]]:
    """Return the parameters of each function: name, type, and brackets of an array."""
    functions: dict[str, list[list[str]]] = {}
    for file in SCHEMA_FILES:
        for name, parameters in _FUNCTION.findall(read_sql(file)):
            inputs = [rest for out, *rest in parameters_of(parameters) if not out]
            functions.setdefault(name, inputs)
    return functions
