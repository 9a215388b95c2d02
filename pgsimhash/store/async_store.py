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
from functools import partial, wraps
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    ParamSpec,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
)

import psycopg

from pgsimhash.db.connections import connections_of, of_loop
from pgsimhash.db.statements import await_
from pgsimhash.pages.policies import MatchOptions
from pgsimhash.pages.records import Input, Item, OnEvent, Pause, Verdict
from pgsimhash.reading.workers import PAGE_SECONDS, PageReader, check_reading
from pgsimhash.runtime import requires
from pgsimhash.schema.deployed import open_deployed
from pgsimhash.schemes import Scheme, get_scheme
from pgsimhash.search.clusters import Cluster
from pgsimhash.store import batches
from pgsimhash.store.collection import Collection
from pgsimhash.store.session import Session
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

with requires("the asynchronous store", "greenlet", extra="async"):
    # Without it, SQLAlchemy's greenlet_spawn fails only when it is called.
    import_module("greenlet")
    from sqlalchemy.util import greenlet_spawn

_P = ParamSpec("_P")
_T = TypeVar("_T")
_V = TypeVar("_V")

_END: Any = object()
_CANCEL_SECONDS: Final = 10  # psycopg waits 5 seconds for the server to cancel a statement
_BATCH_CALLS: Final = 64  # per transaction; bounds how long the first waits for the last


class ConnectOptions(TypedDict, total=False):
    """The options of :func:`pgsimhash.connect`."""

    collection: str
    create: bool | None
    scheme: str | Scheme | None
    keep_markdown: bool | None
    normalize_urls: bool | None
    schema: str | None
    retry_seconds: float | None
    on_event: OnEvent | None


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
    page_seconds: float | None = None,
    page_memory: int | None = None,
    **options: Unpack[ConnectOptions],
) -> AsyncStore:
    """Open the store for asyncio; see :func:`pgsimhash.connect` for the options and errors.

    ``where`` is a DSN or a URL; psycopg's ``AsyncConnection`` or ``AsyncConnectionPool``; or
    SQLAlchemy's ``AsyncEngine``, ``AsyncConnection`` or ``AsyncSession`` with psycopg 3.

    With ``page_seconds`` or ``page_memory``, processes read the pages; one that takes longer, or
    more bytes of memory (on Linux), fails. Otherwise threads do, which cannot be interrupted.
    """
    reader = PageReader(page_seconds, page_memory)
    connect = partial(open_deployed, schema=options.get("schema"), asynchronous=True)
    connections = connections_of(where, connect, asynchronous=True)
    session: Session = await greenlet_spawn(partial(Session, connections, **options))
    return AsyncStore(_GreenletStore(session, reader))


def _awaited(
    method: Callable[Concatenate[Store, _P], _T],
) -> Callable[Concatenate[AsyncStore, _P], Coroutine[Any, Any, _T]]:
    """Return a method of Store as a coroutine function."""
    name = method.__name__

    @wraps(method)
    async def call(self: AsyncStore, /, *arguments: _P.args, **options: _P.kwargs) -> _T:
        answer: _T = await greenlet_spawn(
            partial(getattr(self._store, name), *arguments, **options)
        )
        return answer

    return call


def _iterated(
    method: Callable[Concatenate[Store, _P], Iterator[_T]],
) -> Callable[Concatenate[AsyncStore, _P], AsyncIterator[_T]]:
    """Return a method of Store that yields as an asynchronous generator."""
    name = method.__name__

    @wraps(method)
    async def call(
        self: AsyncStore, /, *arguments: _P.args, **options: _P.kwargs
    ) -> AsyncIterator[_T]:
        inputs = [_blocking(value) for value in arguments]
        named = {key: _blocking(value) for key, value in options.items()}
        values = await greenlet_spawn(partial(getattr(self._store, name), *inputs, **named))
        try:
            while (value := await greenlet_spawn(next, values, _END)) is not _END:
                yield value
        finally:
            await greenlet_spawn(values.close)

    return call


def _iterated_over(
    method: Callable[Concatenate[Store, Iterable[_V], _P], Iterator[_T]],
) -> Callable[Concatenate[AsyncStore, Iterable[_V] | AsyncIterable[_V], _P], AsyncIterator[_T]]:
    """Return the same for a method that takes pages, which may be an asynchronous iterable."""
    return _iterated(method)  # type: ignore[arg-type]


