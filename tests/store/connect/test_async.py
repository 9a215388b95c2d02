"""The store for asyncio behaves like the synchronous one, over any asynchronous connection."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import numpy as np
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import scalar_row
from psycopg_pool import AsyncConnectionPool
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)

from pgsimhash import (
    ArgumentError,
    Match,
    NoServerError,
    Store,
    StoreError,
    Verdict,
    analysis,
    connect,
    connect_async,
    maintenance,
)
from pgsimhash.batch import parquet
from pgsimhash.pages.policies import PolicySettings
from pgsimhash.pages.records import PageFailure
from pgsimhash.schemes import registry
from pgsimhash.sources import PAUSE, SourcePage
from pgsimhash.sqlalchemy import Page
from pgsimhash.store.async_store import AsyncStore
from pgsimhash.testing import url_of_dsn
from tests.database import end_others, wait_for_a_lock
from tests.programs import python
from tests.reading.test_workers import HANGING, article, readers
from tests.refusals import because
from tests.store.connect.test_retries import behind_proxy
from tests.store.content import content, urls
from tests.store.test_store import ARTICLE, page, paragraph

A, B = "https://a.example/", "https://b.example/"
FAR = 2**63

T = TypeVar("T")


def run(made: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(made)


def engine_over(dsn: str) -> AsyncEngine:
    return create_async_engine(
        "postgresql+psycopg://",
        pool_size=3,
        max_overflow=0,
        async_creator=lambda: psycopg.AsyncConnection.connect(dsn),
    )


async def over_dsn(dsn: str, use: Callable[[AsyncStore], Awaitable[T]]) -> T:
    async with await connect_async(dsn) as store:
        return await use(store)


async def over_pool(dsn: str, use: Callable[[AsyncStore], Awaitable[T]]) -> T:
    async with AsyncConnectionPool(dsn, min_size=2, open=False) as pool:
        return await use(await connect_async(pool))


async def over_engine(dsn: str, use: Callable[[AsyncStore], Awaitable[T]]) -> T:
    engine = engine_over(dsn)
    try:
        return await use(await connect_async(engine))
    finally:
        await engine.dispose()


async def over_connection(dsn: str, use: Callable[[AsyncStore], Awaitable[T]]) -> T:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        return await use(await connect_async(connection))


async def over_alchemy(dsn: str, use: Callable[[AsyncStore], Awaitable[T]]) -> T:
    engine = engine_over(dsn)
    async with engine.connect() as connection:
        made = await use(await connect_async(connection))
        await connection.commit()
    await engine.dispose()
    return made


async def over_session(dsn: str, use: Callable[[AsyncStore], Awaitable[T]]) -> T:
    engine = engine_over(dsn)
    async with AsyncSession(engine) as session:
        made = await use(await connect_async(session))
        await session.commit()
    await engine.dispose()
    return made


WAYS = [over_dsn, over_pool, over_engine, over_connection, over_alchemy, over_session]
OWN = [over_dsn, over_pool, over_engine]
"""Sources that can replace a lost connection."""

PAGES = [(f"https://a.example/{n}", page(paragraph(n % 4), paragraph(n % 4 + 9))) for n in range(6)]
SIMHASHES = np.array([0, 3, FAR], np.uint64)
YIELDING = {"ingest_many", "decide_many", "add_many", "pairs", "clusters"}


async def everything(store: AsyncStore) -> list[object]:
    """Call each method; the results must be equal in all cases."""
    seen: list[object] = [v async for v in store.ingest_many(PAGES)]
    seen += [v async for v in store.add_many([(A, 0), (B, 1), ("none", 2)])]
    seen.append(await store.ingest(f"{A}one", page(*ARTICLE)))
    seen.append(await store.decide(f"{B}one", page(*ARTICLE)))
    seen.append(await store.should_store(f"{A}two", page(*ARTICLE)))
    seen.append(await store.add(f"{A}three", FAR))
    seen.append(await store.find(0, 3))
    seen.append(await store.exists(FAR))
    seen.append((await store.find_many(SIMHASHES, 1)).distances.tolist())
    seen.append([one.url for one in await store.near_pages(A, 3)])
    known = await store.get(A)
    seen.append(known and known.simhash)
    seen.append(await store.should_fetch(f"{A}never"))
    seen.append(await store.delete(f"{A}three"))
    seen.append((await store.delete_host("b.example")).versions)
    seen += [v async for v in store.decide_many(PAGES, jobs=2)]
    seen.append(sum([len(block.low) async for block in store.pairs(3)]))
    seen.append([len(cluster.pages) async for cluster in store.clusters(8)])
    seen.append(await store.start_run("another") > 0)
    told: list[int] = []
    seen.append((await store.expire(timedelta(days=400), progress=told.append)).versions)
    seen += [told, store.collection == store.opened.name, store.scheme, store.layout]
    seen.append([one.pages for one in await store.status()])
    return seen


class Awaited:
    """The methods of a synchronous store, to be awaited or iterated over like those of another."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        if not callable(attribute):
            return attribute

        async def answer(*arguments: Any, **options: Any) -> Any:
            return attribute(*arguments, **options)

        async def items(*arguments: Any, **options: Any) -> Any:
            for item in attribute(*arguments, **options):
                yield item

        return items if name in YIELDING else answer


