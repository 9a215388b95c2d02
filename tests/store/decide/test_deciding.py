"""Which pages count as known: dry runs, reasons, scopes, windows, canonical links."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from pgsimhash import Store, connect
from pgsimhash.pages.urls import same_site
from tests.database import after_a_wait, run_sql
from tests.store.content import original_of, page_at
from tests.store.pages import ARTICLE, FAR, page, paragraph

HTML = page(*ARTICLE)
NEAR = page(f"{ARTICLE[0]} One remark, signed.", *ARTICLE[1:])


def test_a_page_can_say_when_it_was_fetched(store: Store) -> None:
    time, month = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=30)
    store.ingest("https://a.example/1", HTML, fetched_at=time)
    url, later = "https://a.example/2", time + month
    assert store.decide(url, HTML, fetched_at=later, max_age=month).kind == "duplicate"
    assert store.decide(url, HTML, fetched_at=later + month, max_age=month).kind == "new"
    assert store.decide(url, HTML, max_age=timedelta(days=2_000 * 365)).kind == "duplicate"
    assert not store.ingest(url, HTML, fetched_at=later).keep


def test_the_pages_worth_keeping_and_those_that_fail(store: Store) -> None:
    assert store.ingest("https://a.example/1", HTML).keep
    assert not store.ingest("https://a.example/1", HTML).keep
    assert not store.ingest("https://b.example/1", HTML).keep
    assert not store.ingest("https://a.example/2", "<p>Not found").keep
    wrong: dict[str | bytes, tuple[str, str]] = {
        b"%PDF-1.7 ...": ("not_html", "this is not HTML"),
        "x" * 10_000_001: ("too_large", "larger than 10,000,000 bytes"),
    }
    for content, (reason, detail) in wrong.items():
        failed = store.ingest("https://a.example/1", content)
        assert (failed.keep, failed.kind, failed.reason) == (False, "failed", reason)
        assert detail in str(failed.detail)


def test_max_bytes_is_an_option_of_all_readers(store: Store) -> None:
    url, pages = "https://a.example/1", [("https://a.example/1", HTML)]
    size = len(HTML.encode())
    assert store.decide(url, HTML, max_bytes=size).kind == "new"
    for verdict in (
        store.decide(url, HTML, max_bytes=size - 1),
        *store.decide_many(pages, jobs=2, max_bytes=size - 1),
        store.ingest(url, HTML, max_bytes=size - 1),
        *store.ingest_many(pages, max_bytes=size - 1),
    ):
        assert (verdict.reason, verdict.detail) == (
            "too_large",
            f"the page is larger than {size - 1:,} bytes (max_bytes)",
        )


def test_values_of_wrong_types_are_failed_pages(store: Store) -> None:
    pages = [(None, HTML), ("https://a.example/1", None), ("https://a.example/2", HTML)]
    verdicts = list(store.ingest_many(pages))  # type: ignore[arg-type]
    assert [verdict.reason for verdict in verdicts] == ["invalid_url", "not_html", "first_seen"]
    assert verdicts[1].detail == "a page is a str or bytes, not NoneType"


@pytest.mark.parametrize("together", [False, True])
def test_each_verdict_has_its_reason_and_a_dry_run_stores_nothing(
    store: Store, together: bool
) -> None:
    copy = HTML.replace("<body>", "<body><nav><a href=/>Home</a></nav>")
    pages: list[tuple[str, str | bytes]] = [
        ("https://a.example/1", HTML), ("https://a.example/2", HTML),
        ("https://a.example/3", HTML.encode()), ("https://a.example/4", copy),
        ("https://a.example/5", NEAR), ("https://a.example/1", HTML),
        ("https://a.example/6", "<p>Not found"), ("https://a.example/7", b"%PDF-1.7 ..."),
        ("no url", HTML),
    ]  # fmt: skip
    dry = list(store.decide_many(pages))
    assert [one.pages for one in store.collections()] == [len(store.runs())] == [0]
    verdicts = list(
        store.ingest_many(pages) if together else (store.ingest(url, html) for url, html in pages)
    )
    assert verdicts == dry
    assert [verdict.url for verdict in verdicts] == [url for url, _ in pages]
    assert [verdict.reason for verdict in verdicts] == [
        *("first_seen", "same_bytes", "same_bytes", "same_simhash", "within_distance"),
        *("unchanged", "too_short", "not_html", "invalid_url"),
    ]
    assert all(verdict.detail for verdict in verdicts[-3:])
    assert store.decide(*pages[0]).reason == "unchanged"


class TestScope:
    """The pages that a page is compared with."""

    def test_global_sees_every_collection_of_the_scheme(self, dsn: str) -> None:
        with (
            connect(dsn, collection="one", create=True) as one,
            connect(dsn, collection="two", create=True) as two,
        ):
            one.add_page("https://a.example/1", 0)
            with connect(
                dsn, collection="words", create=True, scheme="pgsimhash-blog-words-1"
            ) as words:
                words.add_page("https://c.example/1", FAR)
            assert two.add_page("https://b.example/2", FAR, scope="global").kind == "new"
            found = two.add_page("https://b.example/3", 0, scope="global")
            assert (found.distance, found.duplicate_of) == (0, "https://a.example/1")
            # The original has no page id here.
            assert found.original_page_id is None

    def test_a_copy_that_arrives_elsewhere_during_the_lookup_is_seen(
        self, store: Store, dsn: str
    ) -> None:
        """In another collection; ``test_rule.py`` has those that arrive in this one."""
        with connect(dsn, collection="two", create=True), psycopg.connect(dsn) as holder:
            connect(holder, collection="two", create=True).add_page("https://a.example/1", 0)
            made = after_a_wait(
                holder, lambda: store.add_page("https://b.example/", 1, scope="global")
            )
        assert made.duplicate_of == "https://a.example/1"


TITLED = f"<title>Wells</title>{HTML}"


def test_a_verdict_has_the_title_and_the_requested_markdown(store: Store) -> None:
    made = store.ingest("https://a.example/1", TITLED)
    assert (made.title, made.markdown) == ("Wells", None)
    asked = store.ingest("https://a.example/2", TITLED, markdown=True)
    assert asked.title == "Wells"
    assert asked.markdown is not None
    assert ARTICLE[0] in asked.markdown
    dry = store.decide("https://a.example/3", TITLED, markdown=True)
    pages = [("https://a.example/4", TITLED)]
    (many,) = store.ingest_many(pages, markdown=True)
    (dry_many,) = store.decide_many(pages, markdown=True)
    assert {one.markdown for one in (dry, many, dry_many)} == {asked.markdown}
    # The option does not make the collection store it.
    kept = [store.get(f"https://a.example/{n}") for n in (1, 2, 4)]
    assert [one and one.markdown for one in kept] == [None] * 3


def test_a_verdict_has_the_stored_markdown(dsn: str) -> None:
    with connect(dsn, keep_markdown=True) as store:
        made = store.ingest("https://a.example/1", TITLED)
        known = page_at(store, "https://a.example/1")
        assert made.markdown is not None
        assert (made.title, made.markdown) == (known.title, known.markdown)
        assert store.add_page("https://a.example/2", 7).markdown is None


def test_a_verdict_has_the_page_id_of_its_original(store: Store, dsn: str) -> None:
    first = store.add_page("https://a.example/1", 0)
    assert (first.duplicate_of, first.original_page_id) == (None, None)
    copy = store.add_page("https://a.example/2", 1)
    assert copy.original_page_id == first.page_id
    # An unchanged page names that of its version.
    assert store.add_page("https://a.example/1", 0).original_page_id is None
    assert store.add_page("https://a.example/2", 1).original_page_id == first.page_id
    dry = list(store.decide_many([("https://a.example/3", HTML), ("https://a.example/4", HTML)]))
    assert [one.original_page_id for one in dry] == [None, None]
    assert dry[1].duplicate_of == "https://a.example/3"
    pages = [(f"https://b.example/{n}", simhash) for n, simhash in ((1, FAR), (2, FAR), (3, 2))]
    new, near, again, *unchanged = store.add_pages([*pages, *pages])
    originals = [None, new.page_id, first.page_id]
    assert [one.original_page_id for one in (new, near, again)] == originals
    assert [(one.kind, one.original_page_id) for one in unchanged] == [
        ("unchanged", page_id) for page_id in originals
    ]
    store.add_page("https://c.example/", FAR >> 20)
    store.mark("https://a.example/1", "https://c.example/", same=True)
    assert store.add_page("https://c.example/", FAR >> 9).original_page_id == first.page_id
    (added,) = run_sql(dsn, "SELECT * FROM pgsimhash.add_page('https://d.example/', 3)")
    assert added[-1] == copy.page_id


@pytest.mark.parametrize(("a", "b", "same"), [
    ("https://a.example/1", "http://A.example:8080/2", True),
    ("https://www.a.example/", "https://a.example/", True),
    ("https://a.example/", "https://m.a.example/", True),
    ("https://www.a.example/", "https://m.a.example/", True),
    ("https://www.a.co.uk/", "https://m.a.co.uk/", True),
    ("https://a.co.uk/", "https://b.co.uk/", False),
    ("https://github.io/", "https://evil.github.io/", False),
    ("https://a.github.io/", "https://evil.github.io/", False),
    ("https://www.例子.中国/", "https://m.例子.中国/", True),
    ("https://10.0.1.1/", "https://20.0.1.1/", False), ("https://[::1]/", "https://[::2]/", False),
    ("https://localhost/", "https://LOCALHOST/", True),
    ("https://ba.example/", "https://a.example/", False),
    ("https://a.example/", "https://example/", False),
    ("file:///a.html", "https://a.example/", False), ("file:///a.html", "file:///b.html", True),
])  # fmt: skip
def test_a_site_is_what_one_owner_registered(a: str, b: str, same: bool) -> None:
    assert same_site(a, b) == same_site(b, a) == same


# A new version of a page is an update, and a duplicate only of pages at other URLs.

A, B = "https://a.example/", "https://b.example/"
LONGER = page(*ARTICLE, paragraph(30, 40))
FRAME = "<nav><a href=/>Home</a> <a href=/news>News</a> <a href=/sport>Sport</a></nav>"
"""The boilerplate: the simhash may change, while the text does not."""


def framed(html: str) -> str:
    return html.replace("<body>", "<body>" + FRAME)


def test_another_text_is_an_update_worth_keeping_and_other_boilerplate_is_not(store: Store) -> None:
    first = store.ingest(A, HTML)
    assert first.simhash is not None
    assert store.decide(A, LONGER).keep
    around = store.ingest(A, framed(HTML))
    assert (around.keep, around.duplicate_of) == (False, None)
    assert around.reason in ("same_text", "unchanged")
    later = store.ingest(A, LONGER)
    assert (later.kind, later.reason, later.duplicate_of) == ("updated", "changed", None)
    assert later.keep
    assert store.ingest(A, HTML).keep
    assert not store.ingest(A, HTML).keep
    assert original_of(store, A) == (None, None)


def test_a_run_counts_its_updates(store: Store) -> None:
    store.add_page("https://e.example/", 2**64 - 1)
    run_id = store.start_run("one")
    list(store.add_pages([(A, 0), (A, 1), (A, 1), (B, 1)], batch_size=2))
    (run,) = store.runs()
    assert (run.run_id, run.label) == (run_id, "one")
    assert run.started_at < run.finished_at
    assert (run.pages, run.new, run.updated, run.duplicates, run.unchanged) == (4, 1, 1, 1, 1)
    status = store.status()
    assert (status.pages, status.urls, status.duplicates) == (4, 3, 1)
