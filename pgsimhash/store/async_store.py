"""The store for asyncio: the same questions and decisions, awaited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack
from weakref import WeakKeyDictionary

import numpy as np
import psycopg
from numpy.typing import NDArray
from tenacity import AsyncRetrying

from pgsimhash.bits import check_simhash
from pgsimhash.connection import no_connection, open_deployed
from pgsimhash.errors import ArgumentError, MissingPackageError, NoServerError
from pgsimhash.log import logger
from pgsimhash.matching import MatchOptions
from pgsimhash.octets import MAX_BYTES, Octets
from pgsimhash.records import (
    CollectionStatus,
    Deletion,
    Match,
    Matches,
    NearPage,
    StoredPage,
    Verdict,
)
from pgsimhash.schemes import Scheme, get_scheme
from pgsimhash.store.batches import (
    BATCH_PAGES,
    BATCH_SECONDS,
    BATCH_SIMHASHES,
    Item,
    Page,
    as_record,
    as_source,
    with_checked_time,
)
from pgsimhash.store.ingest import told
from pgsimhash.store.leases import (
    check_driver,
    check_not_told_to_prepare,
    closed,
    kinds_of,
    refusals_of_alchemy,
    wrong_driver,
)
from pgsimhash.store.reader import find_each
from pgsimhash.store.retries import attempts, checked_retry_seconds, passes, retried
from pgsimhash.store.store import Store, page_of, worth_keeping
from pgsimhash.store.together import Together
from pgsimhash.workers import extract

if TYPE_CHECKING:
    from psycopg_pool import AsyncConnectionPool
    from sqlalchemy import URL
    from sqlalchemy.ext.asyncio import (
        AsyncConnection,
        AsyncEngine,
        AsyncSession,
        async_scoped_session,
    )

try:
    from sqlalchemy.util import await_only, greenlet_spawn

    from pgsimhash.store.awaiting import awaited
except ImportError as error:  # pragma: no cover - the tests have it
    raise MissingPackageError(
        "not_installed", "the asynchronous store needs greenlet: pip install 'pgsimhash[async]'"
    ) from error

_LENDERS = {"psycopg_pool.AsyncConnectionPool", "sqlalchemy.AsyncEngine"}
"""What each call gets a connection of its own from, in no transaction of the caller's."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class AsyncStore:
    """A collection of pages in PostgreSQL, for asyncio; made by :func:`pgsimhash.connect_async`.

    Its methods are those of :class:`pgsimhash.Store`, awaited. Pages are fingerprinted in threads.
    Over a pool or an engine, calls of several tasks run at a time, each on a connection of its
    own; over one connection or session they wait for one another.
    """

    def __init__(self, where: Any, options: dict[str, Any], prepare: bool | None = None) -> None:
        self._where = where
        self._prepare = prepare
        self._kinds: set[str] = set()
        self._options = options
        self._retry_seconds = checked_retry_seconds(options["retry_seconds"])
        self._own: psycopg.AsyncConnection[Any] | None = None
        self._turn = asyncio.Lock()
        self._dsn: str | None = None
        self._closed = False
        self._together: Together | None = None
        self._stores: WeakKeyDictionary[psycopg.AsyncConnection[Any], Store] = WeakKeyDictionary()

    async def open(self) -> Self:
        """Connect, and check schema and collection; :func:`pgsimhash.connect_async` does."""
        if "sqlalchemy.URL" in kinds_of(self._where):
            self._where = self._where.render_as_string(hide_password=False)
        if "sqlalchemy.async_scoped_session" in kinds_of(self._where):
            self._where = self._where()
        if self._where is None or isinstance(self._where, str):
            self._dsn = self._where
            await self.connect_own()
        else:
            check_not_told_to_prepare(self._prepare)
        self._kinds = kinds_of(self._where)
        if self._own is not None or self._kinds & _LENDERS:
            self._together = Together(self._find_each)
        try:
            async with self._store():
                return self
        except BaseException:
            await self.close()
            raise

    async def connect_own(self) -> psycopg.AsyncConnection[Any]:
        """Connect to the DSN, first or anew, and return the connection, which is the store's."""
        # Deploys the schema of the embedded server, and says what is wrong with a DSN.
        first = await asyncio.to_thread(
            open_deployed, self._dsn, self._options["schema"], prepare=self._prepare
        )
        dsn, password = first.info.dsn, first.info.password
        await asyncio.to_thread(first.close)
        stores, before = self._stores, self._own
        self._where = self._own = await psycopg.AsyncConnection.connect(
            dsn,
            password=password,
            autocommit=True,
            client_encoding="UTF8",
            prepare_threshold=first.prepare_threshold,
        )
        if before is not None and before in stores:
            stores[self._own] = stores.pop(before)
        return self._own

    def is_own(self, connection: psycopg.AsyncConnection[Any]) -> bool:
        """Return whether it is the connection that the store opened."""
        return connection is self._own

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection, if it is the store's own."""
        self._closed = True
        if self._own is not None:
            await self._own.close()

    async def _call(
        self,
        method: Callable[Concatenate[Store, _P], _T],
        *arguments: _P.args,
        **options: _P.kwargs,
    ) -> _T:
        try:
            return await self._once(method, *arguments, **options)
        except NoServerError as error:
            # What is written may have been committed, and its caller shall hear that it was lost.
            lent = self._kinds & _LENDERS and method in _READING
            if not (lent and self._retry_seconds and passes(error)):
                raise
            logger.warning("trying again: %s", error)
        async for attempt in AsyncRetrying(**attempts(self._retry_seconds)):
            with attempt:
                await self._drop_lost()
                return await self._once(method, *arguments, **options)
        raise AssertionError  # pragma: no cover - the last attempt raises

    async def _once(
        self,
        method: Callable[Concatenate[Store, _P], _T],
        *arguments: _P.args,
        **options: _P.kwargs,
    ) -> _T:
        async with self._store() as store:
            return await greenlet_spawn(lambda: method(store, *arguments, **options))

    async def _drop_lost(self) -> None:
        """Have a pool or an engine forget connections that were lost with another one."""
        if "sqlalchemy.AsyncEngine" in self._kinds:
            await self._where.dispose()
        else:
            await self._where.check()

    async def _find_each(
        self, simhashes: Sequence[int], distance: int | None
    ) -> Sequence[list[Match]]:
        if len(simhashes) == 1:
            return [await self._call(Store.find, simhashes[0], distance)]
        return await self._call(_find_each, simhashes, distance)

    @asynccontextmanager
    async def _store(self) -> AsyncIterator[Store]:
        """Give a store over a connection that nobody else uses until the end of the block."""
        where, kinds = self._where, self._kinds
        if isinstance(where, psycopg.AsyncConnection):
            async with self._turn:
                if where.closed and (self._closed or where is not self._own):
                    raise closed("store" if where is self._own else "connection")
                yield await self._over(where, owned=where is self._own)
        elif "psycopg_pool.AsyncConnectionPool" in kinds:
            async with _of_pool(where) as connection:
                yield await self._over(connection, owned=True)
        elif "sqlalchemy.AsyncEngine" in kinds:
            async with _of_engine(where) as connection:
                yield await self._over(connection, owned=True)
        elif kinds & {"sqlalchemy.AsyncConnection", "sqlalchemy.AsyncSession"}:
            async with self._turn:
                yield await self._over(await _of_alchemy(where), owned=False)
        else:
            raise ArgumentError(
                "invalid_connection",
                "an asynchronous store is opened over a DSN, psycopg's AsyncConnection or "
                "AsyncConnectionPool, or SQLAlchemy's URL, AsyncEngine, AsyncConnection or "
                f"AsyncSession, not over {type(where).__module__}.{type(where).__qualname__}",
            )

    async def _over(self, connection: psycopg.AsyncConnection[Any], *, owned: bool) -> Store:
        found = self._stores.get(connection)
        if found is None:
            held = _Awaited(self, connection, owned=owned)
            found = await greenlet_spawn(lambda: Store(held, lookup_memory=0, **self._options))
            self._stores[connection] = found
        return found

    async def find(
        self,
        simhash: int,
        distance: int | None = None,
        *,
        limit: int | None = None,
        host: str | None = None,
        since: datetime | None = None,
        sketch: int | None = None,
    ) -> list[Match]:
        """Do as :meth:`pgsimhash.Store.find`; what several tasks ask at a time goes together."""
        check_simhash(simhash)
        plain = (host, since, sketch) == (None, None, None) and (limit is None or limit >= 0)
        if self._together is not None and plain:
            return (await self._together.find(simhash, distance))[:limit]
        return await self._call(
            Store.find, simhash, distance, limit=limit, host=host, since=since, sketch=sketch
        )

    async def near_pages(
        self,
        page: str | int,
        distance: int | None = None,
        *,
        limit: int | None = None,
        verify: bool = True,
        sketch: int | None = None,
    ) -> list[NearPage]:
        """Do as :meth:`pgsimhash.Store.near_pages`."""
        return await self._call(
            Store.near_pages, page, distance, limit=limit, verify=verify, sketch=sketch
        )

    async def find_many(
        self, simhashes: NDArray[np.uint64], distance: int | None = None
    ) -> Matches:
        """Do as :meth:`pgsimhash.Store.find_many`."""
        return await self._call(Store.find_many, simhashes, distance)

    async def exists(self, simhash: int, distance: int | None = None) -> bool:
        """Do as :meth:`pgsimhash.Store.exists`."""
        return await self._call(Store.exists, simhash, distance)

    async def get(self, url: str) -> StoredPage | None:
        """Do as :meth:`pgsimhash.Store.get`."""
        return await self._call(Store.get, url)

    async def should_fetch(self, url: str, *, now: datetime | None = None) -> bool:
        """Do as :meth:`pgsimhash.Store.should_fetch`."""
        return await self._call(Store.should_fetch, url, now=now)

    async def ingest(
        self,
        url: str,
        html: str | Octets,
        *,
        fetched_at: datetime | None = None,
        max_bytes: int = MAX_BYTES,
        **options: Unpack[MatchOptions],
    ) -> Verdict:
        """Do as :meth:`pgsimhash.Store.ingest`."""
        pages = [page_of(url, html, fetched_at)]
        return await anext(self.ingest_many(pages, max_bytes=max_bytes, batch_size=1, **options))

    async def should_store(
        self,
        url: str,
        html: str | Octets,
        *,
        fetched_at: datetime | None = None,
        max_bytes: int = MAX_BYTES,
        **options: Unpack[MatchOptions],
    ) -> bool:
        """Do as :meth:`pgsimhash.Store.should_store`."""
        made = await self.ingest(url, html, fetched_at=fetched_at, max_bytes=max_bytes, **options)
        return worth_keeping(made)

    async def decide(
        self,
        url: str,
        html: str | Octets,
        *,
        fetched_at: datetime | None = None,
        max_bytes: int = MAX_BYTES,
        **options: Unpack[MatchOptions],
    ) -> Verdict:
        """Do as :meth:`pgsimhash.Store.decide`."""
        items = self._read([page_of(url, html, fetched_at)], max_bytes)
        return await anext(self._decided(items, 1, None, options, remember=False))

    def ingest_many(
        self,
        pages: Iterable[Page] | AsyncIterable[Page],
        *,
        max_bytes: int = MAX_BYTES,
        batch_size: int | None = None,
        **options: Unpack[MatchOptions],
    ) -> AsyncIterator[Verdict]:
        """Do as :meth:`pgsimhash.Store.ingest_many`; pages may come asynchronously."""
        items = self._read(pages, max_bytes)
        return self._decided(items, BATCH_PAGES, batch_size, options, remember=True)

    async def add(
        self,
        url: str,
        simhash: int,
        *,
        fetched_at: datetime | None = None,
        **options: Unpack[MatchOptions],
    ) -> Verdict:
        """Do as :meth:`pgsimhash.Store.add`."""
        return await self._call(Store.add, url, simhash, fetched_at=fetched_at, **options)

    def add_many(
        self,
        pages: Iterable[tuple[str, int]] | AsyncIterable[tuple[str, int]],
        *,
        batch_size: int | None = None,
        **options: Unpack[MatchOptions],
    ) -> AsyncIterator[Verdict]:
        """Do as :meth:`pgsimhash.Store.add_many`; pairs may come asynchronously."""
        items = (as_record(page) async for page in _any_kind(pages))
        return self._decided(items, BATCH_SIMHASHES, batch_size, options, remember=True)

    async def add_simhashes(self, simhashes: NDArray[np.uint64]) -> int:
        """Do as :meth:`pgsimhash.Store.add_simhashes`."""
        return await self._call(Store.add_simhashes, simhashes)

    async def expire(self, older_than: timedelta | None = None) -> Deletion:
        """Do as :meth:`pgsimhash.Store.expire`."""
        return await self._call(Store.expire, older_than)

    async def delete(self, url: str) -> Deletion:
        """Do as :meth:`pgsimhash.Store.delete`."""
        return await self._call(Store.delete, url)

    async def delete_host(self, host: str) -> Deletion:
        """Do as :meth:`pgsimhash.Store.delete_host`."""
        return await self._call(Store.delete_host, host)

    async def status(self) -> list[CollectionStatus]:
        """Do as :meth:`pgsimhash.Store.status`."""
        return await self._call(Store.status)

    async def _decided(
        self,
        items: AsyncIterator[Item],
        size: int,
        asked: int | None,
        options: MatchOptions,
        *,
        remember: bool,
    ) -> AsyncIterator[Verdict]:
        async with self._store() as store:
            # Wrong options are refused before a page is taken.
            store._ingest.decide([], size, options, remember=remember, asked=asked)
            theirs = remember and await greenlet_spawn(store.session.is_in_callers_transaction)
        wanted = asked or (1 if theirs else size)
        while batch := await _next_batch(items, wanted):
            # Only while it is decided: whoever loops may ask other things meanwhile.
            async with self._store() as store:
                made = store._ingest.decide(
                    batch, wanted, options, remember=remember, asked=len(batch)
                )
                verdicts = await greenlet_spawn(_list, made)
            for verdict in told(verdicts, store.session, theirs=theirs):
                yield verdict

    async def _read(
        self, pages: Iterable[Page] | AsyncIterable[Page], max_bytes: int
    ) -> AsyncIterator[Item]:
        """Yield what is read of pages, each in a thread."""
        async with self._store() as store:
            keeps, scheme = store.opened.keep_markdown, get_scheme(store.opened.scheme)

        def read(page: Page) -> Item:
            made = extract(as_source(page), scheme, markdown=keeps, max_bytes=max_bytes)
            return with_checked_time(made)

        async for page in _any_kind(pages):
            yield await asyncio.to_thread(read, page)


