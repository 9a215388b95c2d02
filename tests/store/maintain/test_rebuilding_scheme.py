"""A collection is rebuilt with another scheme, from the stored Markdown."""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import pgsimhash
from pgsimhash import Store, Verdict, connect
from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.hashes import murmur3_32_32
from pgsimhash.html import Article
from pgsimhash.reading.kept_markdown import kept_article
from pgsimhash.schema import migrate
from pgsimhash.schemes import Scheme, ShingleWeights, get_scheme, register_scheme
from pgsimhash.schemes.blog import long_words
from pgsimhash.schemes.features import BlockWeights
from pgsimhash.schemes.registry import DEFAULT_SCHEME, TEXT_SCHEME
from pgsimhash.sources import SourcePage, read_pages
from pgsimhash.store import rebuilding
from tests.conftest import ROOT
from tests.store.content import content, rebuild_apart
from tests.store.pages import ARTICLE, FAR, page, paragraph

# Reads pages like the default scheme.
WORDS = register_scheme(
    dataclasses.replace(
        DEFAULT_SCHEME,
        name="words-alone-1",
        weigh=ShingleWeights((1,)),
        tokenize=long_words,
        hash_features=murmur3_32_32,
    )
).name
EXAMPLES = ROOT / "examples" / "pages"


def refingerprint(store: Store, into: str, scheme: str | Scheme, **others: Any) -> list[Verdict]:
    """The verdicts of a collection of another scheme; the first one keeps its name."""
    told: list[Verdict] = []
    rebuild_apart(store, into, scheme=scheme, verdicts=told.append, **others)
    return told


@pytest.fixture
def kept(dsn: str) -> Iterator[Store]:
    """A collection that stores Markdown."""
    with connect(dsn, collection="kept", create=True, keep_markdown=True) as store:
        yield store


def fetched(number: int, html: str, days: int = 0) -> SourcePage:
    time = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=days)
    return SourcePage(f"https://a.example/{number}", html, fetched_at=time)