def _blocking(value: Any) -> Any:
    """Return a value; an asynchronous iterable as an iterator for a greenlet."""
    if not isinstance(value, AsyncIterable):
        return value
    items = aiter(value)
    return iter(lambda: await_(anext(items, _END)), _END)


class AsyncStore:
    """A collection of pages in PostgreSQL, for asyncio; see :func:`pgsimhash.connect_async`.

    It has the methods of :class:`pgsimhash.Store`: await them, or iterate over them with ``async
    for`` if they yield. :meth:`clusters` finds all clusters before it yields the first. Pages are
    fingerprinted in threads, or in processes if they have limits.

    Over a pool or an engine, each call has its own connection and tasks run concurrently. Over a
    DSN, a connection or a session, calls wait for one another. If the store commits, concurrent
    :meth:`ingest` and :meth:`add_page` share a transaction; a cancelled one may be stored.
    """

    def __init__(self, store: _GreenletStore) -> None:
        self._store = store

    async def run_sync(
        self,
        function: Callable[Concatenate[Store, _P], _T],
        *arguments: _P.args,
        **options: _P.kwargs,
    ) -> _T:
        """Call a function that takes a store, such as those of ``pgsimhash.analysis``.

        Exhaust iterators within the function.
        """
        return await greenlet_spawn(lambda: function(self._store, *arguments, **options))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            await asyncio.to_thread(self._store.reader.close)
            await self._store.decisions.end_cancelled()
        finally:
            await self.run_sync(Store.__exit__, *error)

    async def close(self) -> None:
        """Close the connections that the store opened, and stop its processes."""
        await self.__aexit__()

    @property
    def collection(self) -> Collection:
        """See :attr:`pgsimhash.Store.collection`."""
        return self._store.collection

    __repr__: Any = Store.__repr__
    find = _awaited(Store.find)
    near_pages = _awaited(Store.near_pages)
    find_many = _awaited(Store.find_many)
    has_near = _awaited(Store.has_near)
    get = _awaited(Store.get)
    should_fetch = _awaited(Store.should_fetch)
    should_fetch_many = _awaited(Store.should_fetch_many)
    request_headers = _awaited(Store.request_headers)
    seen = _awaited(Store.seen)
    gone = _awaited(Store.gone)
    add_redirects = _awaited(Store.add_redirects)
    ingest = _awaited(Store.ingest)
    ingest_many = _iterated_over(Store.ingest_many)
    ingest_files = _iterated(Store.ingest_files)
    decide = _awaited(Store.decide)
    decide_many = _iterated_over(Store.decide_many)
    add_page = _awaited(Store.add_page)
    add_pages = _iterated_over(Store.add_pages)
    start_run = _awaited(Store.start_run)
    expire = _awaited(Store.expire)
    delete_page = _awaited(Store.delete_page)
    delete_host = _awaited(Store.delete_host)
    pairs = _iterated(Store.pairs)
    clusters = _iterated(Store.clusters)
    save_clusters = _awaited(Store.save_clusters)
    status = _awaited(Store.status)
    collections = _awaited(Store.collections)
    change_settings = _awaited(Store.change_settings)
    rename = _awaited(Store.rename)
    set_policy = _awaited(Store.set_policy)
    remove_policy = _awaited(Store.remove_policy)
    policies = _awaited(Store.policies)
    policy_for = _awaited(Store.policy_for)
    count_reread = _awaited(Store.count_reread)
    mark = _awaited(Store.mark)
    unmark = _awaited(Store.unmark)
    marks = _awaited(Store.marks)
    runs = _awaited(Store.runs)
    undo_run = _awaited(Store.undo_run)
    check = _iterated(Store.check)
    rebuild = _awaited(Store.rebuild)
    delete_collection = _awaited(Store.delete_collection)


