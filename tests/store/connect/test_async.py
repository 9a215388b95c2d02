"""The store for asyncio does what the blocking one does, for any tasks, also cancelled ones."""

import asyncio
import gc
import inspect
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import psycopg
import pytest
import sqlalchemy
from psycopg_pool import AsyncConnectionPool

from pgsimhash import Match, Store, Verdict, connect, connect_async
from pgsimhash.errors import ArgumentError, NoServerError
from pgsimhash.sources import Pause, SourcePage
from pgsimhash.store.async_store import AsyncStore, TaskBatcher
from tests.database import end_others, run_sql, some_session_waits, wait_for_a_lock
from tests.programs import python
from tests.reading.hanging import HANGING
from tests.reading.test_workers import article, readers
from tests.store.calls import CHANGES, READS, A, B
from tests.store.connect.conftest import LENT, OWN, engine_of, over
from tests.store.content import transactions, urls
from tests.store.pages import page, paragraph

FAR = 2**63

PAGES = [(f"https://a.example/{n}", page(paragraph(n % 4), paragraph(n % 4 + 9))) for n in range(6)]


def test_both_stores_have_the_same_names_and_parameters() -> None:
    def public(kind: type) -> dict[str, Any]:
        return {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}

    def parameters(method: Any) -> list[tuple[str, Any, Any]]:
        some = inspect.signature(method).parameters.values()
        return [(one.name, one.kind, one.default) for one in some]

    own, other = public(AsyncStore), public(Store)
    assert own.keys() - other.keys() == {"run_sync"}
    assert other.keys() - own.keys() == set()
    for name, method in other.items():
        if isinstance(method, property):
            assert isinstance(own[name], property), name
        else:
            assert parameters(own[name]) == parameters(method), name


async def filled(store: AsyncStore) -> None:
    async for _ in store.ingest_many(PAGES):
        pass
    async for _ in store.add_pages([(A, 0), (B, 1)]):
        pass


@pytest.mark.parametrize("kind", ["dsn", "session"])
def test_functions_that_take_a_store_are_run(dsn: str, kind: str) -> None:
    functions = {**READS, **CHANGES}

    async def use(store: AsyncStore) -> tuple[str, list[int]]:
        await filled(store)
        for function in functions.values():
            await store.run_sync(function)
        runs = await store.runs()
        return store.collection.name, [run.pages for run in runs]

    made = over(kind, dsn, use)
    with connect(dsn, collection="other", create=True) as other:
        list(other.ingest_many(PAGES))
        list(other.add_pages([(A, 0), (B, 1)]))
        for function in functions.values():
            function(other)
        assert other.collection.name == "other_renamed"
        assert made == ("default_renamed", [run.pages for run in other.runs()])


@pytest.mark.parametrize("kind", [*OWN, *LENT])
def test_a_loop_may_call_the_store_and_end_early(dsn: str, kind: str) -> None:
    async def use(store: AsyncStore) -> list[str]:
        await filled(store)
        said: list[str] = []
        async for cluster in store.clusters(8):
            assert await store.find(cluster.canonical.simhash)
            said.append((await store.add_page(f"{B}1", 0xFFFF << 48)).kind)
            break
        async for _ in store.pairs(8):
            said.append((await store.add_page(f"{B}2", 0xFFFF << 32)).kind)
            break
        return said

    assert over(kind, dsn, use) == ["new", "new"]


