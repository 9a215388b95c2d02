"""Lookups are exact: random histories, compared with all rows of ``pages``.

Pages come by the package, by INSERT and by COPY; some are deleted again. After each step, every
lookup must give the result of a comparison with each row, in plain Python.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.rows import namedtuple_row

from pgsimhash import PgsimhashError
from pgsimhash.hashing.bits import from_bigint, hamming_distance, to_bigint
from pgsimhash.hashing.signature import from_halves, verified
from pgsimhash.pages.policies import MatchOptions
from pgsimhash.pages.records import PageRecord
from pgsimhash.schema import migrate
from tests.database import database_examples
from tests.store.decide.test_rule import OPTIONS, OTHER, OWN, Database, records, some_of

NAMES = (OWN, OTHER)

# Few simhashes, so that many are equal or near; bits 0, 20, 21, 41, 42 and 63 end bit blocks.
BASES = [0, 2**64 - 1, 1 << 63, 0x0123_4567_89AB_CDEF]
MASKS = [0, 1, 1 << 63, 3 << 20, 3 << 41, 0xFF, 0xFFF << 15, 0xFFF << 36, 1 << 54 | 1 << 38]
FLIPS = st.sets(st.integers(0, 63), max_size=12).map(lambda bits: sum(1 << bit for bit in bits))
SIMHASHES = st.sampled_from([0, 0, 1, 0xFFF << 15]) | st.builds(
    int.__xor__, st.sampled_from(BASES), st.sampled_from(MASKS) | FLIPS
)

HOSTS = ("a.example", "www.a.example", "b.example")
URLS = st.builds("https://{}/{}".format, st.sampled_from(HOSTS), st.integers(1, 2))
RECORDS = records(URLS, SIMHASHES)


class Row(NamedTuple):
    """A row without page_id gets the next one."""

    page_id: int | None
    url: str
    simhash: int


class Lookup(NamedTuple):
    """Queries for all lookups in a collection after a step."""

    name: str
    distance: int
    query: int
    limit: int


class History(Database):
    """Two collections of one scheme, and the rows of each."""

    def collection_id(self, name: str) -> int:
        return self.stores[name].collection.collection_id

    def rows_of(self, name: str) -> list[Any]:
        cursor = self.plain.cursor(row_factory=namedtuple_row)
        return cursor.execute(
            "SELECT page_id, url, simhash, fetched_at, signature_high, signature_low "
            "FROM pgsimhash.pages WHERE collection_id = %s ORDER BY page_id",
            [self.collection_id(name)],
        ).fetchall()


# The steps of a history.


def add(
    history: History, name: str, records: list[PageRecord], options: MatchOptions, size: int
) -> None:
    list(history.stores[name]._ingest.decide_each(records, size, options))


def add_single(history: History, name: str, record: PageRecord, options: MatchOptions) -> None:
    history.stores[name]._ingest.decide_batch([record], options)


def add_by_sql(history: History, name: str, records: list[PageRecord]) -> None:
    urls, simhashes = zip(*((r.url, to_bigint(r.simhash)) for r in records), strict=True)
    history.plain.execute(
        "SELECT pgsimhash.add_pages(%s, %s, collection => %s)", [list(urls), list(simhashes), name]
    )


def insert(history: History, name: str, rows: list[Row], copy: bool) -> None:
    write(history.plain, history, name, rows, copy)


def insert_late(
    history: History,
    name: str,
    rows: list[Row],
    copy: bool,
    meanwhile: list[Callable[[History], None]],
    commit: bool,
) -> None:
    """Rows of a transaction that ends after other steps; deletions would wait for its end."""
    write(history.late, history, name, rows, copy)
    for step in meanwhile:
        step(history)
        check(history, Lookup(name, 0, rows[0].simhash, 1))
    if commit:
        history.late.commit()
    else:
        history.late.rollback()


def write(
    connection: psycopg.Connection, history: History, name: str, rows: list[Row], copy: bool
) -> None:
    """INSERT or COPY rows; first those with new ids of their own, then those without."""
    collection_id = history.collection_id(name)
    taken = {row.page_id for row in history.rows_of(name)}
    numbered = {row.page_id: row for row in rows if row.page_id not in {None, *taken}}
    for columns, group in (
        ("collection_id, url, simhash, page_id", list(numbered.values())),
        ("collection_id, url, simhash", [row for row in rows if row.page_id is None]),
    ):
        values = [
            (collection_id, row.url, to_bigint(row.simhash), row.page_id)[: columns.count(",") + 1]
            for row in group
        ]
        with connection.cursor() as cursor:
            if copy:
                with cursor.copy(f"COPY pgsimhash.pages ({columns}) FROM STDIN".encode()) as stream:
                    for value in values:
                        stream.write_row(value)
            else:
                marks = ", ".join(["%s"] * (columns.count(",") + 1))
                cursor.executemany(
                    f"INSERT INTO pgsimhash.pages ({columns}) VALUES ({marks})".encode(), values
                )


def delete(history: History, name: str, place: int, by_sql: bool) -> None:
    """Delete the page of a row, often of the first one, which is the indexed one."""
    rows = history.rows_of(name)
    if not rows:
        return
    url = rows[place % len(rows)].url
    if by_sql:
        history.plain.execute("SELECT pgsimhash.delete_page(%s, %s)", [url, name])
    else:
        history.stores[name].delete_page(url)


def delete_host(history: History, name: str, host: str, by_sql: bool) -> None:
    if by_sql:
        history.plain.execute("SELECT pgsimhash.delete_host(%s, %s)", [host, name])
    else:
        history.stores[name].delete_host(host)


def expire(history: History, name: str, days: int, by_sql: bool) -> None:
    if by_sql:
        history.plain.execute("CALL pgsimhash.expire(%s, 2, %s)", [timedelta(days=days), name])
    else:
        history.stores[name].expire(timedelta(days=days))


def undo(history: History, name: str, place: int) -> None:
    store = history.stores[name]
    runs = store.runs()
    if runs:
        store.undo_run(runs[place % len(runs)].run_id)


def mark(history: History, name: str, urls: list[str], same: bool | None) -> None:
    """Set or remove a mark, unless the pages are unknown or another mark contradicts it."""
    try:
        if same is None:
            history.stores[name].unmark(*urls)
        else:
            history.stores[name].mark(*urls, same=same)
    except PgsimhashError:
        pass


IDS = st.integers(1, 20)  # below those that are drawn
ROWS = st.lists(
    st.builds(Row, page_id=st.none() | IDS, url=URLS, simhash=SIMHASHES),
    min_size=1,
    max_size=5,
)
NAME = st.sampled_from([*NAMES[:1], *NAMES])
BATCHES = st.lists(RECORDS, min_size=1, max_size=8)


def steps(step: Callable[..., None], **arguments: Any) -> st.SearchStrategy[Any]:
    return st.builds(partial, st.just(step), name=NAME, **arguments)


ADDITIONS = st.one_of(
    steps(add, records=BATCHES, options=some_of(OPTIONS), size=st.integers(1, 8)),
    steps(add_single, record=RECORDS, options=some_of(OPTIONS)),
    steps(add_by_sql, records=BATCHES),
)
BY_SQL = st.booleans()
DELETIONS = st.one_of(
    steps(delete, place=st.integers(0, 3), by_sql=BY_SQL),
    steps(delete_host, host=st.sampled_from(HOSTS), by_sql=BY_SQL),
    steps(expire, days=st.sampled_from([2, 4]), by_sql=BY_SQL),
    steps(undo, place=st.integers(0, 2)),
)
STEPS = st.one_of(
    ADDITIONS,
    DELETIONS,
    steps(insert, rows=ROWS, copy=st.booleans()),
    steps(
        insert_late,
        rows=ROWS,
        copy=st.booleans(),
        meanwhile=st.lists(ADDITIONS, max_size=2),
        commit=st.sampled_from([True, True, False]),
    ),
    steps(
        mark,
        urls=st.lists(URLS, min_size=2, max_size=2, unique=True),
        same=st.sampled_from([True, False, None]),
    ),
)
LOOKUPS = st.builds(
    Lookup,
    name=NAME,
    distance=st.integers(0, 12),
    query=SIMHASHES,
    limit=st.integers(1, 3),
)


# The comparison with all rows.


def check(history: History, lookup: Lookup) -> None:
    rows = history.rows_of(lookup.name)
    check_simhashes(history, rows, lookup)
    check_pages(history, rows, lookup)
    for name in NAMES:
        violations = history.plain.execute(
            "SELECT pgsimhash.check_collection(collection => %s)", [name]
        )
        assert violations.fetchall() == []


def near(rows: Sequence[Any], query: int, distance: int) -> list[tuple[int, int]]:
    """The distance and the simhash, as bigint, of each distinct simhash near the query."""
    bits = {row.simhash: hamming_distance(from_bigint(row.simhash), query) for row in rows}
    return sorted((bits[simhash], simhash) for simhash in bits if bits[simhash] <= distance)


def check_simhashes(history: History, rows: Sequence[Any], lookup: Lookup) -> None:
    store, plain = history.stores[lookup.name], history.plain
    # Each stored simhash finds at least itself.
    queries = [lookup.query, *(from_bigint(row.simhash) for row in rows)]
    expected = [
        (number, simhash, bits)
        for number, query in enumerate(queries, 1)
        for bits, simhash in near(rows, query, lookup.distance)
    ]
    of_array = plain.execute(
        "SELECT * FROM pgsimhash.find_many(%s::bigint[], %s, %s) ORDER BY 1, 3, 2",
        [list(map(to_bigint, queries)), lookup.distance, lookup.name],
    )
    assert of_array.fetchall() == expected
    matches = store.find_many(queries, lookup.distance)
    assert [
        (number + 1, to_bigint(simhash), bits)
        for number, simhash, bits in zip(*(column.tolist() for column in matches), strict=True)
    ] == expected
    of_one = [match[1:] for match in expected if match[0] == 1]
    arguments = [to_bigint(lookup.query), lookup.distance, lookup.name]
    found = plain.execute(
        "SELECT * FROM pgsimhash.find(%s::bigint, %s, %s) ORDER BY 2, 1", arguments
    )
    assert found.fetchall() == of_one
    known = plain.execute("SELECT pgsimhash.has_near(%s, %s, %s)", arguments)
    assert known.fetchone() == (bool(of_one),)
    assert store.has_near(lookup.query, lookup.distance) is bool(of_one)


def check_pages(history: History, rows: Sequence[Any], lookup: Lookup) -> None:
    store = history.stores[lookup.name]
    query, distance, limit = lookup.query, lookup.distance, lookup.limit

    def first_pages(signature: int | None = None) -> list[tuple[int, int, str]]:
        """The first page of each simhash whose signature agrees."""
        pages = [
            row
            for row in rows
            if verified(
                hamming_distance(from_bigint(row.simhash), query), signature, signature_of(row)
            )
        ]
        return [
            (from_bigint(simhash), bits, next(row.url for row in pages if row.simhash == simhash))
            for bits, simhash in near(pages, query, distance)
        ]

    def found(**options: Any) -> list[tuple[int, int, str]]:
        matches = store.find(query, distance, **options)
        return [(match.simhash, match.distance, match.url) for match in matches]

    assert found() == first_pages()
    assert found(limit=limit) == first_pages()[:limit]
    signature = (1 << 25) - 1
    assert found(signature=signature) == first_pages(signature)

    present = {row.url: row for row in rows}

    def pages_near(simhash: int, signature: int | None, own_url: str | None) -> list[Any]:
        matches = [
            (bits, row.page_id, row.url, from_bigint(row.simhash))
            for row in present.values()
            if row.url != own_url
            and (bits := hamming_distance(from_bigint(row.simhash), simhash)) <= distance
            and verified(bits, signature, signature_of(row))
        ]
        return sorted(matches)

    def near_pages(page: int | str, **options: Any) -> list[Any]:
        pages = store.near_pages(page, distance, **options)
        return [(page.distance, page.page_id, page.url, page.simhash) for page in pages]

    expected = pages_near(query, None, None)
    assert near_pages(query) == expected
    assert near_pages(query, limit=limit) == expected[:limit]
    assert near_pages(query, signature=signature) == pages_near(query, signature, None)
    by_sql = history.plain.execute(
        "SELECT distance, page_id, url, simhash FROM pgsimhash.near_pages(%s::bigint, %s, %s)",
        [to_bigint(query), distance, lookup.name],
    ).fetchall()
    assert [(*page[:3], from_bigint(page[3])) for page in by_sql] == expected
    for url in list(present)[-1:]:
        own = present[url]
        simhash = from_bigint(own.simhash)
        assert near_pages(url) == pages_near(simhash, signature_of(own), url)
        assert near_pages(url, verify=False) == pages_near(simhash, None, url)


def signature_of(row: Any) -> int | None:
    return from_halves(row.signature_high, row.signature_low)


@pytest.fixture(params=["22+21+21", pytest.param("16+16+16+16", marks=pytest.mark.long)])
def history(empty_dsn: str, request: pytest.FixtureRequest) -> Iterator[History]:
    migrate.upgrade(empty_dsn, layout=request.param)
    opened = History(empty_dsn)
    opened.plain.execute("SELECT setval('pgsimhash.pages_page_id_seq', 1000)")
    yield opened
    opened.close()


@database_examples(30)
@given(steps=st.lists(st.tuples(STEPS, LOOKUPS), min_size=6, max_size=12))
def test_lookups_are_exact(
    history: History, steps: list[tuple[Callable[[History], None], Lookup]]
) -> None:
    history.begin({})
    for step, lookup in steps:
        step(history)
        check(history, lookup)
