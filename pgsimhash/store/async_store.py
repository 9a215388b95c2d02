"""The store for asyncio: the same questions and decisions, awaited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

import numpy as np
import psycopg
from numpy.typing import NDArray
from tenacity import AsyncRetrying

from pgsimhash.bits import check_simhash
from pgsimhash.errors import MissingPackageError, NoServerError, check_many, install_command
from pgsimhash.log import logger
from pgsimhash.matching import MatchOptions
from pgsimhash.octets import MAX_BYTES, Octets
from pgsimhash.page_reader import PageReader
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
from pgsimhash.sources import PAUSE
from pgsimhash.store.batches import (
    BATCH_PAGES,
    BATCH_SECONDS,
    BATCH_SIMHASHES,
    PAGES,
    PAIRS,
    Item,
    Page,
    as_record,
    as_source,
    with_checked_time,
)
from pgsimhash.store.ingest import told
from pgsimhash.store.reader import check_limit, find_each
from pgsimhash.store.retries import attempts, checked_retry_seconds, passes, retried
from pgsimhash.store.store import Store, page_of, worth_keeping
from pgsimhash.store.together import Together

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
    from sqlalchemy.util import greenlet_spawn

    from pgsimhash.store.async_leases import AsyncLender, Awaited, Borrowed
except ImportError as error:  # pragma: no cover - the tests have it
    raise MissingPackageError(
        "not_installed",
        f"the asynchronous store needs greenlet; install it {install_command('async')}",
    ) from error

_P = ParamSpec("_P")
_T = TypeVar("_T")


class AsyncStore:
    """A collection of pages in PostgreSQL, for asyncio; made by :func:`pgsimhash.connect_async`.

    Its methods are those of :class:`pgsimhash.Store`, awaited. Pages are fingerprinted in threads,
    or in processes where they have limits.
    Over a pool or an engine, calls of several tasks run at a time, each on a connection of its
    own; over one connection or session they wait for one another.
    """

    def __init__(
        self,
        where: Any,
        options: dict[str, Any],
        prepare: bool | None = None,
        reader: PageReader | None = None,
    ) -> None:
        self._options = options
        self._reader = reader or PageReader()
        self._retry_seconds = checked_retry_seconds(options["retry_seconds"])
        self._lender = AsyncLender(where, options["schema"], prepare)
        self._together: Together | None = None
        self._stores: dict[psycopg.AsyncConnection[Any], tuple[Store, Awaited]] = {}
        self._was_open = False

    async def open(self) -> Self:
        """Connect, and check schema and collection; :func:`pgsimhash.connect_async` does."""
        await self._lender.open()
        if self._lender.owns:
            self._together = Together(self._find_each)
        try:
            async with self._store():
                self._was_open = True
                return self
        except BaseException:
            await self.close()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection, if it is the store's own; end processes that read pages."""
        await asyncio.to_thread(self._reader.close)
        await self._lender.close()

    async def _call(
        self,
        method: Callable[Concatenate[Store, _P], _T],
        *arguments: _P.args,
        **options: _P.kwargs,
    ) -> _T:
        async with self._store() as store:
            return await greenlet_spawn(lambda: method(store, *arguments, **options))

    async def _find_each(
        self, simhashes: Sequence[int], distance: int | None
    ) -> Sequence[list[Match]]:
        if len(simhashes) == 1:
            return [await self._call(Store.find, simhashes[0], distance)]
        return await self._call(_find_each, simhashes, distance)

    @asynccontextmanager
    async def _store(self) -> AsyncIterator[Store]:
        """Give a store over a connection that nobody else uses until the end of the block."""
        async with self._lender.borrowed() as borrowed:
            yield await self._opened(borrowed)

    async def _opened(self, borrowed: Borrowed) -> Store:
        try:
            return await self._over(await borrowed.take(), borrowed)
        except NoServerError as error:
            # Those of a pool or an engine may have been lost since they were used last.
            may_retry = self._lender.owns and self._was_open and self._retry_seconds
            if not (may_retry and passes(error)):
                raise
            logger.warning("trying again: %s", error)
        async for attempt in AsyncRetrying(**attempts(self._retry_seconds)):
            with attempt:
                return await self._over(await borrowed.exchange(), borrowed)
        raise AssertionError  # pragma: no cover - the last attempt raises

    async def _over(self, connection: psycopg.AsyncConnection[Any], borrowed: Borrowed) -> Store:
        if connection not in self._stores:
            lent = Awaited(connection, borrowed, owned=self._lender.owns)
            store = await greenlet_spawn(lambda: Store(lent, lookup_memory=0, **self._options))
            # A pool gives up one connection after the other.
            for gone in [one for one in self._stores if one.closed]:
                del self._stores[gone]
            self._stores[connection] = (store, lent)
        store, lent = self._stores[connection]
        lent.borrowed = borrowed
        return store

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
        check_limit(limit)
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
        items = self._read(check_many("pages", pages, PAGES), max_bytes)
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
        pairs = check_many("pages", pages, PAIRS)
        items = (as_record(page) async for page in _any_kind(pairs))
        return self._decided(items, BATCH_SIMHASHES, batch_size, options, remember=True)

    async def add_simhashes(
        self, simhashes: NDArray[np.uint64] | Iterable[NDArray[np.uint64]]
    ) -> int:
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
        """Yield what is read of pages, each in a thread, or in a process if it has limits."""
        async with self._store() as store:
            keeps, scheme = store.opened.keep_markdown, get_scheme(store.opened.scheme)

        def read(page: Page) -> Item:
            made = self._reader.extract(
                as_source(page), scheme, markdown=keeps, max_bytes=max_bytes
            )
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
        if item is not PAUSE:
            batch.append(item)
        if len(batch) >= size or (batch and time.monotonic() - started >= BATCH_SECONDS):
            break
    return batch


async def _any_kind(values: Iterable[_T] | AsyncIterable[_T]) -> AsyncIterator[_T]:
    if isinstance(values, AsyncIterable):
        async for value in values:
            yield value
    else:
        for value in values:
            yield value


@retried
def _find_each(store: Store, simhashes: Sequence[int], distance: int | None) -> list[list[Match]]:
    with store.session.looking_up(distance) as (connection, collection):
        return find_each(connection, collection, simhashes, distance)


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
    statement_timeout: float | None = None,
    retry_seconds: float | None = None,
    page_seconds: float | None = None,
    page_memory: int | None = None,
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
        statement_timeout: how many seconds a statement may take.
        retry_seconds: for how long to try again what a fault that passes ended.
        page_seconds: a page that takes longer to read is a failure, for another process reads it;
            without this and the next, a thread does, which nobody can stop.
        page_memory: a page for which that process takes more bytes is a failure, on Linux.

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
        "statement_timeout": statement_timeout,
        "retry_seconds": retry_seconds,
    }
    reader = PageReader(page_seconds, page_memory)
    return await AsyncStore(where, options, prepare, reader).open()
