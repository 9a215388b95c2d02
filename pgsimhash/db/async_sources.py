"""The same connection sources for asyncio: they run in a greenlet, and yield while they wait.

SQLAlchemy's asynchronous classes wrap its synchronous ones in the same greenlets, so the
synchronous ones are used directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg

from pgsimhash.db.alchemy_sources import EngineSource, SessionSource
from pgsimhash.db.awaiting import await_, awaited
from pgsimhash.db.connection import open_deployed
from pgsimhash.db.opening import Sources, as_dsn, chosen_source, is_dsn
from pgsimhash.db.refusals import no_connection
from pgsimhash.db.sources import CallerSource, ConnectionSource, DsnSource, Mode, PoolSource
from pgsimhash.errors import ArgumentError


class _Lock:
    """A lock for each event loop: the tasks of a closed one never release theirs."""

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    def acquire(self) -> Awaitable[bool]:
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()).acquire()

    def release(self) -> None:
        self._locks[asyncio.get_running_loop()].release()


AWAITING: Final = Mode(
    wait=await_,
    wrap=awaited,
    sleep=lambda seconds: await_(asyncio.sleep(seconds)),
    in_thread=lambda function: await_(asyncio.to_thread(function)),
    new_lock=_Lock,
    user=asyncio.current_task,
)


def async_source_of(where: Any, schema: str | None, prepare: bool | None) -> ConnectionSource:
    """Return the connection source of an asynchronous store.

    Raises:
        ArgumentError: the type is not supported, or ``prepare`` is given for a connection that the
            store does not open.
        StoreError: the connection is closed, or uses another driver than psycopg 3.
    """
    if is_dsn(where):
        return DsnSource(partial(_connect, as_dsn(where), schema, prepare), AWAITING)
    if source := chosen_source(where, _SOURCES, AWAITING, prepare):
        return source
    raise ArgumentError(
        "invalid_argument",
        "an asynchronous store needs a DSN, psycopg's AsyncConnection or "
        "AsyncConnectionPool, or SQLAlchemy's URL, AsyncEngine, AsyncConnection or "
        f"AsyncSession, not {type(where).__module__}.{type(where).__qualname__}",
    )


def _of_connection(connection: Any, mode: Mode) -> ConnectionSource:
    if connection.sync_connection is None:
        raise ArgumentError(
            "invalid_argument",
            "the AsyncConnection is not connected yet; await it: "
            "connect_async(await engine.connect())",
        )
    return SessionSource(lambda: connection.sync_connection, mode)


_SOURCES: Final[Sources] = {
    "psycopg.AsyncConnection": CallerSource,
    "psycopg_pool.AsyncConnectionPool": PoolSource,
    "sqlalchemy.AsyncEngine": lambda engine, mode: EngineSource(engine.sync_engine, mode),
    "sqlalchemy.AsyncConnection": _of_connection,
    "sqlalchemy.AsyncSession": lambda session, mode: SessionSource(
        lambda: session.sync_session, mode
    ),
    "sqlalchemy.async_scoped_session": lambda scoped, mode: SessionSource(
        lambda: scoped().sync_session, mode
    ),
}


async def _connect(
    dsn: str | None, schema: str | None, prepare: bool | None
) -> psycopg.AsyncConnection[Any]:
    settings = await asyncio.to_thread(_deployed, dsn, schema, prepare)
    connection = None
    try:
        connection = await psycopg.AsyncConnection.connect(
            autocommit=True, client_encoding="UTF8", **settings
        )
    except BaseException as error:
        if connection is not None:
            await connection.close()
        if isinstance(error, psycopg.OperationalError):
            raise no_connection(error) from error
        raise
    return connection


def _deployed(dsn: str | None, schema: str | None, prepare: bool | None) -> dict[str, Any]:
    """Deploy the schema on the embedded server; return the arguments of the connection."""
    # In one step: a cancelled task would not return to close it.
    with open_deployed(dsn, schema, prepare=prepare) as first:
        return {
            "conninfo": first.info.dsn,
            "password": first.info.password,
            "prepare_threshold": first.prepare_threshold,
        }