def the_same(store: Store) -> list[object]:
    synchronous: Any = Awaited(store)
    return run(everything(synchronous))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_gives_the_results_of_the_synchronous_store(
    dsn: str, way: Callable[..., Coroutine[Any, Any, list[object]]]
) -> None:
    made = run(way(dsn, everything))
    stored = content(dsn, "default")
    with connect(dsn, collection="other") as other:
        expected = the_same(other)
        # The status includes all collections.
        expected[-1] = [expected[-1][-1]]  # type: ignore[index]
    assert made == expected
    assert [row[:2] for row in stored] == [row[:2] for row in content(dsn, "other")]


def test_both_stores_have_the_same_names_and_parameters() -> None:
    def public(kind: type) -> dict[str, Any]:
        return {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}

    def parameters(method: Any) -> list[tuple[str, Any, Any]]:
        some = inspect.signature(method).parameters.values()
        return [(one.name, one.kind, one.default) for one in some]

    own, other = public(AsyncStore), public(Store)
    assert own.keys() - other.keys() == {"run"}
    assert other.keys() - own.keys() == set()
    for name, method in other.items():
        if isinstance(method, property):
            assert isinstance(own[name], property), name
        else:
            assert parameters(own[name]) == parameters(method), name


FUNCTIONS: dict[str, Callable[[Store], Any]] = {
    "page_pairs": lambda store: [(one.a.url, one.b.url) for one in analysis.page_pairs(store, 8)],
    "report": lambda store: analysis.report(store).clustered_pages,
    "save_clusters": lambda store: store.save_clusters(8),
    "save_simhashes": lambda store: parquet.save_simhashes(store, os.devnull),
    "mark": lambda store: maintenance.mark(store, A, B, same=True),
    "set_policy": lambda store: maintenance.set_policy(
        store, "a.example", PolicySettings(distance=2)
    ),
    "change_settings": lambda store: maintenance.change_settings(store, distance=2),
    "undo": lambda store: maintenance.undo(store)[1].versions,
    "rename": lambda store: maintenance.rename(store, f"{store.collection}_renamed"),
}
"""Functions that take a store."""

MANY_TRANSACTIONS: dict[str, Callable[[Store], Any]] = {
    "check": lambda store: list(maintenance.check(store, repair=True)),
    "rebuild": lambda store: maintenance.rebuild(store, distance=3).default_distance,
}


async def filled(store: AsyncStore) -> None:
    async for _ in store.ingest_many(PAGES):
        pass
    async for _ in store.add_many([(A, 0), (B, 1)]):
        pass


@pytest.mark.parametrize("way", [over_dsn, over_session], ids=lambda way: way.__name__)
def test_functions_that_take_a_store_are_run(
    dsn: str, way: Callable[..., Coroutine[Any, Any, dict[str, Any]]]
) -> None:
    functions = {**FUNCTIONS, **(MANY_TRANSACTIONS if way is over_dsn else {})}

    async def use(store: AsyncStore) -> dict[str, Any]:
        await filled(store)
        await store.run(maintenance.rename, "renamed", swap=False)
        await store.run(maintenance.rename, "default")
        return {name: await store.run(function) for name, function in functions.items()}

    def plainly(store: Store) -> dict[str, Any]:
        list(store.ingest_many(PAGES))
        list(store.add_many([(A, 0), (B, 1)]))
        return {name: function(store) for name, function in functions.items()}

    made = run(way(dsn, use))
    with connect(dsn, collection="other") as other:
        assert made == plainly(other)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_loop_may_call_the_store_and_end_early(
    dsn: str, way: Callable[..., Coroutine[Any, Any, list[str]]]
) -> None:
    async def use(store: AsyncStore) -> list[str]:
        await filled(store)
        said: list[str] = []
        async for cluster in store.clusters(8):
            assert await store.find(cluster.canonical.simhash)
            said.append((await store.add(f"{B}1", 0xFFFF << 48)).verdict)
            break
        async for _ in store.pairs(8):
            said.append((await store.add(f"{B}2", 0xFFFF << 32)).verdict)
            break
        return said

    assert run(way(dsn, use)) == ["new", "new"]


