"""A collection with normalized URLs accepts any spelling everywhere."""

from collections.abc import Iterator

import pytest

from pgsimhash import CollectionError, Store, analysis, connect
from pgsimhash.sources import SourcePage
from tests.refusals import because
from tests.store.content import page_at
from tests.store.pages import ARTICLE, page, paragraph

PLAIN = "https://example.com/story?id=7"
OTHERS = [
    "HTTPS://Example.com:443/story?id=7",
    "https://example.com/story?utm_source=mail&id=7#comments",
    "https://example.com/story?id=7&fbclid=abc",
]


@pytest.fixture
def normal(dsn: str) -> Iterator[Store]:
    with connect(dsn, collection="normal", create=True, normalize_urls=True) as store:
        yield store


def test_all_spellings_are_one_page_only_with_normalization(store: Store, normal: Store) -> None:
    assert not store.collection.normalize_urls
    verdicts = list(store.ingest_many((url, page(*ARTICLE)) for url in [PLAIN, *OTHERS]))
    assert [verdict.kind for verdict in verdicts] == ["new", *["duplicate"] * 3]
    assert normal.ingest(PLAIN, page(*ARTICLE)).kind == "new"
    for verdict in normal.ingest_many((url, page(*ARTICLE)) for url in OTHERS):
        assert (verdict.url, verdict.kind) == (PLAIN, "unchanged")
    for url in OTHERS:
        assert page_at(normal, url).url == PLAIN
        assert not normal.should_fetch(url)
        assert len(analysis.versions(normal, url)) == 1
    assert normal.delete_page(OTHERS[0]).gone == [PLAIN]


def test_links_marks_and_policies_name_pages_in_any_spelling(normal: Store) -> None:
    other = "https://example.com/other"
    link = f'<link rel="canonical" href="{OTHERS[1]}">'.replace("&", "&amp;")
    html = page(paragraph(7), paragraph(8)).replace("<head>", "<head>" + link)
    normal.ingest(PLAIN, page(*ARTICLE))
    named = normal.ingest(other, html, canonical_link=True)
    assert (named.reason, named.duplicate_of) == ("canonical_link", PLAIN)
    normal.mark(OTHERS[0], other + "#x", same=False)
    assert normal.unmark(other, OTHERS[2])
    normal.set_policy("example.com/story", distance=3)
    assert normal.policy_for("https://EXAMPLE.com/story").distance == 3


def test_an_invalid_url_fails_or_is_unknown(normal: Store) -> None:
    long = "https://example.com/" + "ä" * 600
    pages = [SourcePage(url, page(*ARTICLE)) for url in (long, "no url", PLAIN)]
    reasons = [verdict.reason for verdict in normal.ingest_many(pages)]
    assert reasons == ["invalid_url", "invalid_url", "first_seen"]
    assert normal.get(long) is None
    assert normal.should_fetch("no url")


def test_normalization_of_a_collection_is_fixed(dsn: str, normal: Store) -> None:
    with pytest.raises(CollectionError, match="such as normal-2") as refused:
        connect(dsn, collection="normal", normalize_urls=False)
    assert because("other_settings")(refused.value)
    connect(dsn, collection="normal").close()
    normal.ingest(PLAIN, page(*ARTICLE))
    normal.rebuild()
    assert normal.collection.normalize_urls
    assert normal.get(OTHERS[0]) is not None
    assert [one.normalize_urls for one in normal.collections()] == [True, True]
