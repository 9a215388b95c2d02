"""A collection made anew by another scheme, from the Markdown that one keeps."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from typing import Any

import psycopg
import pytest

import pgsimhash
from pgsimhash import Store, analysis, connect, maintenance
from pgsimhash.errors import ArgumentError, NoServerError
from pgsimhash.hashes import murmur3_32_32
from pgsimhash.html import SiteHints
from pgsimhash.html.plain import plain_text
from pgsimhash.maintenance import refingerprinting
from pgsimhash.policies import Settings
from pgsimhash.rereading import kept_article
from pgsimhash.schemes import (
    DEFAULT_SCHEME,
    ArticleReader,
    Emphasis,
    ImageWeights,
    Mixture,
    Scheme,
    ShingleWeights,
    get_scheme,
    register_scheme,
    simhash_texts,
)
from pgsimhash.sources import SourcePage, read_pages
from pgsimhash.tokens import Words
from tests.conftest import ROOT
from tests.refusals import because
from tests.store.test_store import ARTICLE, FAR, page, paragraph

# Reads pages as the default does.
WORDS = register_scheme(
    dataclasses.replace(
        DEFAULT_SCHEME,
        name="words-alone-1",
        weigh=ShingleWeights((1,), "linear"),
        tokenize=Words(min_length=3),
        hash_features=murmur3_32_32,
    )
).name
EXAMPLES = ROOT / "examples" / "pages"

# What a page is in a collection, whatever the ids of its row, its run and its original are.
CONTENT = """
SELECT
    p.url, p.simhash, p.fetched_at, p.title, p.canonical_url, p.language, p.features, p.words,
    p.html_bytes, p.html_digest, p.structure, p.sketch_high, p.sketch_low, p.markdown,
    o.url, p.distance, s.seen_at
FROM pgsimhash.collections AS c
JOIN pgsimhash.pages AS p USING (collection_id)
LEFT JOIN pgsimhash.pages AS o
    ON o.collection_id = p.collection_id AND o.page_id = p.duplicate_of
LEFT JOIN pgsimhash.sightings AS s
    ON s.collection_id = p.collection_id AND s.page_id = p.page_id