def _list(verdicts: Iterable[Verdict]) -> list[Verdict]:
    return list(verdicts)


async def _next_batch(items: AsyncIterator[Item], size: int) -> list[Item]:
    """Do as :func:`pgsimhash.store.batches.next_batch`."""
    batch: list[Item] = []
    started = time.monotonic()
    async for item in items:
        batch.append(item)
        if len(batch) >= size or time.monotonic() - started >= BATCH_SECONDS:
            break
    return batch


async def _any_kind(values: Iterable[_T] | AsyncIterable[_T]) -> AsyncIterator[_T]:
    if isinstance(values, AsyncIterable):
        async for value in values:
            yield value
    else:
        for value in values:
            yield value


@asynccontextmanager
async def _of_pool(pool: AsyncConnectionPool[Any]) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    if pool.closed:
        raise closed("pool")
    try:
        connection: psycopg.AsyncConnection[Any] = await pool.getconn()
    except psycopg.OperationalError as error:
        raise no_connection(error) from error
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
    from sqlalchemy.exc import OperationalError

    check_driver(engine.sync_engine)
    lent = engine.connect()
    try:
        try:
            await lent.start()
            await lent.execution_options(isolation_level="AUTOCOMMIT")
        except OperationalError as error:
            raise no_connection(error.orig or error) from error
        yield await _raw(lent)
    finally:
        if lent.sync_connection is not None:
            await lent.close()


