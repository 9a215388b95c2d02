"""Deleting an original promotes its earliest copy, by the rule of tests/store/decide."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash import Store
from pgsimhash.hashing.bits import hamming_distance
from tests.database import database_examples, run_sql
from tests.store.decide.test_rule import (
    MARKS,
    OPTIONS,
    OWN,
    POLICIES,
    RECORDS,
    URLS,
    Batch,
    Database,
    Mark,
    Page,
    World,
    counts,
    decide_again,
    replace_page,
    rows_of,
    say,
    settings_of,
    some_of,
    take,
)

DAY = timedelta(days=1)
NOW = datetime.now(UTC)


def originals(store: Store) -> list[tuple[str, str | None, int | None]]:
    """The present versions by id: URL, original, distance."""
    with store._session.connection_to_read() as connection:
        rows = connection.execute("SELECT url FROM pgsimhash.pages ORDER BY page_id").fetchall()
    known = [store.get(row[0]) for row in rows]
    return [(page.url, page.duplicate_of, page.distance) for page in known if page]


WAYS: dict[str, str | Callable[[Store], Any]] = {
    "delete_host": lambda store: store.delete_host("old.example").promoted,
    "expire": lambda store: store.expire(DAY).promoted,
    "undo_run": lambda store: store.undo_run(store.runs()[-1].run_id) and None,
    "url": "SELECT pgsimhash.delete_page('https://old.example/')",
    "host": "SELECT pgsimhash.delete_host('old.example')",
    "age": "CALL pgsimhash.expire('1 day')",
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_delete_promotes_and_ends_runs(store: Store, dsn: str, way: str) -> None:
    store.start_run("first")
    store.add_page("https://old.example/", 0, fetched_at=NOW - 9 * DAY)
    for number in range(3):
        store.start_run("other")
        store.add_page(f"https://a.example/{number}", 1 << number)
    delete = WAYS[way]
    promoted = run_sql(dsn, delete) and None if isinstance(delete, str) else delete(store)
    assert originals(store) == [
        ("https://a.example/0", None, None),
        ("https://a.example/1", "https://a.example/0", 2),
        ("https://a.example/2", "https://a.example/0", 2),
    ]
    assert list(store.check()) == []
    assert (promoted or ["https://a.example/0"]) == ["https://a.example/0"]
    # A run is deleted with its last page.
    assert [run.label for run in store.runs()] == ["other"] * 3


def test_undo_in_batches_promotes_only_what_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgsimhash.store.maintenance.BATCH", 1)
    run_id = store.start_run("undone")
    store.add_page("https://old.example/", 0)
    store.add_page("https://a.example/", 1)
    store.start_run("kept")
    store.add_page("https://b.example/", 1)
    store.add_page("https://a.example/", 0xFFFF)
    # The copy is deleted too, but its URL has another version.
    assert store.undo_run(run_id) == (2, ["https://old.example/"], [], ["https://b.example/"])


@pytest.mark.parametrize("way", ["undo_run", "delete_host"])
def test_batches_compare_all_copies(
    store: Store, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr("pgsimhash.store.maintenance.BATCH", 1)
    run_id = store.start_run("undone")
    store.add_page("https://gone.example/a", 0)
    store.add_page("https://gone.example/b", 0xFF)
    store.start_run("kept")
    # A copy of the second page, not near the first, and a copy of the first.
    store.add_page("https://c.example/", 0xFFF)
    store.add_page("https://d.example/", 0xF)
    deleted = store.undo_run(run_id) if way == "undo_run" else store.delete_host("gone.example")
    assert deleted.promoted == ["https://c.example/"]
    assert originals(store)[1:] == [("https://d.example/", "https://c.example/", 8)]


def test_expiry_in_batches_names_only_what_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgsimhash.store.maintenance.BATCH", 1)
    old = NOW - 9 * DAY
    store.add_page("https://old.example/", 0, fetched_at=old)
    store.add_page("https://a.example/", 1, fetched_at=old)
    store.add_page("https://b.example/", 1)
    store.add_page("https://a.example/", 0xFFFF)
    # The first copy expires too, but its URL has another version.
    assert store.expire(DAY).promoted == ["https://b.example/"]


def test_a_mark_joins_pages_again_when_the_version_that_it_joined_goes(store: Store) -> None:
    a, b = "https://a.example/", "https://b.example/"
    run_id = store.start_run("undone")
    store.add_page(a, 0)
    store.start_run("kept")
    store.add_page(b, 0xFFFF)
    store.mark(a, b, same=True)
    store.add_page(a, 0xFF << 32)
    # The first version of the other page is later now.
    assert store.undo_run(run_id).promoted == [b]
    assert originals(store) == [(b, None, None), (a, b, 24)]


def test_a_mark_joins_a_page_to_an_earlier_version(store: Store) -> None:
    a, b = "https://a.example/", "https://b.example/"
    store.add_page(a, 0)
    run_id = store.start_run("undone")
    store.add_page(a, 0xFF << 32)
    store.start_run("kept")
    store.add_page(b, 0xFFFF)
    store.mark(a, b, same=True)
    assert store.undo_run(run_id).promoted == []
    assert originals(store) == [(a, None, None), (b, a, 16)]


def test_many_unrelated_copies_need_at_most_a_hundred_rounds(store: Store) -> None:
    store.add_page("https://a.example/", 0)
    store.add_page("https://b.example/", 1)
    with store._session.connection_to_read() as connection:
        # Versions of one page, which are not duplicates of each other.
        connection.execute(
            "INSERT INTO pgsimhash.pages (collection_id, url, simhash, duplicate_of, distance) "
            "SELECT collection_id, url, 1, page_id - 1, 1 FROM pgsimhash.pages, "
            "generate_series(1, 110) WHERE url = 'https://b.example/'"
        )
    store.delete_page("https://a.example/")
    with store._session.connection_to_read() as connection:
        rows = connection.execute(
            "SELECT DISTINCT duplicate_of, distance FROM pgsimhash.pages"
        ).fetchall()
    assert rows == [(None, None)]


# Compared with the rule.


@dataclass(frozen=True)
class Delete:
    """Delete all versions of these URLs, in one transaction."""

    urls: list[str]


def without(world: World, urls: list[str], policies: dict[str, dict[str, Any]]) -> World:
    """Return the remaining world of one collection."""

    def stands_for(page: Page | None) -> tuple[Page | None, Page | None]:
        """Return the last deleted page on the way to an original, and the original."""
        head = None
        while page is not None and page.url in urls:
            head, page = page, page.original
        return head, page

    pages = list(world.pages)
    heads = {
        place: stands_for(page.original)
        for place, page in enumerate(pages)
        if page.url not in urls and page.original is not None and page.original.url in urls
    }
    leaders = {place: original for place, (_, original) in heads.items()}
    pages = [page for page in pages if page.url not in urls]
    places = [place for place, page in enumerate(world.pages) if page.url not in urls]
    left = [places.index(place) for place in heads]
    head_of = dict(zip(left, (id(head) for head, _ in heads.values()), strict=True))
    leader_of = dict(zip(left, leaders.values(), strict=True))

    # Pages are identified by position, because two may be equal.
    by_place: dict[int, int | None] = {
        place: next((at for at, page in enumerate(pages) if page is leader), None)
        for place, leader in leader_of.items()
    }
    while head_of:
        moved = {}
        for place, leader in by_place.items():
            if leader is None or leader == place or place not in head_of:
                continue
            page = pages[place]
            wanted = settings_of(page.url, OWN, {}, policies)
            until = replace(world, pages=pages[:place])
            same = world.marked(OWN, page.url, same=True)
            if pages[leader].url in same or counts(until, OWN, page.record, wanted, place, leader):
                moved[place] = leader
        for place, leader in moved.items():
            bits = hamming_distance(pages[place].record.simhash, pages[leader].record.simhash)
            replace_page(pages, place, pages[place]._replace(original=pages[leader], distance=bits))
            del head_of[place]
        for place, leader in by_place.items():
            if leader == place:
                head_of.pop(place, None)
        earliest = {
            head: min(at for at in head_of if head_of[at] == head) for head in head_of.values()
        }
        by_place = {place: earliest[head] for place, head in head_of.items()}
        for place in earliest.values():
            replace_page(pages, place, pages[place]._replace(original=None, distance=None))
    # Marks are applied again.
    rest = replace(world, pages=pages)
    for url in sorted({pages[place].url for place in left}):
        for other in sorted(rest.marked(OWN, url, same=True)):
            if rest.versions(OWN, other):
                decide_again(rest, url, other, True, policies)
    return rest


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    opened = Database(dsn)
    yield opened
    opened.close()


STEPS = st.lists(
    st.lists(RECORDS, min_size=1, max_size=6)
    | MARKS
    | st.builds(Delete, st.lists(st.sampled_from(URLS), min_size=1, max_size=2, unique=True)),
    min_size=3,
    max_size=9,
)


@database_examples(60)
@given(steps=STEPS, policies=POLICIES, options=some_of(OPTIONS))
def test_the_remaining_pages_follow_the_rule(
    database: Database,
    steps: list[Any],
    policies: dict[str, dict[str, Any]],
    options: dict[str, Any],
) -> None:
    """Pages may be stored with other settings than the policies, which decide about the rest."""
    database.begin(policies)
    world = World()
    for step in steps:
        if isinstance(step, Mark):
            say(world, database, step)
        elif isinstance(step, Delete):
            database.plain.execute(
                "SELECT pgsimhash._delete_pages_1(%s, array_agg(page_id)) "
                "FROM pgsimhash.pages WHERE url = ANY (%s)",
                [OWN, step.urls],
            )
            world.pages = without(world, step.urls, policies).pages
        else:
            batch = Batch(OWN, step, options, together=True, meanwhile=[])
            take(world, OWN, step, [database.settings(record.url, batch) for record in step])
            database.write(batch)
        assert database.rows() == rows_of(world)