class _GreenletStore(Store):
    """A store in a greenlet, whose concurrent calls for one page each share a transaction."""

    def __init__(self, session: Session, reader: PageReader) -> None:
        super().__init__(session)
        self.reader = reader
        self._decisions: dict[Any, TaskBatcher] = {}

    @property
    def decisions(self) -> TaskBatcher:
        """The calls of the tasks of this event loop."""
        decide = partial(greenlet_spawn, self._ingest.decide_batch)
        return of_loop(self._decisions, partial(TaskBatcher, decide))

    def clusters(self, *arguments: Any, **options: Any) -> Generator[Cluster]:
        # All at once, so that no transaction stays open when the caller leaves the loop.
        yield from list(super().clusters(*arguments, **options))

    def _decide(self, item: Item, size: int, options: MatchOptions, *, dry_run: bool) -> Verdict:
        if dry_run or not self._session.connections.owned:
            return super()._decide(item, size, options, dry_run=dry_run)
        verdict: Verdict = await_(self.decisions.call(item, options, size))
        return verdict

    def _extract(
        self,
        inputs: Iterable[Input],
        jobs: int,
        scheme: str,
        *,
        page_seconds: float | None,
        page_memory: int | None,
        **options: Any,
    ) -> Iterator[Item]:
        check_reading(jobs, options["max_bytes"])
        is_shared = jobs == 1 and page_seconds is page_memory is None
        seconds = PAGE_SECONDS if page_seconds is None else page_seconds
        own = None if is_shared else PageReader(seconds, page_memory)
        extract = partial((own or self.reader).extract, scheme=get_scheme(scheme), **options)
        reading: deque[asyncio.Task[Item]] = deque()
        try:
            for page in inputs:
                reading.append(asyncio.ensure_future(asyncio.to_thread(extract, page)))
                # Pages before a pause do not wait for pages after it.
                while reading and (len(reading) >= jobs or isinstance(page, Pause)):
                    yield await_(reading.popleft())
            while reading:
                yield await_(reading.popleft())
        finally:
            for task in reading:
                task.cancel()
            if own is not None:
                own.close()


class TaskBatcher:
    """Combine the calls of several tasks with equal options into one transaction.

    A single call is sent immediately; those that arrive during a transaction are part of the next.
    """

    def __init__(self, answer_all: Callable[[list[Any], Any], Awaitable[Sequence[Any]]]) -> None:
        self._answer_all = answer_all
        self._turn = asyncio.Lock()
        # By its future answer, the value, options and size of each call.
        self._waiting: dict[asyncio.Future[Any], tuple[Any, Any, int]] = {}
        self._running: dict[asyncio.Task[None], dict[asyncio.Future[Any], Any]] = {}

    async def call(self, value: Any, options: Any, size: int = 0) -> Any:
        """Return the answer to a call that sends ``size`` bytes."""
        answer = asyncio.get_running_loop().create_future()
        self._waiting[answer] = value, options, size
        try:
            async with self._turn:
                while answer in self._waiting:
                    # A task of its own, so that a cancelled call does not end those of others.
                    batch, own_options = self._next()
                    task = asyncio.create_task(self._answer(batch, own_options))
                    self._running[task] = batch
                    task.add_done_callback(self._running.pop)
                    await asyncio.shield(task)
            return await answer
        finally:
            answer.cancel()
            self._waiting.pop(answer, None)

    async def end_cancelled(self) -> None:
        """Cancel the transactions of which all calls were cancelled; they may wait for a lock."""
        left = [task for task, batch in self._running.items() if all(call.done() for call in batch)]
        if left:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=_CANCEL_SECONDS)

    async def _answer(self, batch: dict[asyncio.Future[Any], Any], options: Any) -> None:
        try:
            answers = await self._answer_all([*batch.values()], options)
            for future, answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)
        except Exception as error:
            for future in batch:
                if not future.done():
                    future.set_exception(error)
        finally:
            for future in batch:
                future.cancel()

    def _next(self) -> tuple[dict[asyncio.Future[Any], Any], Any]:
        """Take the calls for the next transaction: those with the options of the first."""
        _, options, _ = next(iter(self._waiting.values()))
        batch: dict[asyncio.Future[Any], Any] = {}
        size = 0
        for future, (value, own_options, own_size) in [*self._waiting.items()]:
            if len(batch) == _BATCH_CALLS or size >= batches.BATCH_BYTES:
                break
            if own_options == options:
                del self._waiting[future]
                batch[future] = value
                size += own_size
        return batch, options