class _Awaited:
    """A connection that is awaited; the store's own one is opened anew when it was lost."""

    def __init__(
        self, store: AsyncStore, connection: psycopg.AsyncConnection[Any], *, owned: bool
    ) -> None:
        self.owned = owned
        self.reopens = store.is_own(connection)
        self._store = store
        self._connection = awaited(connection)

    def connection(self) -> psycopg.Connection[Any]:
        return self._connection

    def close(self) -> None:
        """Leave it to whoever awaits it."""

    def reopen(self) -> None:
        self._connection = awaited(await_only(self._store.connect_own()))

    def pause(self, seconds: float) -> None:
        await_only(asyncio.sleep(seconds))


@retried
def _find_each(store: Store, simhashes: Sequence[int], distance: int | None) -> list[list[Match]]:
    with store.session.looking_up(distance) as (connection, collection):
        return find_each(connection, collection, simhashes, distance)


_READING = {
    Store.find,
    Store.near_pages,
    Store.find_many,
    Store.exists,
    Store.get,
    Store.should_fetch,
    Store.status,
    _find_each,
}
"""What may be asked again, whatever became of it."""


async def _of_alchemy(where: Any) -> psycopg.AsyncConnection[Any]:
    session = getattr(where, "sync_session", None)
    check_driver(session or where)
    with refusals_of_alchemy():
        lent: AsyncConnection = await where.connection() if session else where
        if not lent.in_transaction():
            await lent.exec_driver_sql("SELECT 1")
        return await _raw(lent)


