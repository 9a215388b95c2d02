"""The store for asyncio: the synchronous store, run in greenlets."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from datetime import datetime
from functools import cached_property, partial, wraps
from importlib import import_module
from operator import index
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    NamedTuple,
    ParamSpec,
    Self,
    TypeVar,
)

import psycopg

from pgsimhash.db.sources import source_of
from pgsimhash.db.statements import await_
from pgsimhash.errors import MissingPackageError, install_command
from pgsimhash.hashing.bits import check_simhash
from pgsimhash.pages.policies import MatchOptions
from pgsimhash.pages.records import Match, Verdict
from pgsimhash.reading.workers import PAGE_SECONDS, PageReader
from pgsimhash.schemes import Scheme, get_scheme
from pgsimhash.sources import PAUSE
from pgsimhash.store import batches, lookups
from pgsimhash.store.batches import Item, Page, Source, as_source, bounded
from pgsimhash.store.collection import Collection
from pgsimhash.store.events import OnEvent
from pgsimhash.store.session import Session, retried
from pgsimhash.store.store import Store

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
    # Without it, SQLAlchemy's greenlet_spawn fails only when it is called.
    import_module("greenlet")
    from sqlalchemy.util import greenlet_spawn
except ImportError as error:  # pragma: no cover - the tests have it
    raise MissingPackageError(
        "not_installed",
        f"the asynchronous store needs greenlet; install it {install_command('async')}",
    ) from error

_P = ParamSpec("_P")
_T = TypeVar("_T")
_V = TypeVar("_V")
_O = TypeVar("_O")
_A = TypeVar("_A")

_END: Any = object()

_STATEMENT_CALLS: Final = 64
"""Calls per statement: this bounds how long the first waits for the last."""


def _awaited(
    method: Callable[Concatenate[Store, _P], _T],
) -> Callable[Concatenate[AsyncStore, _P], Coroutine[Any, Any, _T]]:
    """Return a method of Store as a coroutine function."""

    @wraps(method)
    async def call(self: AsyncStore, /, *arguments: _P.args, **options: _P.kwargs) -> _T:
        return await self.run(method, *arguments, **options)

    return call


def _iterated(
    method: Callable[Concatenate[Store, _P], Iterator[_T]],
) -> Callable[Concatenate[AsyncStore, _P], AsyncIterator[_T]]:
    """Return a method of Store that yields as an asynchronous generator."""

    @wraps(method)
    async def call(
        self: AsyncStore, /, *arguments: _P.args, **options: _P.kwargs
    ) -> AsyncIterator[_T]:
        values = await self.run(method, *arguments, **options)
        try:
            while (value := await greenlet_spawn(next, values, _END)) is not _END:
                yield value
        finally:
            if isinstance(values, Generator):
                await greenlet_spawn(values.close)

    return call


def _at_once(method: Callable[_P, Iterator[_T]]) -> Callable[_P, Iterator[_T]]:
    """Exhaust the iterator, so that no transaction stays open when the caller leaves the loop."""

    @wraps(method)
    def call(*arguments: _P.args, **options: _P.kwargs) -> Iterator[_T]:
        return iter(list(method(*arguments, **options)))

    return call


def _iterated_over(
    method: Callable[Concatenate[Store, Iterable[_V], _P], Iterator[_T]],
) -> Callable[Concatenate[AsyncStore, Iterable[_V] | AsyncIterable[_V], _P], AsyncIterator[_T]]:
    """Return a method of Store that takes pages and yields. The pages may be an async iterable."""
    iterated = _iterated(method)

    @wraps(method)
    def call(
        self: AsyncStore,
        pages: Iterable[_V] | AsyncIterable[_V],
        *arguments: _P.args,
        **options: _P.kwargs,
    ) -> AsyncIterator[_T]:
        waited = _waited_for(pages) if isinstance(pages, AsyncIterable) else pages
        return iterated(self, waited, *arguments, **options)

    # The names of Store's parameters are positional-only to a type checker.
    return call  # type: ignore[return-value]


def _waited_for(values: AsyncIterable[_T]) -> Iterator[_T]:
    """Yield the items of an asynchronous iterable in a greenlet."""
    coming = aiter(values)
    while (value := await_(anext(coming, _END))) is not _END:
        yield value


class _GreenletStore(Store):
    """A store in a greenlet. It reads pages in threads, or in processes if they have limits.

    Concurrent calls that store one page each share a transaction if the store commits it.
    """

    reader: PageReader

    @cached_property
    def _batcher(self) -> TaskBatcher[Item, MatchOptions, Verdict]:
        async def decide(items: Sequence[Item], options: MatchOptions) -> Sequence[Verdict]:
            return await greenlet_spawn(
                partial(self._ingest.decide_batch, items, options, remember=True)
            )

        return TaskBatcher(decide, size_of=lambda item: bounded(item)[1])

    def _decide(self, item: Item, options: MatchOptions, *, remember: bool) -> Verdict:
        if remember and self.session.source.owned:
            item, _ = bounded(item)
            return await_(self._batcher.call(item, options))
        return super()._decide(item, options, remember=remember)

    def _read_page(self, page: Source, max_bytes: int, markdown: bool) -> Item:
        extract = partial(
            self.reader.extract,
            markdown=markdown or self.opened.keep_markdown,
            max_bytes=index(max_bytes),
        )
        return await_(asyncio.to_thread(extract, page, get_scheme(self.scheme)))

    def _read(
        self,
        pages: Iterable[Page],
        jobs: int,
        max_bytes: int,
        page_seconds: float | None,
        page_memory: int | None,
        markdown: bool,
    ) -> Iterator[Item]:
        reader = self.reader
        if (jobs, page_seconds, page_memory) != (1, None, None):
            seconds = PAGE_SECONDS if page_seconds is None else page_seconds
            reader = PageReader(seconds, page_memory)
        extract = partial(
            reader.extract,
            scheme=get_scheme(self.scheme),
            markdown=markdown or self.opened.keep_markdown,
            max_bytes=index(max_bytes),
        )
        return self._read_by(reader, extract, map(as_source, pages), jobs)

    def _read_by(
        self,
        reader: PageReader,
        extract: Callable[[Source], Item],
        sources: Iterable[Source],
        jobs: int,
    ) -> Iterator[Item]:
        reading: deque[asyncio.Task[Item]] = deque()
        try:
            for source in sources:
                reading.append(asyncio.ensure_future(asyncio.to_thread(extract, source)))
                # Pages before a pause do not wait for pages after it.
                while len(reading) >= jobs or (reading and source is PAUSE):
                    yield await_(reading.popleft())
            while reading:
                yield await_(reading.popleft())
        finally:
            for task in reading:
                task.cancel()
            if reader is not self.reader:
                reader.close()


class AsyncStore:
    """A collection of pages in PostgreSQL, for asyncio; see :func:`pgsimhash.connect_async`.

    It has the methods of :class:`pgsimhash.Store`: await them, or iterate over them with ``async
    for`` if they yield. :meth:`clusters` finds all clusters before it yields the first. Pages are
    fingerprinted in threads, or in processes if they have limits.

    Over a pool or an engine, each call has its own connection and tasks run concurrently. Over a
    DSN, a connection or a session, calls wait for one another. If the store commits, concurrent
    calls of :meth:`find` share a statement, and those of :meth:`ingest`, :meth:`should_store` and
    :meth:`add` a transaction. A page whose task is cancelled may be stored.
    """

    def __init__(self, store: Store, reader: PageReader) -> None:
        self._store = store
        self._reader = reader
        # The next statement is sent while the server answers the first.
        self._batcher = (
            TaskBatcher(self._find_each, statements=2) if store.session.source.owned else None
        )

    async def run(
        self,
        function: Callable[Concatenate[Store, _P], _T],
        *arguments: _P.args,
        **options: _P.kwargs,
    ) -> _T:
        """Call a function that takes a store, such as those of ``pgsimhash.maintenance``.

        Example: ``await store.run(maintenance.rename, "other")``. Exhaust iterators within the
        function: ``await store.run(lambda store: list(maintenance.check(store)))``.
        """
        return await greenlet_spawn(lambda: function(self._store, *arguments, **options))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that the store opened, and stop its processes."""
        await asyncio.to_thread(self._reader.close)
        await self.run(Store.close)

    @property
    def opened(self) -> Collection:
        """The row of the collection, as last read."""
        return self._store.opened

    @property
    def collection(self) -> str:
        """The name of the collection."""
        return self._store.collection

    @property
    def scheme(self) -> str:
        """The name of the collection's scheme."""
        return self._store.scheme

    @property
    def layout(self) -> str:
        """The name of the schema's layout."""
        return self._store.layout

    async def find(
        self,
        simhash: int,
        distance: int | None = None,
        *,
        limit: int | None = None,
        host: str | None = None,
        since: datetime | None = None,
        signature: int | None = None,
    ) -> list[Match]:
        """Do the same as :meth:`pgsimhash.Store.find`; concurrent calls share a statement."""
        check_simhash(simhash)
        plain = (host, since, signature) == (None, None, None) and (limit is None or limit >= 0)
        if self._batcher is not None and plain:
            return (await self._batcher.call(simhash, distance))[:limit]
        return await self.run(
            Store.find, simhash, distance, limit=limit, host=host, since=since, signature=signature
        )

    async def _find_each(
        self, simhashes: Sequence[int], distance: int | None
    ) -> Sequence[list[Match]]:
        if len(simhashes) == 1:
            return [await self.run(Store.find, simhashes[0], distance)]
        return await self.run(find_together, simhashes, distance)

    near_pages = _awaited(Store.near_pages)
    find_many = _awaited(Store.find_many)
    exists = _awaited(Store.exists)
    get = _awaited(Store.get)
    should_fetch = _awaited(Store.should_fetch)
    ingest = _awaited(Store.ingest)
    ingest_many = _iterated_over(Store.ingest_many)
    should_store = _awaited(Store.should_store)
    decide = _awaited(Store.decide)
    decide_many = _iterated_over(Store.decide_many)
    add = _awaited(Store.add)
    add_many = _iterated_over(Store.add_many)
    start_run = _awaited(Store.start_run)
    expire = _awaited(Store.expire)
    delete = _awaited(Store.delete)
    delete_host = _awaited(Store.delete_host)
    pairs = _iterated(Store.pairs)
    clusters = _iterated(_at_once(Store.clusters))
    save_clusters = _awaited(Store.save_clusters)
    status = _awaited(Store.status)