class TestTransactions:
    def test_a_sessions_rollback_undoes_our_rows(self, dsn: str) -> None:
        async def use() -> None:
            engine = engine_over(dsn)
            async with AsyncSession(engine) as session:
                store = await connect_async(session)
                await session.commit()
                assert (await store.add(A, 0)).verdict == "new"
                count = sqlalchemy.text("SELECT count(*) FROM pgsimhash.pages")
                assert await session.scalar(count) == 1
                await session.rollback()
                assert await store.get(A) is None
                await store.add(B, 0)
                await session.commit()
            await engine.dispose()

        run(use())
        assert urls(dsn) == [B]

    def test_a_page_is_stored_when_its_verdict_is_consumed(self, dsn: str) -> None:
        async def use() -> None:
            async with await psycopg.AsyncConnection.connect(dsn) as connection:
                store = await connect_async(connection)
                async for verdict in store.add_many([(A, 0), (B, FAR)]):
                    assert await store.get(verdict.url) is not None
                    assert verdict.url == A
                    break
                await connection.commit()
                made = store.add_many([(f"{A}1", 1 << 20), (f"{A}2", 1 << 40)], batch_size=2)
                await anext(made)
                await connection.commit()
                with pytest.raises(StoreError, check=because("wrong_transaction")):
                    await anext(made)

        run(use())
        assert urls(dsn) == [A, f"{A}1", f"{A}2"]


