"""Concurrent writers decide like one writer."""

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import psycopg
import pytest

from pgsimhash import Store, connect, hamming_distance
from pgsimhash.errors import StoreError
from pgsimhash.hashing.bits import from_bigint
from tests.database import run_sql, wait_for_a_lock

WRITERS = 8
DISTANCE = 3


def simhashes(seed: int) -> list[int]:
    """The pages of one writer: near-duplicates of 40 originals that all writers share."""
    originals = random.Random(0)
    centres = [originals.getrandbits(64) for _ in range(40)]
    rng = random.Random(seed)
    return [
        rng.choice(centres) ^ sum(1 << bit for bit in rng.sample(range(64), rng.randint(0, 1)))
        for _ in range(300)
    ]


def write(job: tuple[str, int]) -> list[str]:
    dsn, seed = job
    found: list[str] = []
    with connect(dsn) as store:
        for start in range(0, 300, 30):
            pages = [
                (f"https://w{seed}.example/{start + n}", value)
                for n, value in enumerate(simhashes(seed)[start : start + 30])
            ]
            found += [verdict.kind for verdict in store.add_pages(pages, distance=DISTANCE)]
    return found


def test_eight_writers_find_each_original_new_exactly_once(dsn: str) -> None:
    """All copies are within 2 bits of each other, so there is one new page per original."""
    with connect(dsn):
        pass
    with ThreadPoolExecutor(WRITERS) as pool:
        verdicts = list(pool.map(write, [(dsn, seed) for seed in range(WRITERS)]))
    new = sum(written.count("new") for written in verdicts)
    rows = run_sql(
        dsn,
        "SELECT p.page_id, p.simhash, p.duplicate_of, p.distance, o.simhash "
        "FROM pgsimhash.pages AS p LEFT JOIN pgsimhash.pages AS o "
        "ON (o.collection_id, o.page_id) = (p.collection_id, p.duplicate_of) "
        "ORDER BY p.page_id",
    )
    assert len(rows) == WRITERS * 300
    assert new == 40 == sum(row[2] is None for row in rows)
    assert [len(written) for written in verdicts] == [300] * WRITERS

    # A serial run over the pages in the order they were stored decides the same.
    seen: dict[int, int] = {}
    for page_id, simhash, original, distance, _ in rows:
        value = from_bigint(simhash)
        known = [(hamming_distance(value, other), first) for other, first in seen.items()]
        nearest = min((match for match in known if match[0] <= DISTANCE), default=None)
        assert (distance, original) == (nearest or (None, None))
        seen.setdefault(value, page_id)


def test_a_simhash_is_found_if_its_page_is_deleted_while_a_copy_waits(dsn: str) -> None:
    with (
        connect(dsn) as store,
        psycopg.connect(dsn) as deleting,
        ThreadPoolExecutor(1) as pool,
    ):
        store.add_page("https://a.example/1", 7)
        deleting.execute("SELECT pgsimhash.delete_page('https://a.example/1')")
        added = pool.submit(store.add_page, "https://a.example/2", 7)
        wait_for_a_lock(dsn)
        deleting.commit()
        assert added.result(timeout=60).kind == "new"
        assert store.has_near(7, 0)


@pytest.mark.parametrize("pages", [1, 3])
def test_page_ids_are_above_the_newest_page_even_if_the_sequence_is_behind(
    store: Store, dsn: str, pages: int
) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        *_, newest = store.add_pages((f"https://a.example/{n}", n << 8) for n in range(40))
        connection.execute("SELECT setval(pg_get_serial_sequence('pgsimhash.pages', 'page_id'), 2)")
        verdicts = list(store.add_pages((f"https://b.example/{n}", n << 8) for n in range(pages)))
        page_ids = [verdict.page_id or 0 for verdict in verdicts]
        assert page_ids == list(range(page_ids[0], page_ids[0] + pages))
        assert page_ids[0] > (newest.page_id or 0)
        assert {verdict.kind for verdict in verdicts} == {"duplicate"}