class TestTasks:
    def test_concurrent_lookups_give_the_results_of_single_ones(
        self, dsn: str, store: Store
    ) -> None:
        around = [(n << 40) ^ (1 << bit) for n in range(20) for bit in range(3)]
        pages = [(f"https://{'abc'[n % 3]}.example/{n}", one) for n, one in enumerate(around)]
        list(store.add_pages(pages, distance=0))
        asked: list[tuple[int, dict[str, Any]]] = [
            (simhash, {"distance": distance})
            for simhash in [*around, 5, 7]
            for distance in (None, 1, 3)
        ]
        asked += [(0, {"limit": limit}) for limit in (1, 2, 5)]

        async def use(own: AsyncStore) -> list[list[Match]]:
            return await asyncio.gather(*(own.find(one, **options) for one, options in asked))

        expected = [store.find(one, **options) for one, options in asked]
        assert {len(matches) for matches in expected} > {0, 1, 2, 5}
        for kind in (*OWN, "connection"):
            assert over(kind, dsn, use) == expected

    @pytest.mark.parametrize("kind", ["pool", "dsn"])
    @pytest.mark.parametrize("method", ["find", "add_page"])
    def test_cancelled_and_invalid_calls_disturb_no_others(
        self, dsn: str, kind: str, method: str
    ) -> None:
        async def use(own: AsyncStore) -> list[Any]:
            def call(n: int, distance: Any = 0) -> Coroutine[Any, Any, Any]:
                if method == "find":
                    return own.find(n << 40, distance)
                return own.add_page(f"{A}{n}", n << 40, distance=distance)

            # False equals 0, but is no distance.
            wrong = {7: 63, 57: False}
            calls = [call(n, wrong.get(n, 0)) for n in range(100)]
            tasks = [asyncio.create_task(one) for one in calls]
            await asyncio.sleep(0)
            for task in tasks[10::10]:
                task.cancel()
            return await asyncio.gather(*tasks, return_exceptions=True)

        if method == "find":
            with connect(dsn) as store:
                list(store.add_pages([(f"{A}{n}", n << 40) for n in range(100)], distance=0))
        for n, answer in enumerate(over(kind, dsn, use)):
            if n and n % 10 == 0:
                assert isinstance(answer, asyncio.CancelledError)
            elif n % 50 == 7:
                assert isinstance(answer, ArgumentError)
            else:
                (url,) = [match.url for match in answer] if method == "find" else [answer.url]
                assert url == f"{A}{n}"

    def test_concurrent_pages_get_the_verdicts_of_single_ones(self, dsn: str) -> None:
        random = np.random.default_rng(1)
        for kind in (*OWN, "connection"):
            around = random.integers(2**63, size=25)
            pages = [
                (f"{A}{simhash}/{bit}", int(simhash) ^ (1 << bit))
                for simhash in around
                for bit in range(4)
            ]

            async def use(own: AsyncStore, pages: Sequence[tuple[str, int]]) -> list[Verdict]:
                return await asyncio.gather(
                    *(own.add_page(*page, distance=n % 2 + 2) for n, page in enumerate(pages)),
                    own.add_page(*pages[0]),
                )

            *verdicts, repeated = over(kind, dsn, partial(use, pages=pages))
            assert [verdict.url for verdict in verdicts] == [url for url, _ in pages]
            assert repeated.kind == "unchanged"
            originals = [verdict.page_id for verdict in verdicts if verdict.kind == "new"]
            copies = [verdict.original_page_id for verdict in verdicts if verdict.duplicate_of]
            assert len(originals) == 25
            assert Counter(copies) == dict.fromkeys(originals, 3)

    def test_concurrent_pages_share_a_transaction(self, dsn: str) -> None:
        async def use(own: AsyncStore) -> list[Verdict]:
            return await asyncio.gather(*(own.add_page(f"{A}{n}", n << 30) for n in range(64)))

        over("pool", dsn, use)
        assert transactions(dsn) < 10

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
                await store.add_page(A, 0)
                end_others(dsn)
                with suppress(NoServerError):
                    await store.get(A)
                for _ in range(2):
                    await cancel_twice(store)
                    assert await store.get(A) is not None
                await store.add_page(B, FAR)

        asyncio.run(use())
        assert urls(dsn) == [A, B]

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

        assert over("dsn", dsn, use) > 3


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
        print((await store.add_page("https://a.example/", 5)).kind)