class TestTasks:
    def test_concurrent_lookups_give_the_results_of_single_ones(
        self, dsn: str, store: Store
    ) -> None:
        around = [(n << 40) ^ (1 << bit) for n in range(40) for bit in range(3)]
        pages = [(f"https://{'abc'[n % 3]}.example/{n}", one) for n, one in enumerate(around)]
        list(store.add_many(pages, distance=0))
        asked: list[tuple[int, dict[str, Any]]] = [
            (simhash, {"distance": distance})
            for simhash in [*around, 5, 7]
            for distance in (None, 1, 3)
        ]
        asked += [(0, {"limit": limit}) for limit in (1, 2, 5)]
        asked += [(0, {"host": f"{name}.example"}) for name in "abd"]

        async def use(own: AsyncStore) -> list[list[Match]]:
            return await asyncio.gather(*(own.find(one, **options) for one, options in asked))

        expected = [store.find(one, **options) for one, options in asked]
        assert {len(matches) for matches in expected} > {0, 1, 2, 5}
        for way in (over_pool, over_engine, over_dsn, over_connection):
            assert run(way(dsn, use)) == expected

    @pytest.mark.parametrize("way", [over_pool, over_dsn], ids=lambda way: way.__name__)
    @pytest.mark.parametrize("method", ["find", "add"])
    def test_cancelled_and_invalid_calls_disturb_no_others(
        self, dsn: str, way: Callable[..., Coroutine[Any, Any, list[Any]]], method: str
    ) -> None:
        async def use(own: AsyncStore) -> list[Any]:
            def call(n: int, distance: int = 0) -> Coroutine[Any, Any, Any]:
                if method == "find":
                    return own.find(n << 40, distance)
                return own.add(f"{A}{n}", n << 40, distance=distance)

            calls = [call(n, 63 if n % 50 == 7 else 0) for n in range(100)]
            tasks = [asyncio.create_task(one) for one in calls]
            await asyncio.sleep(0)
            for task in tasks[10::10]:
                task.cancel()
            return await asyncio.gather(*tasks, return_exceptions=True)

        if method == "find":
            with connect(dsn) as store:
                list(store.add_many([(f"{A}{n}", n << 40) for n in range(100)], distance=0))
        for n, answer in enumerate(run(way(dsn, use))):
            if n and n % 10 == 0:
                assert isinstance(answer, asyncio.CancelledError)
            elif n % 50 == 7:
                assert isinstance(answer, ArgumentError)
            else:
                (url,) = [match.url for match in answer] if method == "find" else [answer.url]
                assert url == f"{A}{n}"

    def test_concurrent_pages_get_the_verdicts_of_single_ones(self, dsn: str) -> None:
        random = np.random.default_rng(1)
        for way in (over_pool, over_engine, over_dsn, over_connection):
            around = random.integers(2**63, size=25)
            pages = [
                (f"{A}{simhash}/{bit}", int(simhash) ^ (1 << bit))
                for simhash in around
                for bit in range(4)
            ]

            async def use(own: AsyncStore, pages: Sequence[tuple[str, int]]) -> list[Verdict]:
                return await asyncio.gather(
                    *(own.add(*page, distance=n % 2 + 2) for n, page in enumerate(pages)),
                    own.add(*pages[0]),
                )

            *verdicts, repeated = run(way(dsn, partial(use, pages=pages)))
            assert [verdict.url for verdict in verdicts] == [url for url, _ in pages]
            assert repeated.verdict == "unchanged"
            originals = [verdict.page_id for verdict in verdicts if verdict.verdict == "new"]
            copies = [verdict.original_page_id for verdict in verdicts if verdict.duplicate_of]
            assert len(originals) == 25
            assert Counter(copies) == dict.fromkeys(originals, 3)

    def test_concurrent_pages_share_a_transaction(self, dsn: str) -> None:
        async def use(own: AsyncStore) -> list[Verdict]:
            return await asyncio.gather(*(own.add(f"{A}{n}", n << 30) for n in range(64)))

        run(over_pool(dsn, use))
        with psycopg.connect(dsn) as connection:
            transactions = "SELECT count(DISTINCT xmin::text) FROM pgsimhash.pages"
            ((count,),) = connection.execute(transactions)
        assert count < 10

    @pytest.mark.parametrize("retry_seconds", [0, 60])
    def test_a_call_cancelled_twice_while_it_reopens_leaves_the_store_usable(
        self, dsn: str, retry_seconds: float
    ) -> None:
        async def cancel_twice(store: AsyncStore) -> None:
            with psycopg.connect(dsn) as other:
                other.execute("LOCK pgsimhash.pages, pgsimhash.collections")
                task = asyncio.create_task(store.get(A))
                await asyncio.to_thread(wait_for_a_lock, dsn)
                # After the first cancellation, psycopg cancels the query and waits for the server's
                # answer.
                for _ in range(2):
                    task.cancel()
                    await asyncio.sleep(0)
                with pytest.raises(asyncio.CancelledError):
                    await task

        async def use() -> None:
            async with await connect_async(dsn, retry_seconds=retry_seconds) as store:
                await store.add(A, 0)
                end_others(dsn)
                with suppress(NoServerError):
                    await store.get(A)
                for _ in range(2):
                    await cancel_twice(store)
                    assert await store.get(A) is not None
                await store.add(B, FAR)

        run(use())
        assert urls(dsn) == [A, B]

    @pytest.mark.parametrize("way", OWN, ids=lambda way: way.__name__)
    def test_after_a_lost_commit_answer_the_verdicts_are_right(
        self, dsn: str, way: Callable[..., Coroutine[Any, Any, list[str]]]
    ) -> None:
        async def use(own: AsyncStore) -> list[str]:
            await own.add(A, 5)
            between.cut_after = between.commits + 1
            pages = [(f"{A}{n}", n << 40) for n in range(1, 9)]
            return [made.verdict async for made in own.add_many(pages, distance=0)]

        with behind_proxy(dsn) as (between, there):
            assert run(way(there, use)) == ["new"] * 8
            assert between.cuts == 1
        assert len(urls(dsn)) == 9

    @pytest.mark.parametrize("way", OWN, ids=lambda way: way.__name__)
    def test_a_server_that_restarts_is_waited_for(
        self, dsn: str, way: Callable[..., Coroutine[Any, Any, list[str]]]
    ) -> None:
        async def use(own: AsyncStore) -> list[str]:
            await own.find(1)
            between.refusing = True
            end_others(dsn)
            asyncio.get_running_loop().call_later(0.7, setattr, between, "refusing", False)
            made = await asyncio.gather(
                *(own.add(f"{A}{n}", n << 40, distance=0) for n in range(4)),
                *(own.find(FAR | n << 40, 0) for n in range(50)),
            )
            assert made[4:] == [[]] * 50
            return [verdict.verdict for verdict in made[:4]]

        with behind_proxy(dsn) as (between, there):
            assert run(way(there, use)) == ["new"] * 4
        assert len(urls(dsn)) == 4

    def test_the_event_loop_continues_meanwhile(self, dsn: str) -> None:
        async def use(own: AsyncStore) -> int:
            async def pages() -> AsyncIterator[tuple[str, str]]:
                for one in PAGES:
                    await asyncio.sleep(0)
                    yield one

            ticks = 0

            async def tick() -> None:
                nonlocal ticks
                while True:
                    ticks += 1
                    await asyncio.sleep(0.001)

            ticking = asyncio.create_task(tick())
            assert len([v async for v in own.ingest_many(pages())]) == len(PAGES)
            ticking.cancel()
            return ticks

        assert run(over_dsn(dsn, use)) > 3