def crawl(store: Store, pages: int) -> None:
    """Pages, every third a copy, some with several versions, all seen again."""
    made = [fetched(n, page(paragraph(n - n % 3), paragraph(n // 3))) for n in range(pages)]
    list(store.ingest_many(made))
    list(store.ingest_many([fetched(n, page(*ARTICLE, paragraph(n)), 1) for n in range(0, 10, 2)]))
    list(store.ingest_many([fetched(n, page(*ARTICLE, paragraph(n)), 7) for n in range(0, 6, 2)]))


def emphasis(tokens: Sequence[str], article: Article) -> Mapping[str, float]:
    markup = re.findall(r"^#+ .*|!\[[^][]*\]\([^)]*", article.markdown, re.MULTILINE)
    words = dict(ShingleWeights()(tokens, article)) | dict.fromkeys(markup, 3.0)
    return words | ({} if article.title is None else {article.title: 3.0})


# The title, headings and images have their weights in the page.
EMPHASIS = register_scheme(Scheme("emphasis-1", DEFAULT_SCHEME.extract, emphasis)).name

# Plain text is not taken for Markdown.
TEXT_TWIN = register_scheme(dataclasses.replace(TEXT_SCHEME, name="text-twin-1")).name


@pytest.mark.parametrize(
    ("source", "scheme"),
    [
        *((DEFAULT_SCHEME.name, scheme) for scheme in (WORDS, EMPHASIS)),
        ("pgsimhash-blog-words-1", "pgsimhash-blog-shingles-1"),
        ("pgsimhash-text-1", TEXT_TWIN),
    ],
)
def test_it_equals_ingesting_the_pages_with_that_scheme(dsn: str, source: str, scheme: str) -> None:
    with connect(dsn, collection="kept", create=True, scheme=source, keep_markdown=True) as kept:
        list(kept.ingest_many(read_pages([EXAMPLES])))
        again = refingerprint(kept, "again", scheme)
    with connect(
        dsn, collection="afresh", create=True, scheme=scheme, keep_markdown=True
    ) as afresh:
        known = {row[0] for row in content(dsn, "kept")}
        fresh = [
            verdict
            for verdict in afresh.ingest_many(read_pages([EXAMPLES]))
            if verdict.url in known
        ]
    assert len(again) == len(fresh) > 20
    assert again == fresh
    times = 2, 16
    for made, expected in zip(content(dsn, "again"), content(dsn, "afresh"), strict=True):
        assert [cell for at, cell in enumerate(made) if at not in times] == [
            cell for at, cell in enumerate(expected) if at not in times
        ]


def some_blocks(tokens: Sequence[str], article: Article) -> Mapping[str, float]:
    """Words weighted by their blocks, but only in pages about tides."""
    blocks = BlockWeights()(tokens, article) if "tide" in article.text else {}
    return {**ShingleWeights((1,))(tokens, article), **blocks}


def test_a_function_that_needs_the_html_is_refused(dsn: str, kept: Store) -> None:
    """Markdown has no weights of blocks; equal ones would give other simhashes than the pages."""
    scheme = register_scheme(
        Scheme("some-blocks-1", get_scheme("pgsimhash-article-1").extract, some_blocks)
    )
    crawl(kept, 3)
    kept.ingest("https://a.example/tide", page(paragraph(1), "The tide " + paragraph(2)))
    before = content(dsn, "kept", numbered=True)
    for refused in (scheme, DEFAULT_SCHEME):
        with pytest.raises(ArgumentError, match=r"weighs text blocks.*ingest the pages into anoth"):
            kept.rebuild(scheme=dataclasses.replace(refused, name=f"{refused.name}0"))
    assert [one.name for one in kept.collections()] == ["kept"]
    assert content(dsn, "kept", numbered=True) == before


def test_a_batch_is_limited_in_bytes(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl(kept, 3)
    whole = refingerprint(kept, "whole", WORDS)
    monkeypatch.setattr(rebuilding, "BATCH_BYTES", 1)
    steps: list[int] = []
    again = refingerprint(kept, "again", WORDS, progress=lambda _, done, __: steps.append(done))
    assert steps == list(range(len(whole) + 1))
    assert again == whole


def test_stores_of_the_old_scheme_raise(dsn: str, kept: Store) -> None:
    crawl(kept, 3)
    with connect(dsn, collection="kept", create=True) as other:
        made = kept.rebuild(scheme=WORDS)
        assert (made.name, made.scheme, kept.collection.scheme) == ("kept", WORDS, WORDS)
        assert kept.ingest("https://b.example/", page(paragraph(0), paragraph(0))).duplicate_of
        uses: list[Callable[[], object]] = [
            lambda: other.find(1),
            lambda: other.has_near(1),
            lambda: other.add_page("https://c.example/", 1),
            lambda: other.ingest("https://c.example/", page(paragraph(5))),
            lambda: other.rebuild(),
        ]
        for use in uses:
            with pytest.raises(pgsimhash.CollectionError, match=r"scheme .words-alone-1. now, not"):
                use()


def test_pages_without_markdown_or_too_short_are_reported(dsn: str, kept: Store) -> None:
    """Too short for the scheme, or for the policies, which are copied."""
    read = get_scheme("pgsimhash-article-1").extract
    patient = register_scheme(Scheme("patient-1", read, ShingleWeights((1, 2)), min_tokens=150))
    kept.ingest("https://a.example/1", page(*ARTICLE))
    kept.add_page("https://a.example/2", FAR)
    kept.ingest("https://a.example/3", page(paragraph(3)))
    kept.ingest("https://b.example/4", page(*ARTICLE, paragraph(4, 40)))
    kept.ingest("https://a.example/5", page(*ARTICLE))
    kept.set_policy("b.example", min_tokens=400)
    kept.set_policy("*", scope="host", expire_after=timedelta(days=9))
    verdicts = refingerprint(kept, "again", patient)
    assert [(v.kind, v.reason) for v in verdicts] == [
        ("new", "first_seen"), ("failed", "unreadable"), ("too_short", "too_short"),
        ("too_short", "policy"), ("duplicate", "same_bytes"),
    ]  # fmt: skip
    assert "ingest the page" in str(verdicts[1].detail)
    with connect(dsn, collection="again", create=True) as again:
        copied, own = again.policies(), kept.policies()
        assert [(p.pattern, p.given()) for p in copied] == [(p.pattern, p.given()) for p in own]


def test_the_new_collection_has_the_requested_settings(dsn: str, kept: Store) -> None:
    crawl(kept, 3)
    refingerprint(kept, "small", WORDS, distance=5, keep_markdown=False)
    with connect(dsn, collection="small", create=False) as small:
        assert small.collection.scheme == WORDS
        assert [one.default_distance for one in small.collections()] == [8, 5]
    assert {row[13] for row in content(dsn, "small")} == {None}
    migrate.upgrade(dsn, schema="wide")
    assert kept.rebuild(into_schema="wide", scheme=WORDS).scheme == WORDS
    assert kept.collection.scheme == DEFAULT_SCHEME.name
    moved = content(dsn, "kept", schema="wide")
    assert [row[:2] for row in moved] == [row[:2] for row in content(dsn, "small")]


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
