"""Whatever tasks are cancelled, the asynchronous store answers the next calls."""

from __future__ import annotations

import asyncio
import gc
import random
import warnings
from collections.abc import Awaitable, Sequence
from typing import Any

import psycopg
import pytest

from pgsimhash import connect_async
from pgsimhash.store.async_store import AsyncStore, TaskBatcher
from tests.database import run_sql, wait_for_a_lock
from tests.store.connect.ways import OWN, over

A, B = "https://a.example/", "https://b.example/"
SECONDS = 20
"""No call of these tests takes a tenth of it."""


async def answers(store: AsyncStore, number: int) -> None:
    """Call each method that shares statements, several times at once."""
    calls: list[Awaitable[object]] = [
        call
        for n in range(4)
        for call in (
            store.find(n),
            store.add(f"{A}{number}/{n}", n << 40),
            store.ingest(f"{B}{number}/{n}", f"<p>{number} {n} " + "word " * 30),
        )
    ]
    await asyncio.wait_for(asyncio.gather(*calls), SECONDS)


def statements() -> list[asyncio.Task[Any]]:
    """The tasks that send the statements of several calls."""
    return [task for task in asyncio.all_tasks() if "TaskBatcher" in repr(task.get_coro())]


def test_a_statement_cancelled_before_it_begins_is_sent_by_another_task(dsn: str) -> None:
    async def use(store: AsyncStore) -> None:
        for call in (store.find(1), store.add(A, 1)):
            calling = asyncio.ensure_future(call)
            while not (begun := statements()):
                await asyncio.sleep(0)
            for task in begun:
                task.cancel()
            await asyncio.wait_for(calling, SECONDS)
        await answers(store, 0)

    over("dsn", dsn, use)


def test_calls_that_arrive_while_a_cancelled_statement_rolls_back_are_answered(dsn: str) -> None:
    async def use(store: AsyncStore) -> None:
        with psycopg.connect(dsn) as other:
            other.execute("LOCK pgsimhash.pages, pgsimhash.collections")
            first = asyncio.ensure_future(store.add(A, 1))
            await asyncio.to_thread(wait_for_a_lock, dsn)
            for task in statements():
                task.cancel()
            await asyncio.sleep(0)
            later = asyncio.ensure_future(store.add(B, 2))
            await asyncio.sleep(0.05)
        assert (await asyncio.wait_for(later, SECONDS)).url == B
        with pytest.raises(asyncio.CancelledError):
            await first

    over("dsn", dsn, use)


def test_an_event_loop_that_closed_during_calls_stops_no_other(dsn: str) -> None:
    with asyncio.Runner() as runner:
        store = runner.run(connect_async(dsn))
        runner.run(answers(store, 0))
    first = asyncio.new_event_loop()
    calls = [first.create_task(store.find(1)), first.create_task(store.add(A, 1))]
    # Not so far that the page holds a lock.
    for _ in range(2):
        first.run_until_complete(asyncio.sleep(0))
    for task in [*calls, *asyncio.all_tasks(first)]:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    first.close()
    with asyncio.Runner() as runner:
        runner.run(answers(store, 1))
        runner.run(store.close())
    del calls, task, store
    with warnings.catch_warnings(action="ignore"):
        # The connection of the calls that never ended.
        gc.collect()


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
    (idle,) = run_sql(
        dsn,
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND state LIKE 'idle in transaction%'",
    )
    assert idle == (0,)
