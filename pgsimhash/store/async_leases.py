"""Where the store for asyncio has its connections from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy.util import greenlet_spawn

from pgsimhash.connection import open_deployed
from pgsimhash.errors import ArgumentError
from pgsimhash.pinned import is_pinned, note_pinned, pin_statement
from pgsimhash.store.awaiting import await_, awaited
from pgsimhash.store.leases import (
    answers,
    check_driver,
    check_not_told_to_prepare,
    idle_of,
    kinds_of,
)
from pgsimhash.store.refusals import (
    closed,
    refusal_of_pool,
    refusals_of_alchemy,
    refusals_of_engine,
    wrong_driver,
)

if TYPE_CHECKING:
    from psycopg_pool import AsyncConnectionPool
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

_POOL: Final = "psycopg_pool.AsyncConnectionPool"
_ENGINE: Final = "sqlalchemy.AsyncEngine"
_LENT: Final = {
    "sqlalchemy.AsyncConnection",
    "sqlalchemy.AsyncSession",
    "sqlalchemy.async_scoped_session",
}


class AsyncLender:
    """Gives connections: the store's own one, the caller's, or those of a pool or an engine."""

    def __init__(self, where: Any, schema: str | None, prepare: bool | None) -> None:
        self._where = where
        self._schema = schema
        self._prepare = prepare
        self._dsn: str | None = None
        self._own: psycopg.AsyncConnection[Any] | None = None
        self._closed = False
        self._kinds: set[str] = set()
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Connect, if it is a DSN or a URL.

        Raises:
            ArgumentError: ``prepare`` is said of what is not opened here.
            NoServerError: no server answers.
        """
        if "sqlalchemy.URL" in kinds_of(self._where):
            self._where = self._where.render_as_string(hide_password=False)
        if self._where is None or isinstance(self._where, str):
            self._dsn = self._where
            await self.connect_own()
        else:
            check_not_told_to_prepare(self._prepare)
        self._kinds = kinds_of(self._where)

    async def connect_own(self) -> psycopg.AsyncConnection[Any]:
        """Connect to the DSN, first or anew, and return the connection."""
        settings, pinned = await asyncio.to_thread(self._deployed)
        self._where = self._own = await psycopg.AsyncConnection.connect(
            autocommit=True, client_encoding="UTF8", **settings
        )
        if pinned:
            await self._own.execute(pin_statement(), {"local": False})
            note_pinned(self._own)
        return self._own

    def _deployed(self) -> tuple[dict[str, Any], bool]:
        """Deploy the schema of the embedded server, and return how to connect to the DSN.

        The second value says whether the search_path is pinned for the whole connection.
        """
        # In one step: a cancelled task does not come back to close it.
        with open_deployed(self._dsn, self._schema, prepare=self._prepare) as first:
            settings = {
                "conninfo": first.info.dsn,
                "password": first.info.password,
                "prepare_threshold": first.prepare_threshold,
            }
            return settings, is_pinned(first)

    async def close(self) -> None:
        """Close the connection that was opened here."""
        self._closed = True
        if self._own is not None:
            await self._own.close()

    @property
    def owns(self) -> bool:
        """Whether transactions on its connections are the store's own.

        Then there is another connection where one was lost.
        """
        return self._own is not None or bool(self._kinds & {_POOL, _ENGINE})

    def is_unusable(self, connection: psycopg.AsyncConnection[Any]) -> bool:
        """Return whether the store's own connection was left closed or amid a statement.

        psycopg closes it if a second cancellation interrupts the first.
        """
        status = connection.pgconn.transaction_status
        return connection is self._own and status != TransactionStatus.IDLE

    @asynccontextmanager
    async def borrowed(self) -> AsyncIterator[Borrowed]:
        """Let a connection be taken that nobody else uses until the end of the block."""
        async with AsyncExitStack() as stack:
            yield Borrowed(self, stack)

    async def exchange(self, stack: AsyncExitStack) -> psycopg.AsyncConnection[Any]:
        """Give back what was lost, and return another connection, which ``stack`` gives back."""
        if self._own is not None:
            await self._own.close()
            return await self.connect_own()
        await stack.aclose()
        # Others may have been lost with it.
        if _ENGINE not in self._kinds:
            await self._where.check()
        else:
            for _ in range(idle_of(self._where)):
                connection = await stack.enter_async_context(self.connection())
                if await greenlet_spawn(answers, awaited(connection)):
                    return connection
                await stack.aclose()
        return await stack.enter_async_context(self.connection(again=True))

    @asynccontextmanager
    async def connection(
        self, *, again: bool = False
    ) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """Give a connection that nobody else uses until the end of the block.

        Args:
            again: whether it is one in place of another that was lost.

        Raises:
            ArgumentError: ``where`` is none of what it can be.
            StoreError: it is closed, or psycopg is not what it stands on.
            NoServerError: no server answers.
        """
        where = self._where
        if isinstance(where, psycopg.AsyncConnection):
            async with self._turn:
                # While it waited, it may have been opened anew.
                present: psycopg.AsyncConnection[Any] = self._where
                if present.closed and (self._closed or present is not self._own):
                    raise closed("store" if present is self._own else "connection")
                yield present
        elif _POOL in self._kinds:
            async with _of_pool(where, again=again) as connection:
                yield connection
        elif _ENGINE in self._kinds:
            async with _of_engine(where) as connection:
                yield connection
        elif self._kinds & _LENT:
            async with self._turn, _of_alchemy(where) as connection:
                yield connection
        else:
            raise ArgumentError(
                "invalid_connection",
                "an asynchronous store is opened over a DSN, psycopg's AsyncConnection or "
                "AsyncConnectionPool, or SQLAlchemy's URL, AsyncEngine, AsyncConnection or "
                f"AsyncSession, not over {type(where).__module__}.{type(where).__qualname__}",
            )


