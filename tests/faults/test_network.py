"""Connections are cut between a writer and its server, also during a commit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.cluster import Cluster
from tests.faults.test_kills import moments
from tests.faults.writing import Writers, assert_sound, survive
from tests.pooler import PROGRAM, REQUIRED, pooler
from tests.proxy import Proxy, proxy


@pytest.fixture
def between(cluster: Cluster) -> Iterator[Proxy]:
    with proxy(cluster.port) as made:
        yield made


def test_cut_connections_lose_no_page(
    between: Proxy, where: str, tmp_path: Path, chance: random.Random, told: Callable[..., None]
) -> None:
    writers = Writers(between.dsn(where), tmp_path)
    for outcome in survive(writers, between.cut, moments(chance, writers, 2)):
        told(outcome)
    assert between.cuts


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_connection_cut_during_a_commit_repeats_no_page(
    between: Proxy,
    where: str,
    tmp_path: Path,
    moment: str,
    chance: random.Random,
    told: Callable[..., None],
) -> None:
    """The commit or its answer is lost: the writer cannot tell which."""
    writers = Writers(between.dsn(where), tmp_path)
    for _ in range(2):
        number = between.commits + chance.randrange(2, 30)
        if moment == "before":
            between.cut_before = number
        else:
            between.cut_after = number
        writers.start()
        writers.wait()
        told(assert_sound(writers, where))
    assert between.cuts == 2
    writers.rerun()
    told(assert_sound(writers, where, complete=True))


@pytest.mark.skipif(PROGRAM is None and not REQUIRED, reason="pgbouncer is not installed")
def test_a_pooler_that_goes_down_loses_no_page(
    where: str, tmp_path: Path, chance: random.Random, told: Callable[..., None]
) -> None:
    for number in range(2):
        folder = tmp_path / f"pooler-{number}"
        folder.mkdir()
        with pooler(where, folder, size=1) as pooled:
            writers = Writers(pooled, tmp_path, retry_seconds=2)
            writers.start()
            writers.wait_until(chance.randrange(10, 300) if number == 0 else 10**9)
        writers.wait()
        told(assert_sound(writers, where))
    direct = Writers(where, tmp_path)
    direct.rerun()
    told(assert_sound(direct, complete=True))