def write_with_savepoints(job: tuple[str, int]) -> set[str]:
    """Ingest in transactions of which parts are rolled back; return what was committed."""
    dsn, seed = job
    rng = random.Random(seed)
    urls = (f"https://w{seed}.example/{number}" for number in count())
    kept: set[str] = set()

    def add(store: Store) -> set[str]:
        pages = [(next(urls), rng.getrandbits(64)) for _ in range(rng.randint(1, 2))]
        return {verdict.url for verdict in store.add_pages(pages)}

    with psycopg.connect(dsn) as connection:
        store = connect(connection)
        for _ in range(20):
            stored = add(store) if rng.random() < 0.5 else set()
            for _ in range(rng.randint(1, 3)):
                connection.execute("SAVEPOINT part")
                part = add(store)
                if rng.random() < 0.2:
                    part -= set(store.delete_page(min(part)).gone)
                if rng.random() < 0.6:
                    connection.execute("ROLLBACK TO SAVEPOINT part")
                else:
                    stored |= part
                connection.execute("RELEASE SAVEPOINT part")
            stored |= add(store)
            if rng.random() < 0.2:
                connection.rollback()
            else:
                connection.commit()
                kept |= stored
    return kept


def test_writers_that_go_on_after_a_savepoint_wait_for_nobody_in_a_circle(dsn: str) -> None:
    connect(dsn).close()
    with ThreadPoolExecutor(WRITERS) as pool:
        kept = set[str]().union(
            *pool.map(write_with_savepoints, [(dsn, n) for n in range(WRITERS)])
        )
    assert {url for (url,) in run_sql(dsn, "SELECT url FROM pgsimhash.pages")} == kept
    with connect(dsn) as store:
        assert list(store.check()) == []


@pytest.mark.parametrize(
    ("table", "columns", "values"),
    [
        ("pages", "page_id, url, simhash", "'https://b.example/', 1"),
        ("runs", "run_id, label", "'night'"),
        ("marks", "mark_id, url_a, url_b, same", "'a', 'b', true"),
    ],
)
def test_ids_that_leave_no_room_for_later_ones_are_refused(
    store: Store, dsn: str, table: str, columns: str, values: str
) -> None:
    for number in (-(2**63), 0, 2**48 + 1, 2**63 - 1):
        with pytest.raises(psycopg.errors.CheckViolation, match=f"{table}_id_fits"):
            run_sql(
                dsn,
                f"INSERT INTO pgsimhash.{table} (collection_id, {columns}) "
                f"VALUES ({store.collection.collection_id}, {number}, {values})",
            )


@pytest.mark.parametrize("chosen", [2**48, 2**48 - 2])
def test_after_the_highest_page_id_adds_fail_until_that_page_is_deleted(
    store: Store, dsn: str, chosen: int
) -> None:
    run_sql(
        dsn,
        "INSERT INTO pgsimhash.pages (page_id, collection_id, url, simhash) "
        f"VALUES ({chosen}, {store.collection.collection_id}, 'https://b.example/', 1)",
    )
    added = [(f"https://a.example/{n}", n << 8) for n in range(4)]
    with pytest.raises(StoreError, match=f"the newest page is {chosen}.* delete pages with ids"):
        list(store.add_pages(added))
    store.delete_page("https://b.example/")
    assert len(list(store.add_pages(added))) == 4


@pytest.mark.one_server("a sequence of a worker has another range")
def test_the_error_names_the_statement_that_sets_the_sequence_back(store: Store, dsn: str) -> None:
    page_id = store.add_page("https://a.example/", 1).page_id
    run_sql(dsn, f"SELECT setval('pgsimhash.pages_page_id_seq', {2**48})")
    with pytest.raises(StoreError, match=rf"the newest page is {page_id}.* gave {2**48 + 1}") as no:
        store.add_page("https://b.example/", 2)
    assert no.value.reason == "unsuitable"
    run_sql(dsn, str(no.value).partition("then run ")[2])
    assert store.add_page("https://b.example/", 2).page_id == (page_id or 0) + 1


def test_a_run_counts_only_in_its_collection(dsn: str, store: Store) -> None:
    """A rebuild keeps the ids of runs, so two collections have the same."""
    run = store.start_run("night")
    store.add_page("https://a.example/", 1)
    ((number,),) = run_sql(dsn, "SELECT number FROM pgsimhash.sightings")
    with connect(dsn, collection="other", create=True) as other, psycopg.connect(dsn) as connection:
        connection.execute(
            "INSERT INTO pgsimhash.runs (run_id, collection_id, label, pages) "
            "VALUES (%s, %s, 'night', 5)",
            [run, other.collection.collection_id],
        )
        for opened, is_stored in ((store, True), (other, False)):
            stored = connection.execute(
                "SELECT pgsimhash._batch_stored_1(%s, %s, %s, '{}', '{}')",
                [opened.collection.collection_id, run, number],
            ).fetchone()
            assert stored == (is_stored,)