class Borrowed:
    """A connection until it is given back; another one in its place where it was lost."""

    def __init__(self, lender: AsyncLender, stack: AsyncExitStack) -> None:
        self._lender = lender
        self._stack = stack

    async def take(self) -> psycopg.AsyncConnection[Any]:
        """Return a connection; see :meth:`AsyncLender.connection`."""
        connection = await self._stack.enter_async_context(self._lender.connection())
        if self._lender.is_unusable(connection):
            return await self.exchange()
        return connection

    async def exchange(self) -> psycopg.AsyncConnection[Any]:
        """Return another connection in place of one that was lost."""
        return await self._lender.exchange(self._stack)


class Awaited:
    """What a store is opened over: a connection that is awaited."""

    moves = False

    def __init__(
        self, connection: psycopg.AsyncConnection[Any], borrowed: Borrowed, *, owned: bool
    ) -> None:
        self.owned = self.reopens = owned
        self.borrowed = borrowed
        """By whom it is used now."""
        self._connection = awaited(connection)

    def connection(self) -> psycopg.Connection[Any]:
        """Return the connection."""
        return self._connection

    def close(self) -> None:
        """Leave it to whoever awaits it."""

    def reopen(self) -> None:
        """Take another one."""
        self._connection = awaited(await_(self.borrowed.exchange()))

    def lost(self) -> None:
        """Leave it to whoever lent it, when it is given back."""

    def pause(self, seconds: float) -> None:
        """Wait, and let others go on."""
        await_(asyncio.sleep(seconds))


@asynccontextmanager
async def _of_pool(
    pool: AsyncConnectionPool[Any], *, again: bool
) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    if pool.closed:
        raise closed("pool")
    try:
        connection: psycopg.AsyncConnection[Any] = await pool.getconn()
    except psycopg.OperationalError as error:
        raise await asyncio.to_thread(refusal_of_pool, pool, error, again=again) from error
    before = connection.autocommit
    try:
        if not before:
            await connection.set_autocommit(True)
        try:
            yield connection
        finally:
            if not (before or connection.closed):
                await connection.set_autocommit(False)
    finally:
        await pool.putconn(connection)


@asynccontextmanager
async def _of_engine(engine: AsyncEngine) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    check_driver(engine.sync_engine)
    lent = engine.connect()
    raw = None
    try:
        with refusals_of_engine():
            await lent.start()
            await lent.execution_options(isolation_level="AUTOCOMMIT")
        raw = await _raw(lent)
        yield raw
    finally:
        if raw is not None and raw.closed:
            await lent.invalidate()
        if lent.sync_connection is not None:
            await lent.close()


@asynccontextmanager
async def _of_alchemy(where: Any) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    is_session = hasattr(where, "get_bind")
    if not is_session and where.sync_connection is None:
        raise ArgumentError(
            "invalid_connection",
            "the AsyncConnection is not connected yet; await it: "
            "connect_async(await engine.connect())",
        )
    check_driver(where)
    with refusals_of_alchemy():
        lent: AsyncConnection = await where.connection() if is_session else where
        if not lent.in_transaction():
            await lent.exec_driver_sql("SELECT 1")
        raw = await _raw(lent)
    try:
        yield raw
    finally:
        if raw.closed and not lent.closed:
            await lent.invalidate()


async def _raw(lent: AsyncConnection) -> psycopg.AsyncConnection[Any]:
    found = (await lent.get_raw_connection()).driver_connection
    if not isinstance(found, psycopg.AsyncConnection):
        raise wrong_driver(type(found).__module__)
    return found