asyncio.run(use())
"""
    assert python(code, dsn) == "new\n"


def test_a_page_that_takes_too_long_fails_alone(dsn: str) -> None:
    async def use() -> None:
        before = readers()
        async with await connect_async(dsn, scheme=HANGING, page_seconds=0.5) as store:
            pages = [(f"{A}{n}", "hang" if n == 1 else article(n)) for n in range(4)]
            made = [verdict async for verdict in store.ingest_many(pages)]
            alone = await asyncio.gather(*(store.ingest(f"{B}{url}", html) for url, html in pages))
            assert len(readers()) > len(before)
        for verdicts in (made, alone):
            assert [v.kind for v in verdicts if v.url.endswith("1")] == ["failed"]
            assert [v.reason for v in verdicts if v.url.endswith("1")] == ["too_slow"]
            assert sum(v.simhash is not None for v in verdicts) == 3
        assert readers() == before

    asyncio.run(use())


@pytest.mark.parametrize("seconds", [None, 30])
def test_pages_before_a_pause_are_decided(dsn: str, seconds: float | None) -> None:
    told: list[str] = []

    async def source() -> AsyncIterator[SourcePage | Pause]:
        yield SourcePage(A, article(1))
        while not told:
            await asyncio.sleep(0.1)
            yield Pause()

    async def use(store: AsyncStore) -> None:
        async for verdict in store.ingest_many(source(), page_seconds=seconds):
            told.append(verdict.kind)

    over("dsn", dsn, use)
    assert told == ["new"]


def test_without_limits_pages_are_read_in_this_process(dsn: str) -> None:
    async def use() -> None:
        async with await connect_async(dsn, scheme=HANGING) as store:
            await store.ingest(A, article(1))
            found = await store.get(A)
        assert found is not None
        assert found.title == str(os.getpid())
        assert repr(store) == f"<AsyncStore: the collection 'default' by {HANGING.name}>"

    asyncio.run(use())


SECONDS = 60
"""No call of these tests takes a tenth of it."""


async def answers(store: AsyncStore, number: int) -> None:
    """Call each method that shares statements, several times at once."""
    calls: list[Awaitable[object]] = [
        call
        for n in range(4)
        for call in (
            store.find(n),
            store.add_page(f"{A}{number}/{n}", n << 40),
            store.ingest(f"{B}{number}/{n}", f"<p>{number} {n} " + "word " * 30),
        )
    ]
    await asyncio.wait_for(asyncio.gather(*calls), SECONDS)


def test_calls_that_arrive_while_a_cancelled_statement_rolls_back_are_answered(dsn: str) -> None:
    async def use(store: AsyncStore) -> None:
        with psycopg.connect(dsn) as other:
            other.execute("LOCK pgsimhash.pages, pgsimhash.collections")
            first = asyncio.ensure_future(store.add_page(A, 1))
            await asyncio.to_thread(wait_for_a_lock, dsn)
            for task in asyncio.all_tasks():
                # It sends the statements of several calls.
                if "TaskBatcher" in repr(task.get_coro()):
                    task.cancel()
            await asyncio.sleep(0)
            later = asyncio.ensure_future(store.add_page(B, 2))
            await asyncio.sleep(0.05)
        assert (await asyncio.wait_for(later, SECONDS)).url == B
        with pytest.raises(asyncio.CancelledError):
            await first

    over("dsn", dsn, use)


@pytest.mark.parametrize("kind", ["engine", "pool", "dsn"])
def test_a_closed_store_leaves_no_transaction_of_a_cancelled_call(dsn: str, kind: str) -> None:
    async def use(store: AsyncStore) -> None:
        with psycopg.connect(dsn) as other:
            other.execute("LOCK pgsimhash.collections")
            call = asyncio.ensure_future(store.add_page(A, 1))
            await asyncio.to_thread(wait_for_a_lock, dsn)
            call.cancel()
            await asyncio.wait([call])
            await asyncio.wait_for(store.close(), SECONDS)
            assert not some_session_waits(other)
        assert urls(dsn) == []

    over(kind, dsn, use)


def test_a_call_cancelled_at_any_step_returns_the_connection_as_it_was(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a busy event loop, to which psycopg returns after each call.
    monkeypatch.setattr("psycopg.waiting.MAX_BUSY_TIME", 0, raising=False)

    async def cancelled(store: AsyncStore, step: int) -> None:
        call = asyncio.ensure_future(store.has_near(1))
        for _ in range(step):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])

    async def use() -> None:
        engine = engine_of(dsn, asynchronous=True, pool_size=1)
        async with AsyncConnectionPool(dsn, min_size=1, max_size=1) as pool:
            for step in range(40):
                for source in (engine, pool):
                    async with await connect_async(source) as store:
                        await cancelled(store, step)
                async with pool.connection() as connection, engine.connect() as checked_out:
                    other = (await checked_out.get_raw_connection()).driver_connection
                    assert (connection.autocommit, other.autocommit) == (False, False), step
        await engine.dispose()

    asyncio.run(use())


def test_an_event_loop_that_closed_during_calls_stops_no_other(dsn: str) -> None:
    with asyncio.Runner() as runner:
        store = runner.run(connect_async(dsn))
        runner.run(answers(store, 0))
    first = asyncio.new_event_loop()
    calls = [first.create_task(store.find(1)), first.create_task(store.add_page(A, 1))]
    # Not so far that the page holds a lock.
    for _ in range(2):
        first.run_until_complete(asyncio.sleep(0))
    for task in [*calls, *asyncio.all_tasks(first)]:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    first.close()
    with asyncio.Runner() as runner:
        runner.run(answers(store, 1))
        runner.run(store.close())
    # That of the calls that never ended stays open; what refers to it may be collected later.
    for one in gc.get_objects():
        if isinstance(one, psycopg.AsyncConnection):
            one.pgconn.finish()


def test_event_loops_of_several_threads_share_a_store(dsn: str) -> None:
    store = asyncio.run(connect_async(dsn))
    pages = [(f"https://a.example/{n}", n * 0x9E3779B97F4A7C15 % 2**64) for n in range(30)]

    async def kinds() -> list[str]:
        async with asyncio.timeout(20):
            verdicts = await asyncio.gather(*[store.add_page(*page) for page in pages])
            assert all(await asyncio.gather(*[store.has_near(simhash, 0) for _, simhash in pages]))
        return [verdict.kind for verdict in verdicts]

    with ThreadPoolExecutor(3) as threads:
        loops = [threads.submit(asyncio.run, kinds()) for _ in range(3)]
        assert Counter(kind for loop in loops for kind in loop.result()) == {
            "new": 30, "unchanged": 60,
        }  # fmt: skip
    asyncio.run(store.close())


def test_a_call_of_a_closed_event_loop_is_dropped_without_an_error() -> None:
    async def never(values: Sequence[int], options: str) -> Sequence[int]:
        await asyncio.get_running_loop().create_future()
        return values

    loop = asyncio.new_event_loop()
    call = loop.create_task(TaskBatcher(never).call(1, ""))
    for _ in range(2):
        loop.run_until_complete(asyncio.sleep(0))
    del call
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    # As garbage collection does, which would only report an error.
    for task in tasks:
        coroutine = task.get_coro()
        assert coroutine
        coroutine.close()


def test_an_error_of_a_statement_reaches_all_its_calls() -> None:
    async def one_answer(values: Sequence[int], options: str) -> Sequence[int]:
        if options == "error":
            raise LookupError
        return [1]

    async def use() -> list[Any]:
        batcher = TaskBatcher(one_answer)
        calls = [batcher.call(n, options) for n in range(2) for options in ("error", "too few")]
        answered = asyncio.gather(*calls, batcher.call(5, "alone"), return_exceptions=True)
        return await asyncio.wait_for(answered, SECONDS)

    *wrong, right = asyncio.run(use())
    assert [type(error) for error in wrong] == [LookupError, int, LookupError, ValueError]
    assert right == 1


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("seed", range(2))
def test_random_cancellations_leave_the_store_usable(dsn: str, kind: str, seed: int) -> None:
    """Clients, statements and everything that they start are cancelled at random moments."""
    chance = random.Random(seed)

    async def use(store: AsyncStore) -> None:
        for number in range(40):
            # Those of a pool or of the test are not the store's.
            others = asyncio.all_tasks()
            client = asyncio.create_task(answers(store, number))
            for _ in range(chance.randrange(8)):
                await asyncio.sleep(chance.choice([0, 0, 0.001, 0.01]))
                for task in asyncio.all_tasks() - others:
                    code = getattr(task.get_coro(), "cr_code", None)
                    if code and "psycopg" not in code.co_filename and chance.random() < 0.3:
                        task.cancel()
            await asyncio.wait([client], timeout=2 * SECONDS)
            assert client.done()
            if not client.cancelled():
                client.exception()
            if number % 10 == 9:
                await answers(store, -number)

    over(kind, dsn, use)
    idle = (
        "SELECT FROM pg_stat_activity WHERE datname = current_database() "
        "AND state LIKE 'idle in transaction%'"
    )
    assert run_sql(dsn, idle) == []
