"""A collection is rebuilt in one transaction, which keeps writers out and lookups going."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from pgsimhash.store.memory import Memory

import pgsimhash
from pgsimhash import Store, connect, maintenance
from pgsimhash.errors import ArgumentError, CollectionError, NoServerError, StoreError
from pgsimhash.pages.policies import PolicySettings
from pgsimhash.store import lookups
from tests.conftest import ROOT, wait_for_a_lock
from tests.refusals import because
from tests.store.content import content, simhash_rows

PAGE = ROOT / "examples" / "pages" / "tide-pools.html"


def url(simhash: int) -> str:
    return f"https://a.example/{simhash:016x}"


@pytest.fixture
def full(dsn: str) -> Iterator[Store]:
    rng = random.Random(7)
    with connect(dsn) as store:
        store.add(url(1), 1)
        list(store.add_many([(url(n), n) for n in (rng.getrandbits(64) for _ in range(600))]))
        store.add_simhashes(np.arange(5, 2000, dtype=np.uint64))
        yield store


def during(full: Store, action: Callable[[], object], **options: Any) -> None:
    """Rebuild, and do something in the middle."""

    def meanwhile(step: str, done: int, total: int) -> None:
        if done == 256:
            action()

    maintenance.rebuild(full, progress=meanwhile, **options)


@pytest.mark.parametrize("layout", [None, "16+16+16+16", "5 choose 2"])
def test_everything_survives(dsn: str, store: Store, tmp_path: Path, layout: str | None) -> None:
    store.add_simhashes(np.array([2**64 - 1, 0xFFFFFFFF << 20], dtype=np.uint64))
    at = datetime(2026, 3, 1, tzinfo=UTC)
    for number in (0, 0b111, 1 << 40, 3):
        store.add(url(number), number, fetched_at=at)
    store.start_run("later")
    store.add(url(0), 1 << 50)
    store.add(url(3), 3, fetched_at=at + timedelta(days=3))
    maintenance.mark(store, url(0), url(7), same=True)
    maintenance.set_policy(store, "a.example", PolicySettings(distance=8, min_tokens=50))
    (tmp_path / "a.html").write_text("short")
    list(maintenance.ingest_files(store, [tmp_path]))

    def everything() -> list[Any]:
        with psycopg.connect(dsn) as connection:
            files = connection.execute(
                "SELECT s.path, s.size, s.failed FROM pgsimhash.sources AS s "
                "JOIN pgsimhash.collections AS c USING (collection_id) WHERE c.name = 'default'"
            ).fetchall()
        return [
            content(dsn, "default", numbered=True),
            simhash_rows(dsn, "default"),
            maintenance.marks(store),
            maintenance.policies(store),
            maintenance.runs(store),
            files,
        ]

    before = everything()
    made = maintenance.rebuild(store, layout=layout)
    assert (made.name, made.layout) == ("default", layout or "22+21+21")
    assert store.opened == made
    assert all(before)
    assert everything() == before
    assert list(maintenance.check(store)) == []
    # The old one is unchanged, and both are independent.
    assert content(dsn, "default-2", numbered=True) == before[0]
    assert simhash_rows(dsn, "default-2") == before[1]
    assert maintenance.undo(store)[1].versions == 1
    assert len(content(dsn, "default")) == len(before[0]) - 1
    with connect(dsn, collection="default-2") as old:
        assert old.add(url(99), 0x1FF << 20).verdict == "new"


def test_the_result_has_the_requested_settings(dsn: str, full: Store) -> None:
    steps: list[tuple[str, int, int]] = []
    maintenance.rebuild(
        full, "other", layout="32+32", distance=3, progress=lambda *step: steps.append(step)
    )
    assert steps == [("pages", done, 601) for done in (0, 256, 512, 601)]
    assert {one.collection: (one.layout, one.default_distance) for one in full.status()} == {
        "default": ("32+32", 3),
        "other": ("22+21+21", 8),
    }
    maintenance.rebuild(full, layout="22+21+21", replace=True)
    assert [one.collection for one in full.status()] == ["default", "other"]
    assert full.opened.default_distance == 3


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.add(url(7), 7),
        lambda store: list(store.add_many([(url(n), n) for n in range(40)])),
        lambda store: store.delete(url(1)),
        lambda store: store.add_simhashes(np.zeros(1, dtype=np.uint64)),
        lambda store: maintenance.set_policy(store, "*", PolicySettings(distance=2)),
        lambda store: maintenance.rename(store, "renamed"),
        lambda store: maintenance.rebuild(store, "again"),
    ],
)
def test_writers_are_refused_meanwhile_and_lookups_go_on(
    dsn: str, full: Store, write: Callable[[Store], object]
) -> None:
    told: list[str] = []

    def meanwhile() -> None:
        with connect(dsn, retry_seconds=0) as other:
            assert [match.url for match in other.find(1, 0)] == [url(1)]
            with pytest.raises(CollectionError, match=r"is being rebuilt: .* holds") as refused:
                write(other)
            told.append(refused.value.reason)

    before = content(dsn, "default", numbered=True)
    during(full, meanwhile, layout="16+16+16+16")
    assert told == ["being_rebuilt"]
    assert content(dsn, "default", numbered=True) == before
    with connect(dsn) as other:
        write(other)


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.add(url(1 << 40), 1 << 40),
        lambda store: [
            *maintenance.ingest_files(store, [ROOT / "examples" / "pages" / "tide-pools.html"])
        ],
        lambda store: maintenance.change_settings(store, distance=3),
    ],
)
def test_a_writer_that_waits_for_the_end_writes_to_the_new_collection(
    dsn: str, full: Store, write: Callable[[Store], object]
) -> None:
    with psycopg.connect(dsn) as ending, connect(dsn) as other, ThreadPoolExecutor(1) as pool:
        maintenance.rebuild(connect(ending), layout="16+16+16+16")
        old = content(dsn, "default")
        settings = other.status()[0].default_distance
        told = pool.submit(write, other)
        wait_for_a_lock(dsn)
        ending.commit()
        told.result(timeout=60)
    assert content(dsn, "default-2") == old
    kept = {one.collection: one.default_distance for one in full.status()}
    assert kept["default-2"] == settings
    changed = (len(content(dsn, "default")), kept["default"]) != (len(old), settings)
    assert changed


@pytest.mark.one_server("the trigger of the test")
@pytest.mark.parametrize("write", ["rows", "clusters"])
def test_a_writer_that_began_with_the_old_collection_is_refused(
    dsn: str, full: Store, write: str
) -> None:
    def insert() -> None:
        with psycopg.connect(dsn) as own:
            own.execute(
                "INSERT INTO pgsimhash.pages (collection_id, url, simhash) "
                "SELECT collection_id, 'https://b.example/', 7 FROM pgsimhash.collections"
            )

    def save() -> None:
        with connect(dsn) as other:
            other.save_clusters()

    with psycopg.connect(dsn) as ending, ThreadPoolExecutor(1) as pool:
        maintenance.rebuild(connect(ending))
        told = pool.submit(insert if write == "rows" else save)
        wait_for_a_lock(dsn)
        ending.commit()
        with pytest.raises((psycopg.Error, StoreError), match="was replaced"):
            told.result(timeout=60)


def test_an_error_or_a_lost_connection_leaves_nothing(dsn: str, full: Store) -> None:
    def cut() -> None:
        with psycopg.connect(dsn, autocommit=True) as hand:
            hand.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    def interrupt() -> None:
        raise KeyboardInterrupt

    for action, error in ((interrupt, KeyboardInterrupt), (cut, NoServerError)):
        with connect(dsn) as store, pytest.raises(error):
            during(store, action)
    with connect(dsn) as store:
        assert [one.collection for one in store.status()] == ["default"]
        maintenance.rebuild(store, replace=True)
        assert len(content(dsn, "default")) == 601


def test_it_can_be_part_of_a_transaction_of_the_caller(dsn: str, full: Store) -> None:
    with psycopg.connect(dsn) as connection:
        store = connect(connection)
        maintenance.rebuild(store, layout="32+32", distance=3)
        assert store.layout == "32+32"
        # The old collection counts again.
        assert store.add("https://b.example/", 1, scope="global").distance == 0
        connection.rollback()
    assert [one.layout for one in full.status()] == ["22+21+21"]


def test_impossible_requests_name_the_fix(dsn: str, full: Store) -> None:
    with pytest.raises(ArgumentError, check=because("invalid_argument")):
        maintenance.rebuild(full, layout="32+32")
    maintenance.set_policy(full, "a.example/x", PolicySettings(distance=8))
    with pytest.raises(ArgumentError, match=r"policy has distance 8.*give a smaller distance"):
        maintenance.rebuild(full, layout="32+32", distance=5)
    connect(dsn, collection="taken").close()
    for into in ("default", "taken"):
        with pytest.raises(CollectionError, match=r"exists already.*--into"):
            maintenance.rebuild(full, into)
    for wrong in ({"layout": "7 choose 8"}, {"scope": "planet"}, {"distance": 13}):
        with pytest.raises(ArgumentError):
            maintenance.rebuild(full, **wrong)
    assert [one.collection for one in full.status()] == ["default", "taken"]


def test_a_lookup_in_memory_follows_a_collection_that_is_replaced_under_it(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(dsn) as store, connect(dsn) as other:
        store.add_simhashes(np.arange(1000, dtype=np.uint64))
        with other.session.read() as connection:
            store.session.memory.take_in(connection, store.session.collection)
        looked_up = lookups._still_there

        def replaced(*arguments: Any) -> Any:
            monkeypatch.undo()
            maintenance.rebuild(other, layout="16+16+16+16", replace=True)
            return looked_up(*arguments)

        monkeypatch.setattr(lookups, "_still_there", replaced)
        assert store.find_many(np.array([5], dtype=np.uint64), 0).simhashes.tolist() == [5]
        assert lookups._still_there is looked_up


def test_pages_are_compared_with_the_remaining_collections(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that the batch is compared with is deleted after the lookup."""
    with connect(dsn) as store, connect(dsn, collection="other") as other:
        maintenance.set_policy(store, "*", PolicySettings(scope="global"))
        store.add("https://a.example/1", 5)
        gone: list[int] = []

        @contextmanager
        def deleted(*_: object) -> Iterator[None]:
            yield
            monkeypatch.undo()
            with other.session.read() as connection:
                gone.append(maintenance.delete_collection(connection, "other"))

        monkeypatch.setattr(Memory, "looking_up", deleted)
        # A large batch is looked up in a statement of its own.
        pages = [(f"https://a.example/{n}", 4) for n in range(2, 20)]
        assert [verdict.distance for verdict in store.add_many(pages)] == [1] + [0] * 17
        assert gone == [0]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT pgsimhash.set_policy('default', 'late.example', distance => 1)",
        "SELECT pgsimhash.remove_policy('default', 'a.example')",
        "SELECT pgsimhash.unmark('default', %(a)s, %(b)s)",
        "SELECT pgsimhash.mark('default', %(a)s, %(c)s, false)",
        "SELECT pgsimhash.add_simhashes('default', ARRAY[12345])",
    ],
)
def test_a_statement_that_waits_for_the_end_applies_to_the_new_collection(
    dsn: str, store: Store, statement: str
) -> None:
    urls = {"a": url(0), "b": url(1 << 40), "c": url(0xFF << 20)}
    for number in (0, 1 << 40, 0xFF << 20):
        store.add(url(number), number)
    maintenance.mark(store, urls["a"], urls["b"], same=True)
    maintenance.set_policy(store, "a.example", PolicySettings(distance=2))
    with (
        psycopg.connect(dsn) as ending,
        psycopg.connect(dsn, autocommit=True) as late,
        ThreadPoolExecutor(1) as pool,
    ):
        maintenance.rebuild(pgsimhash.connect(ending))
        told = pool.submit(late.execute, statement, urls)
        wait_for_a_lock(dsn)
        ending.commit()
        told.result(timeout=60)
    with connect(dsn) as new, connect(dsn, collection="default-2") as old:
        held = [
            (len(maintenance.marks(one)), len(maintenance.policies(one)), one.exists(12345, 0))
            for one in (new, old)
        ]
    assert held[0] != held[1] == (1, 1, False)
