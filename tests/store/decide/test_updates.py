"""A new version of a page is an update, and a duplicate only of pages at other URLs."""

import threading

import pytest

from pgsimhash import Store, connect, maintenance
from pgsimhash.pages.records import Verdict
from tests.database import run_sql
from tests.store.content import content, original_of
from tests.store.test_store import ARTICLE, page, paragraph

A, B, C, D = (f"https://{host}.example/" for host in "abcd")
STORY = page(*ARTICLE)
LONGER = page(*ARTICLE, paragraph(30, 40))
FRAME = "<nav><a href=/>Home</a> <a href=/news>News</a> <a href=/sport>Sport</a></nav>"
"""The boilerplate: the simhash may change, while the text does not."""


def framed(html: str) -> str:
    return html.replace("<body>", "<body>" + FRAME)


def test_another_text_is_an_update_worth_keeping_and_other_boilerplate_is_not(store: Store) -> None:
    first = store.ingest(A, STORY)
    assert first.simhash is not None
    assert store.decide(A, LONGER).keep
    around = store.ingest(A, framed(STORY))
    assert (around.keep, around.duplicate_of) == (False, None)
    assert around.reason in ("same_text", "unchanged")
    later = store.ingest(A, LONGER)
    assert (later.verdict, later.reason, later.duplicate_of) == ("updated", "changed", None)
    assert later.keep
    assert store.should_store(A, STORY)
    assert not store.should_store(A, STORY)
    assert original_of(store, A) == (None, None)


def test_a_run_counts_its_updates(store: Store, dsn: str) -> None:
    store.add("https://e.example/", 2**64 - 1)
    run_id = store.start_run("one")
    list(store.add_many([(A, 0), (A, 1), (A, 1), (B, 1)], batch_size=2))
    (run,) = maintenance.runs(store)
    assert (run.run_id, run.label) == (run_id, "one")
    assert run.started_at < run.finished_at
    assert (run.pages, run.new, run.updated, run.duplicates, run.unchanged) == (4, 1, 1, 1, 1)
    (status,) = store.status()
    assert (status.pages, status.urls, status.duplicates) == (4, 3, 1)
    updates = run_sql(
        dsn,
        "SELECT p.url FROM pgsimhash.pages AS p WHERE p.distance IS NULL AND EXISTS ("
        "SELECT FROM pgsimhash.pages AS o WHERE o.collection_id = p.collection_id "
        "AND o.url = p.url AND o.page_id < p.page_id)",
    )
    assert updates == [(A,)]


@pytest.mark.parametrize("size", [1, 50])
def test_two_writers_with_different_texts_of_one_url_make_one_new_page(
    dsn: str, store: Store, size: int
) -> None:
    """Each URL is new once, in any order, and then updated: never a copy."""
    urls = [f"https://a.example/{number}" for number in range(50)]
    spread = [number * 0x9E3779B97F4A7C15 % 2**64 for number in range(50)]
    made: list[Verdict] = []

    def write(moved: int) -> None:
        pages = [(url, simhash ^ moved) for url, simhash in zip(urls, spread, strict=True)]
        with connect(dsn) as own:
            for start in range(0, len(pages), size):
                made.extend(own.add_many(pages[start : start + size]))

    threads = [threading.Thread(target=write, args=(moved,)) for moved in (0, 1, 3, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for url in urls:
        got = sorted(verdict.verdict for verdict in made if verdict.url == url)
        assert got == ["new", "updated", "updated", "updated"]
    assert len(content(dsn, "default")) == 200