@retried
def find_together(
    store: Store, simhashes: Sequence[int], distance: int | None
) -> list[list[Match]]:
    """Return the matches of each simhash, with one statement."""
    with store.session.looking_up(distance) as (connection, collection):
        return lookups.find(connection, collection, simhashes, distance)


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
    keep_markdown: bool | None = None,
    normalize_urls: bool | None = None,
    schema: str | None = None,
    prepare: bool | None = None,
    lock_timeout: float | None = None,
    statement_timeout: float | None = None,
    retry_seconds: float | None = None,
    on_event: OnEvent | None = None,
    page_seconds: float | None = None,
    page_memory: int | None = None,
) -> AsyncStore:
    """Open the store for asyncio; see :func:`pgsimhash.connect` for arguments and errors.

    ``where`` is a DSN or a URL; psycopg's ``AsyncConnection`` or ``AsyncConnectionPool``; or
    SQLAlchemy's ``AsyncEngine``, ``AsyncConnection`` or ``AsyncSession`` with psycopg 3.

    With ``page_seconds`` or ``page_memory``, processes read the pages. A page that takes longer, or
    more bytes of memory (on Linux), fails. Without them, threads read the pages, which cannot be
    interrupted.
    """
    reader = PageReader(page_seconds, page_memory)
    source = source_of(where, schema, prepare, asynchronous=True)

    def open_store() -> Store:
        try:
            limits = (lock_timeout, statement_timeout, retry_seconds, on_event)
            store = _GreenletStore(
                Session(source, schema, *limits),
                collection,
                create=create,
                scheme=scheme,
                keep_markdown=keep_markdown,
                normalize_urls=normalize_urls,
            )
            store.reader = reader
            return store
        except BaseException:
            source.close()
            raise

    return AsyncStore(await greenlet_spawn(open_store), reader)