async def _raw(lent: AsyncConnection) -> psycopg.AsyncConnection[Any]:
    found = (await lent.get_raw_connection()).driver_connection
    if not isinstance(found, psycopg.AsyncConnection):
        raise wrong_driver(type(found).__module__)
    return found


async def connect_async(
    where: str
    | psycopg.AsyncConnection[Any]
    | AsyncConnectionPool[Any]
    | URL
    | AsyncEngine
    | AsyncConnection
    | AsyncSession
    | async_scoped_session[Any]
    | None = None,
    *,
    collection: str = "default",
    create: bool = True,
    scheme: str | Scheme | None = None,
    layout: str | None = None,
    keep_markdown: bool | None = None,
    normalize_urls: bool | None = None,
    schema: str | None = None,
    prepare: bool | None = None,
    lock_timeout: float | None = None,
    retry_seconds: float | None = None,
) -> AsyncStore:
    """Open the store for asyncio; see :func:`pgsimhash.connect`.

    Args:
        where: a DSN or a URL, as there; psycopg's ``AsyncConnection`` or ``AsyncConnectionPool``;
            SQLAlchemy's ``AsyncEngine``, ``AsyncConnection`` or ``AsyncSession`` with psycopg 3.
        collection: as there, and so are the others.
        create: whether to create it.
        scheme: its recipe.
        layout: its layout.
        keep_markdown: whether it keeps Markdown.
        normalize_urls: whether it brings URLs into one spelling.
        schema: the schema that the tables are in.
        prepare: whether statements are prepared.
        lock_timeout: how many seconds to wait for other writers.
        retry_seconds: for how long to try again what a fault that passes ended. A batch whose
            connection to a pool or an engine was lost is not tried again.

    Raises:
        As there.
    """
    options = {
        "collection": collection,
        "create": create,
        "scheme": scheme,
        "layout": layout,
        "keep_markdown": keep_markdown,
        "normalize_urls": normalize_urls,
        "schema": schema,
        "lock_timeout": lock_timeout,
        "retry_seconds": retry_seconds,
    }
    return await AsyncStore(where, options, prepare).open()
