"""Behind a transaction pooler, where the next transaction may use another server process.

Without PgBouncer these tests are skipped, unless PGSIMHASH_TEST_POOLER is "required".
"""

import asyncio
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pgsimhash import connect, connect_async
from tests.database import simhashes_in
from tests.pooler import PROGRAM, REQUIRED, pooler
from tests.store.write.test_writers import write

pytestmark = pytest.mark.skipif(
    PROGRAM is None and not REQUIRED, reason="pgbouncer is not installed"
)

WRITERS = 6
SERVERS = 2
SIMHASHES = [random.Random(number).getrandbits(64) for number in range(10)]


@pytest.fixture
def pooled(dsn: str, tmp_path: Path) -> Iterator[str]:
    with pooler(dsn, tmp_path, SERVERS) as made:
        yield made


def test_writers_share_its_connections(pooled: str, dsn: str) -> None:
    connect(pooled).close()
    with ThreadPoolExecutor(WRITERS) as pool:
        verdicts = list(pool.map(write, [(pooled, seed) for seed in range(WRITERS)]))
    assert [len(written) for written in verdicts] == [300] * WRITERS
    assert sum(written.count("new") for written in verdicts) == 40
    with connect(dsn) as store:
        assert store.status().pages == WRITERS * 300


def test_it_is_detected_and_nothing_is_prepared(pooled: str, dsn: str) -> None:
    with connect(dsn) as direct, direct._session.connection_to_read() as connection:
        assert connection.prepare_threshold == 5
    # Alternating, so that one server process gets statements of both.
    with connect(pooled) as one, connect(pooled) as other:
        for number, value in enumerate(SIMHASHES):
            for name, store in {"one": one, "other": other}.items():
                with store._session.connection_to_read() as connection:
                    assert connection.prepare_threshold is None
                store.add_page(f"https://{name}.example/{number}", value)
                assert len(store.find(value, 3)) == 1
        known = simhashes_in(one)
        assert len(known) == len(one.find_many(known, 3).simhashes) == 10
        assert sorted(len(cluster.pages) for cluster in other.clusters(0)) == [2] * 10
        assert len(list(one.pairs(3))) == 0
        one.rebuild(distance=3)
        assert one.collection.default_distance == 3
        assert other.find(SIMHASHES[0], 0)[0].url == "https://one.example/0"
        assert other.delete_host("one.example").deleted == 10


def test_asyncio_detects_it_too(pooled: str) -> None:
    async def write_and_find() -> int:
        async with await connect_async(pooled) as one, await connect_async(pooled) as other:
            for number, value in enumerate(SIMHASHES):
                await one.add_page(f"https://one.example/{number}", value)
                await other.add_page(f"https://other.example/{number}", value)
            return len(await one.find(SIMHASHES[0], 3))

    assert asyncio.run(write_and_find()) == 1