WHERE c.name = %s
ORDER BY p.page_id
"""


def content(dsn: str, collection: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(CONTENT, [collection]).fetchall()


@pytest.fixture
def kept(dsn: str) -> Iterator[Store]:
    """A collection that keeps Markdown."""
    with connect(dsn, collection="kept", keep_markdown=True) as store:
        yield store


def fetched(number: int, html: str, days: int = 0) -> SourcePage:
    time = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=days)
    return SourcePage(f"https://a.example/{number}", html, fetched_at=time)


def crawl(store: Store, pages: int) -> None:
    """Pages of which every third is a copy, some of them with versions, all seen again."""
    made = [fetched(n, page(paragraph(n - n % 3), paragraph(n // 3))) for n in range(pages)]
    list(store.ingest_many(made))
    list(store.ingest_many([fetched(n, page(*ARTICLE, paragraph(n)), 1) for n in range(0, 10, 2)]))
    list(store.ingest_many([fetched(n, page(*ARTICLE, paragraph(n)), 7) for n in range(0, 6, 2)]))


@pytest.mark.parametrize(
    ("source", "scheme"),
    [
        (DEFAULT_SCHEME.name, WORDS),
        ("pgsimhash-blog-words-1", "pgsimhash-blog-shingles-1"),
    ],
)
def test_it_has_what_ingesting_the_pages_with_that_scheme_gives(
    dsn: str, source: str, scheme: str
) -> None:
    with connect(dsn, collection="kept", scheme=source, keep_markdown=True) as kept:
        list(kept.ingest_many(read_pages([EXAMPLES])))
        again = list(maintenance.refingerprint(kept, "again", scheme))
    with connect(dsn, collection="afresh", scheme=scheme, keep_markdown=True) as afresh:
        known = {row[0] for row in content(dsn, "kept")}
        fresh = [
            verdict
            for verdict in afresh.ingest_many(read_pages([EXAMPLES]))
            if verdict.url in known
        ]
    assert len(again) == len(fresh) > 20
    assert [v.as_json() for v in again] == [v.as_json() for v in fresh]
    times = 2, 16
    for made, expected in zip(content(dsn, "again"), content(dsn, "afresh"), strict=True):
        assert [cell for at, cell in enumerate(made) if at not in times] == [
            cell for at, cell in enumerate(expected) if at not in times
        ]


def test_title_headings_and_images_weigh_what_they_weigh_in_the_page(kept: Store) -> None:
    weighting = Mixture(((Emphasis(ShingleWeights((1, 2))), 1.0), (ImageWeights(2.0), 1.0)))
    scheme = register_scheme(
        Scheme("emphasis-1", get_scheme("pgsimhash-article-1").extract, weighting)
    )
    list(kept.ingest_many(read_pages([EXAMPLES])))
    by_url = {
        verdict.url: verdict.simhash for verdict in maintenance.refingerprint(kept, "again", scheme)
    }
    for found in read_pages([EXAMPLES]):
        if isinstance(found, SourcePage) and found.url in by_url:
            made = pgsimhash.fingerprint(
                found.html, found.url, charset=found.charset, scheme=scheme
            )
            assert by_url[found.url] == made.simhash


def test_versions_times_sightings_and_marks_go_along(dsn: str, kept: Store) -> None:
    crawl(kept, 30)
    a, b, c = (f"https://a.example/{n}" for n in (3, 4, 7))
    maintenance.mark(kept, a, b, same=False)
    maintenance.mark(kept, b, c, same=True)
    list(maintenance.refingerprint(kept, "again", WORDS))
    with connect(dsn, collection="again", create=False) as again:
        assert [(m.a, m.b, m.same, m.marked_at) for m in maintenance.marks(again)] == [
            (m.a, m.b, m.same, m.marked_at) for m in maintenance.marks(kept)
        ]
        assert len(analysis.versions(again, "https://a.example/2")) == 2
        (run,) = maintenance.runs(again)
        assert (run.what, run.pages) == ("refingerprint of kept", 35)
        found = again.get(c)
        assert found is not None
        assert found.duplicate_of == b
    carried = [(row[0], row[2], row[-1]) for row in content(dsn, "again")]
    assert carried == [(row[0], row[2], row[-1]) for row in content(dsn, "kept")]
    assert sum(seen is not None for _, _, seen in carried) == 3


@pytest.mark.parametrize("stop", [0, 1, 7, 8, 30])
def test_stopped_anywhere_it_ends_as_if_it_had_not_been(
    dsn: str, kept: Store, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    monkeypatch.setattr(refingerprinting, "BATCH_PAGES", 8)
    crawl(kept, 30)
    whole = list(maintenance.refingerprint(kept, "whole", WORDS))
    some = maintenance.refingerprint(kept, "stopped", WORDS)
    before = [next(some) for _ in range(stop)]
    del some
    after = list(maintenance.refingerprint(kept, "stopped", WORDS))
    # What was stored and not yet taken from the iterator is not told again.
    assert before == whole[:stop]
    assert after == whole[-(-stop // 8) * 8 :]
    assert content(dsn, "stopped") == content(dsn, "whole")
    assert list(maintenance.refingerprint(kept, "stopped", WORDS)) == []
    assert content(dsn, "stopped") == content(dsn, "whole")


def _go_on_until_killed(dsn: str) -> None:
    with connect(dsn, collection="kept") as store:
        store.start_run("x")
        for number, _ in enumerate(maintenance.refingerprint(store, "killed", WORDS)):
            if number == 300:
                os.kill(os.getpid(), signal.SIGKILL)


def test_killed_it_goes_on(dsn: str, kept: Store) -> None:
    crawl(kept, 600)
    child = get_context("spawn").Process(target=_go_on_until_killed, args=[dsn])
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    stored = len(content(dsn, "killed"))
    assert 300 < stored < 605
    assert len(list(maintenance.refingerprint(kept, "killed", WORDS))) == 605 - stored
    list(maintenance.refingerprint(kept, "whole", WORDS))
    assert content(dsn, "killed") == content(dsn, "whole")


def test_a_connection_that_is_lost_loses_the_batch_and_no_more(dsn: str, kept: Store) -> None:
    crawl(kept, 600)
    told: list[int] = []

    def interfere(done: int, total: int) -> None:
        told.append(done)
        if done:
            with psycopg.connect(dsn, autocommit=True) as hand:
                hand.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

    with pytest.raises(NoServerError, match="run again to continue"):
        list(maintenance.refingerprint(kept, "lost", WORDS, progress=interfere))
    assert told == [0, 256]
    with connect(dsn, collection="kept") as store:
        assert len(list(maintenance.refingerprint(store, "lost", WORDS))) == 605 - 256
        list(maintenance.refingerprint(store, "whole", WORDS))
    assert content(dsn, "lost") == content(dsn, "whole")


def test_two_at_a_time_share_the_work(
    dsn: str, kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refingerprinting, "BATCH_PAGES", 8)
    crawl(kept, 30)
    list(maintenance.refingerprint(kept, "whole", WORDS))
    with connect(dsn, collection="kept") as other:
        one, two = (maintenance.refingerprint(store, "both", WORDS) for store in (kept, other))
        first = [next(one), next(two)]
        rest = [*one, *two]
    assert len(first + rest) == 35
    assert content(dsn, "both") == content(dsn, "whole")


def test_what_comes_meanwhile_is_taken_the_next_time(dsn: str, kept: Store) -> None:
    crawl(kept, 12)
    told: list[tuple[int, int]] = []
    list(maintenance.refingerprint(kept, "again", WORDS, progress=lambda *step: told.append(step)))
    assert told == [(0, 17), (17, 17)]
    later = fetched(1, page(paragraph(0), paragraph(0)), 30)
    list(kept.ingest_many([fetched(40, page(paragraph(40))), later]))
    maintenance.mark(kept, "https://a.example/40", "https://a.example/1", same=True)
    assert [v.url for v in maintenance.refingerprint(kept, "again", WORDS)] == [
        "https://a.example/40"
    ]
    with connect(dsn, collection="again") as again:
        found = again.get("https://a.example/1")
        assert found is not None
        # It was seen again there as well, though no version of it is new.
        assert found.seen_at == later.fetched_at
        assert len(maintenance.marks(again)) == 1


def test_it_begins_anew_once_all_of_it_was_forgotten(dsn: str, kept: Store) -> None:
    crawl(kept, 12)
    list(maintenance.refingerprint(kept, "again", WORDS))
    before = content(dsn, "again")
    with connect(dsn, collection="again") as again:
        maintenance.undo(again)
    list(maintenance.refingerprint(kept, "again", WORDS))
    assert content(dsn, "again") == before


def test_pages_without_markdown_or_too_short_are_told_and_the_rest_goes_on(kept: Store) -> None:
    patient = register_scheme(
        Scheme(
            "patient-1",
            get_scheme("pgsimhash-article-1").extract,
            ShingleWeights((1, 2)),
            min_tokens=150,
        )
    )
    kept.ingest("https://a.example/1", page(*ARTICLE))
    kept.add("https://a.example/2", FAR)
    kept.ingest("https://a.example/3", page(paragraph(3)))
    kept.ingest("https://a.example/4", page(*ARTICLE))
    verdicts = list(maintenance.refingerprint(kept, "again", patient))
    assert [(v.verdict, v.reason) for v in verdicts] == [
        ("new", "first_seen"),
        ("failed", "no_markdown"),
        ("too_short", "too_short"),
        ("identical", "same_bytes"),
    ]
    assert "ingest the page" in str(verdicts[1].detail)


def test_policies_go_along_and_hold(dsn: str, kept: Store) -> None:
    least = Settings(min_words=200)
    kept.ingest("https://a.example/1", page(*ARTICLE))
    kept.ingest("https://b.example/1", page(paragraph(1)))
    kept.ingest("https://a.example/2", page(*ARTICLE))
    maintenance.set_policy(kept, "b.example", least)
    maintenance.set_policy(
        kept, "a.example", Settings(scope="host", expire_after=timedelta(days=9))
    )
    verdicts = list(maintenance.refingerprint(kept, "again", WORDS))
    assert [(v.verdict, v.reason) for v in verdicts] == [
        ("new", "first_seen"),
        ("too_short", "policy"),
        ("identical", "same_bytes"),
    ]
    with connect(dsn, collection="again") as again:
        assert [(p.pattern, p.given()) for p in maintenance.policies(again)] == [
            (p.pattern, p.given()) for p in maintenance.policies(kept)
        ]
    maintenance.set_policy(kept, "*", Settings(distance=12))
    with pytest.raises(ArgumentError, match="give a smaller distance"):
        maintenance.refingerprint(kept, "small", WORDS, layout="32+32")


def test_a_scheme_that_reads_pages_in_another_way_is_refused(dsn: str, kept: Store) -> None:
    kept.ingest("https://a.example/1", page(*ARTICLE))
    hinted = register_scheme(
        Scheme("hinted-1", ArticleReader(SiteHints({"a.example": "p"})), ShingleWeights((1, 2)))
    )
    for scheme in ("pgsimhash-interop-1", "pgsimhash-text-1", hinted):
        with pytest.raises(ArgumentError, match="reads pages in another way"):
            maintenance.refingerprint(kept, "again", scheme)
        with pytest.raises(pgsimhash.CollectionError, match="'again' does not exist"):
            connect(dsn, collection="again", create=False)
    verdicts = list(maintenance.refingerprint(kept, "again", "pgsimhash-text-1", approximate=True))
    assert [v.verdict for v in verdicts] == ["new"]


@pytest.mark.parametrize("scheme", ["pgsimhash-blog-words-1", "pgsimhash-interop-1"])
def test_recipes_that_read_pages_in_their_own_way_take_kept_markdown_only_when_told(
    dsn: str, kept: Store, scheme: str
) -> None:
    kept.ingest("https://a.example/1", page(*ARTICLE))
    with pytest.raises(ArgumentError, match="reads pages in another way"):
        maintenance.refingerprint(kept, "again", scheme)
    (again,) = maintenance.refingerprint(kept, "again", scheme, approximate=True)
    markdown = content(dsn, "kept")[0][13]
    hashed = markdown if "blog" in scheme else plain_text(markdown)
    assert again.simhash == get_scheme(scheme).simhash(hashed)


def test_plain_text_is_not_taken_for_markdown(dsn: str) -> None:
    text = "# 1 * 2 * 3 is no heading\n    nor is this code " + paragraph(1)
    with connect(dsn, collection="texts", scheme="pgsimhash-text-1", keep_markdown=True) as store:
        store.ingest("https://a.example/1", text)
        (again,) = maintenance.refingerprint(store, "again", "pgsimhash-text-1")
        assert again.simhash == next(simhash_texts([text]))


def test_what_cannot_be_says_how_it_could(dsn: str, store: Store, kept: Store) -> None:
    crawl(kept, 3)
    with pytest.raises(pgsimhash.CollectionError, match=r"keeps no Markdown.*ingest --collection"):
        maintenance.refingerprint(store, "again", WORDS)
    with pytest.raises(pgsimhash.CollectionError, match="collection rename NAME kept --swap"):
        maintenance.refingerprint(kept, "kept", WORDS)
    with pytest.raises(ArgumentError, match="there is no scheme 'none'"):
        maintenance.refingerprint(kept, "again", "none")
    with pytest.raises(ArgumentError, check=because("invalid_distance")):
        maintenance.refingerprint(kept, "again", WORDS, distance=9, layout="32+32")
    list(maintenance.refingerprint(kept, "again", WORDS))
    with pytest.raises(pgsimhash.CollectionError, match=r"scheme 'words-alone-1'.*--into"):
        maintenance.refingerprint(kept, "again", DEFAULT_SCHEME, approximate=True)
    with pytest.raises(pgsimhash.CollectionError, match="filled with another distance and scope"):
        maintenance.refingerprint(kept, "again", WORDS, distance=3, scope="host")
    with connect(dsn, collection="other", keep_markdown=True) as other:
        other.ingest("https://a.example/1", page(*ARTICLE))
        with pytest.raises(pgsimhash.CollectionError, match="filled with another source"):
            maintenance.refingerprint(other, "again", WORDS)
        with pytest.raises(pgsimhash.CollectionError, match="has pages already"):
            maintenance.refingerprint(kept, "other", "pgsimhash-article-1", approximate=True)


def test_the_new_collection_is_made_as_asked(dsn: str, kept: Store) -> None:
    crawl(kept, 3)
    list(
        maintenance.refingerprint(
            kept, "small", WORDS, layout="32+32", distance=5, keep_markdown=False
        )
    )
    with connect(dsn, collection="small", create=False) as small:
        assert (small.scheme, small.layout) == (WORDS, "32+32")
        assert [one.default_distance for one in small.status()] == [8, 5]
    assert {row[13] for row in content(dsn, "small")} == {None}


def test_in_a_transaction_of_the_callers_it_is_the_callers_to_commit(dsn: str, kept: Store) -> None:
    crawl(kept, 3)
    with psycopg.connect(dsn) as connection:
        mine = Store(connection, "kept")
        list(maintenance.refingerprint(mine, "again", WORDS))
        connection.rollback()
    with pytest.raises(pgsimhash.CollectionError, match="does not exist"):
        connect(dsn, collection="again", create=False)


def test_the_text_of_kept_markdown_is_what_the_scheme_hashes() -> None:
    markdown = "# The *tide*\n\n[pool](/a)"
    blog = kept_article(markdown, None, "pgsimhash-blog-words-1")
    default = kept_article(markdown, None, DEFAULT_SCHEME.name)
    unknown = kept_article(markdown, None, "nobody-knows-1")
    assert blog is not None
    assert default is not None
    assert blog.text == markdown
    assert default.text == "The tide\npool"
    assert unknown == default
    assert kept_article(None, None) is None