class _Call(NamedTuple, Generic[_V, _O, _A]):
    """The call of one task, and the future that the task awaits."""

    value: _V
    options: _O
    answer: asyncio.Future[_A]


class TaskBatcher(Generic[_V, _O, _A]):
    """Combine the calls of several tasks into one statement.

    Calls that arrive during a statement are part of the next one, if their options are equal. A
    single call is sent immediately. A call whose task is cancelled may still have an effect.
    """

    def __init__(
        self,
        answer_all: Callable[[Sequence[_V], _O], Awaitable[Sequence[_A]]],
        *,
        statements: int = 1,
        size_of: Callable[[_V], int] = lambda _: 0,
    ) -> None:
        """Use a function that returns the answers to several calls, in order.

        ``statements`` is how many may run at once. ``size_of`` returns the bytes of a call; no call
        is added to a statement that has :data:`~pgsimhash.store.batches.BATCH_BYTES`.
        """
        self._answer_all = answer_all
        self._statements, self._size_of = statements, size_of
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: deque[_Call[_V, _O, _A]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    async def call(self, value: _V, options: _O) -> _A:
        """Return the answer to a call."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # The tasks of a closed loop never end.
            self._loop, self._waiting, self._tasks = loop, deque(), set()
        call = _Call(value, options, loop.create_future())
        self._waiting.append(call)
        self._start()
        answer: _A = await call.answer
        return answer

    def _start(self) -> None:
        if self._waiting and len(self._tasks) < self._statements:
            task = asyncio.create_task(self._answer())
            self._tasks.add(task)
            # A callback, because a task that is cancelled before its first step runs no line.
            task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._start()

    async def _answer(self) -> None:
        batch = self._next()
        if not batch:
            return
        try:
            answers = await self._answer_all([call.value for call in batch], batch[0].options)
            for call, answer in zip(batch, answers, strict=True):
                if not call.answer.done():
                    call.answer.set_result(answer)
        except Exception as error:
            for call in batch:
                if not call.answer.done():
                    call.answer.set_exception(error)
        except asyncio.CancelledError:
            for call in batch:
                call.answer.cancel()
            raise

    def _next(self) -> list[_Call[_V, _O, _A]]:
        """Take the calls for the next statement, without those of cancelled tasks."""
        batch: list[_Call[_V, _O, _A]] = []
        others: list[_Call[_V, _O, _A]] = []
        size = 0
        while self._waiting and len(batch) < _STATEMENT_CALLS and size < batches.BATCH_BYTES:
            call = self._waiting.popleft()
            if call.answer.done():
                continue
            if batch and call.options != batch[0].options:
                others.append(call)
                continue
            batch.append(call)
            size += self._size_of(call.value)
        self._waiting.extendleft(reversed(others))
        return batch