def test_a_pool_whose_connections_are_all_in_use(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is raised immediately, without retries for a minute."""

    async def use() -> None:
        engine = create_async_engine(
            "postgresql+psycopg://",
            async_creator=lambda: psycopg.AsyncConnection.connect(dsn),
            pool_size=1,
            max_overflow=0,
            pool_timeout=0.1,
        )
        async with AsyncConnectionPool(
            dsn, min_size=1, max_size=1, timeout=0.3, open=False
        ) as pool:
            await pool.wait()
            for where, taken in ((pool, pool.connection), (engine, engine.connect)):
                store = await connect_async(where)
                async with taken():
                    with pytest.raises(StoreError, check=because("pool_exhausted")):
                        await store.find(0)
                assert await store.find(0) == []
        await engine.dispose()

    run(use())
    assert [one for one in caplog.messages if "again" in one] == []


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda dsn: psycopg.connect(dsn), ArgumentError, "AsyncEngine"),
        (lambda dsn: 5, ArgumentError, "not builtins.int"),
        (lambda dsn: "postgresql://127.0.0.1:1/x", NoServerError, "no PostgreSQL"),
        (lambda dsn: engine_over("postgresql://127.0.0.1:1/x"), NoServerError, "no PostgreSQL"),
        (lambda dsn: sqlalchemy.create_engine("sqlite://"), ArgumentError, "AsyncEngine"),
    ],
)
def test_invalid_sources_are_refused(
    dsn: str, make: Callable[[str], Any], kind: type[Exception], said: str
) -> None:
    where = make(dsn)
    with pytest.raises(kind, match=said):
        run(connect_async(where))
    if isinstance(where, psycopg.Connection):
        where.close()


class TestWhatFailed:
    def test_a_connection_that_was_not_awaited(self, dsn: str) -> None:
        async def use() -> None:
            engine = engine_over(dsn)
            with pytest.raises(ArgumentError, match=r"await engine\.connect\(\)"):
                await connect_async(engine.connect())
            await engine.dispose()

        run(use())

    def test_a_session_whose_transaction_failed(self, dsn: str) -> None:
        async def use() -> None:
            engine = engine_over(dsn)
            async with AsyncSession(engine) as session:
                store = await connect_async(session)
                await session.commit()
                session.add(Page(url=A))
                with pytest.raises(ArgumentError, check=because("invalid_argument")):
                    await session.flush()
                with pytest.raises(StoreError, check=because("wrong_transaction")):
                    await store.find(0)
                await session.rollback()
                with pytest.raises(sqlalchemy.exc.ProgrammingError):
                    await session.execute(sqlalchemy.text("SELECT nothing"))
                with pytest.raises(StoreError, check=because("wrong_transaction")):
                    await store.add(A, 0)
                await session.rollback()
                await store.add(A, 0)
                await session.commit()
            await engine.dispose()

        run(use())
        assert urls(dsn) == [A]

    def test_a_connection_that_is_closed(self, dsn: str) -> None:
        async def use() -> None:
            engine = engine_over(dsn)
            async with engine.connect() as lent:
                by_alchemy = await connect_async(lent)
            async with await psycopg.AsyncConnection.connect(dsn) as connection:
                by_psycopg = await connect_async(connection)
            async with AsyncConnectionPool(dsn, open=False) as pool:
                by_pool = await connect_async(pool)
            for store in (by_alchemy, by_psycopg, by_pool):
                with pytest.raises(StoreError, match="is closed", check=because("closed")):
                    await store.find(0)
            await engine.dispose()

        run(use())

    @pytest.mark.parametrize(
        "way", [way for way in WAYS if way not in OWN], ids=lambda way: way.__name__
    )
    def test_a_batch_whose_callers_connection_is_lost(
        self, dsn: str, way: Callable[..., Coroutine[Any, Any, None]]
    ) -> None:
        async def use(store: AsyncStore) -> None:
            await store.find(0)
            end_others(dsn)
            try:
                await store.add(A, 0)
            except NoServerError as error:
                told.append(error.reason)

        told: list[str] = []
        # The caller notices the loss too; SQLAlchemy knows it, and needs a rollback.
        with suppress(psycopg.OperationalError, sqlalchemy.exc.PendingRollbackError):
            run(way(dsn, use))
        assert told == ["connection_lost"]


def test_settings_of_a_connection_do_not_matter(dsn: str) -> None:
    async def use() -> list[object]:
        async with await psycopg.AsyncConnection.connect(
            dsn,
            row_factory=scalar_row,
            cursor_factory=psycopg.AsyncClientCursor,
            prepare_threshold=0,
        ) as connection:
            return await everything(await connect_async(connection))

    made = run(use())
    with connect(dsn, collection="other") as other:
        assert made[:-1] == the_same(other)[:-1]


def test_other_asynchronous_sources(dsn: str) -> None:
    """A URL of SQLAlchemy, and sessions by task."""

    async def use() -> None:
        async with await connect_async(sqlalchemy.make_url(url_of_dsn(dsn))) as store:
            await store.add(A, 0)
        engine = engine_over(dsn)
        scoped = async_scoped_session(async_sessionmaker(engine), asyncio.current_task)
        store = await connect_async(scoped)
        await scoped.commit()
        await scoped.remove()
        for url in (B, f"{B}2"):
            await store.add(url, FAR)
            await scoped.commit()
            await scoped.remove()
        await engine.dispose()

    run(use())
    assert urls(dsn) == [A, B, f"{B}2"]


def test_asynchronous_sources_are_refused_by_the_synchronous_store(dsn: str) -> None:
    async def use() -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            with pytest.raises(ArgumentError, match="connect_async"):
                connect(connection)  # type: ignore[arg-type]

    run(use())


@pytest.mark.parametrize("missing", ["await_only", "await_"])
def test_either_name_of_sqlalchemys_await_function_works(dsn: str, missing: str) -> None:
    """2.0 has only the first one, 2.2 only the second."""
    if not vars(sqlalchemy.util).keys() - {missing} >= {"await_only", "await_"} - {missing}:
        pytest.skip("this SQLAlchemy has only that one")
    code = f"""
import asyncio, sys
from sqlalchemy import util
vars(util).pop({missing!r}, None)
import pgsimhash
async def use():
    async with await pgsimhash.connect_async(sys.argv[1]) as store:
        print((await store.add("https://a.example/", 5)).verdict)
asyncio.run(use())
"""
    assert python(code, dsn) == "new\n"


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._schemes, HANGING.name, HANGING)


@pytest.mark.usefixtures("hanging")
def test_a_page_that_takes_too_long_fails_alone(dsn: str) -> None:
    async def use() -> None:
        before = readers()
        async with await connect_async(dsn, scheme=HANGING, page_seconds=0.5) as store:
            pages = [(f"{A}{n}", "hang" if n == 1 else article(n)) for n in range(4)]
            made = [verdict async for verdict in store.ingest_many(pages)]
            alone = await asyncio.gather(*(store.ingest(f"{B}{url}", html) for url, html in pages))
            assert len(readers()) > len(before)
        for verdicts in (made, alone):
            assert [v.verdict for v in verdicts if v.url.endswith("1")] == ["failed"]
            assert [v.reason for v in verdicts if v.url.endswith("1")] == ["too_slow"]
            assert sum(v.simhash is not None for v in verdicts) == 3
        assert readers() == before

    run(use())


def test_pages_before_a_pause_are_decided(dsn: str) -> None:
    told: list[str] = []

    async def source() -> AsyncIterator[SourcePage | PageFailure]:
        yield SourcePage(A, article(1))
        while not told:
            await asyncio.sleep(0.1)
            yield PAUSE

    async def use() -> None:
        async with await connect_async(dsn) as store:
            async for verdict in store.ingest_many(source()):
                told.append(verdict.verdict)

    run(use())
    assert told == ["new"]


@pytest.mark.usefixtures("hanging")
def test_without_limits_pages_are_read_in_this_process(dsn: str) -> None:
    async def use() -> None:
        async with await connect_async(dsn, scheme=HANGING) as store:
            await store.ingest(A, article(1))
            found = await store.get(A)
        assert found is not None
        assert found.title == str(os.getpid())

    run(use())


def test_a_limit_is_above_zero(dsn: str) -> None:
    with pytest.raises(ArgumentError, check=because("invalid_argument")):
        run(connect_async(dsn, page_seconds=0))
