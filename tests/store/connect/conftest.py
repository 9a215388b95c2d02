"""Stores over each source of connections, blocking or for asyncio, to be used alike."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from inspect import isasyncgen, isawaitable
from typing import Any, NamedTuple, TypeVar

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy import create_engine, orm
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from pgsimhash import connect, connect_async
from pgsimhash.store.async_store import AsyncStore
from tests.proxy import Proxy, proxy

OWN = ["dsn", "pool", "engine"]
"""Sources that can replace a lost connection."""

LENT = ["connection", "alchemy", "session"]
"""Connections of the caller, who ends their transactions."""

T = TypeVar("T")

_END: Any = object()


async def _awaited(value: Awaitable[T]) -> T:
    return await value


class Blocking:
    """An asynchronous object with blocking methods."""

    def __init__(self, made: Any, run: Callable[[Awaitable[Any]], Any]) -> None:
        self._made, self._run = made, run

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._made, name)

        def call(*arguments: Any, **options: Any) -> Any:
            answer = attribute(*arguments, **options)
            if isasyncgen(answer):
                return self._items(answer)
            return self._run(answer) if isawaitable(answer) else answer

        return call if callable(attribute) else attribute

    def _items(self, made: Any) -> Iterator[Any]:
        try:
            while (item := self._run(anext(made, _END))) is not _END:
                yield item
        finally:
            self._run(made.aclose())


class Opened(NamedTuple):
    """A store and what it was opened over, both with blocking methods.

    If it is for asyncio, ``run`` waits for something in its event loop, and ``made`` is the store
    itself.
    """

    store: Any
    lender: Any
    run: Callable[[Awaitable[Any]], Any]
    made: Any


def engine_of(dsn: str, *, asynchronous: bool = False, **options: Any) -> Any:
    if asynchronous:
        options["async_creator"] = lambda: psycopg.AsyncConnection.connect(dsn)
        return create_async_engine("postgresql+psycopg://", **options)
    return create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn), **options)


@contextmanager
def lent(kind: str, dsn: str, *, asynchronous: bool = False, **options: Any) -> Iterator[Opened]:
    """Open a store over a source of this kind; ``options`` are those of psycopg's connection."""
    pool: Any = AsyncConnectionPool if asynchronous else ConnectionPool
    driver: Any = psycopg.AsyncConnection if asynchronous else psycopg.Connection
    session: Any = AsyncSession if asynchronous else orm.Session
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner()) if asynchronous else None

        def run(value: Any) -> Any:
            return runner.run(_awaited(value)) if runner and isawaitable(value) else value

        def entered(value: Any) -> Any:
            if not asynchronous:
                return stack.enter_context(value)
            made = value if hasattr(value, "__aenter__") else run(value)
            stack.callback(lambda: run(made.__aexit__(None, None, None)))
            return run(made.__aenter__())

        engine = engine_of(dsn, asynchronous=asynchronous, pool_size=5, max_overflow=0)
        stack.callback(lambda: run(engine.dispose()))
        sources: dict[str, Callable[[], Any]] = {
            "dsn": lambda: dsn,
            "pool": lambda: entered(pool(dsn, min_size=5, timeout=3, open=False)),
            "engine": lambda: engine,
            "connection": lambda: entered(driver.connect(dsn, **options)),
            "alchemy": lambda: entered(engine.connect()),
            "session": lambda: entered(session(engine)),
        }
        source = sources[kind]()
        if kind == "pool":
            run(source.wait())
        made = run((connect_async if asynchronous else connect)(source))
        stack.callback(lambda: run(made.close()))
        if asynchronous:
            yield Opened(Blocking(made, run), Blocking(source, run), run, made)
        else:
            yield Opened(made, source, run, made)


@pytest.fixture
def opened(request: pytest.FixtureRequest, dsn: str) -> Iterator[Opened]:
    """A store over the source of ``of``."""
    kind, asynchronous = request.param
    with lent(kind, dsn, asynchronous=asynchronous) as made:
        yield made


def of(kinds: list[str], *, asynchronous: bool | None = None) -> pytest.MarkDecorator:
    """Parametrize a test with sources for its fixture ``opened``; None is both kinds of store."""
    each = [False, True] if asynchronous is None else [asynchronous]
    ways = [(kind, also) for also in each for kind in kinds]
    names = [f"{kind}-async" if also else kind for kind, also in ways]
    return pytest.mark.parametrize("opened", ways, ids=names, indirect=True)


def over(kind: str, dsn: str, use: Callable[[AsyncStore], Awaitable[T]]) -> T:
    """Return the result of a coroutine with an asynchronous store."""
    with lent(kind, dsn, asynchronous=True) as opened:
        result: T = opened.run(use(opened.made))
    return result


@contextmanager
def behind_proxy(dsn: str) -> Iterator[tuple[Proxy, str]]:
    given = conninfo_to_dict(dsn)
    with proxy(int(given.get("port") or 5432), str(given["host"])) as between:
        yield between, between.dsn(dsn)
