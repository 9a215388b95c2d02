"""Why two pages match, how a page changed, and two texts side by side."""

import contextlib
import dataclasses
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash import Store, analysis, connect, maintenance
from pgsimhash.analysis import read_side
from pgsimhash.analysis.changes import CHARS_MAX, Change, judge, side_by_side
from pgsimhash.analysis.explanation import Side, block_bits, explain_sides, weighted_features
from pgsimhash.errors import NotFoundError, PageError
from pgsimhash.html import read_article
from pgsimhash.reading.kept_markdown import kept_article
from pgsimhash.schemes import DEFAULT_SCHEME, Scheme
from pgsimhash.schemes.registry import TEXT_SCHEME
from pgsimhash.search.layout import LAYOUTS, Layout
from tests.conftest import ROOT
from tests.refusals import because
from tests.store.content import page_at

PAGES = ROOT / "examples" / "pages"


CHOSEN = dataclasses.replace(TEXT_SCHEME, name="chosen", extract=read_article)
"""A scheme of the visible text only, which Markdown contains."""


def side(name: str, scheme: Scheme = DEFAULT_SCHEME) -> Side:
    return read_side((PAGES / f"{name}.html").read_bytes(), scheme)


def from_markdown(page: Side) -> Side:
    assert page.article is not None
    kept = kept_article(page.article.markdown, page.title)
    return dataclasses.replace(page, article=kept, origin="markdown")


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_blocks_of_each_layout(layout: Layout) -> None:
    rng = random.Random(7)
    for _ in range(50):
        bits = rng.randint(0, layout.distances[-1])
        a = rng.getrandbits(64)
        b = a ^ sum(1 << bit for bit in rng.sample(range(64), bits))
        blocks = list(block_bits(a, b, layout))
        assert int("".join(block.a for block in blocks), 2) == a
        assert int("".join(block.b for block in blocks), 2) == b
        assert sum(block.differing for block in blocks) == bits


@pytest.mark.parametrize(("bits", "distance", "signature_bits", "reason", "matches_from"), [
    (0, 3, None, "same_simhash", 0), (3, 3, None, "within_distance", 3),
    (4, 3, None, "beyond_distance", 4), (13, 12, None, "beyond_distance", None),
    (10, 12, 8, "signatures_differ", None), (10, 12, 7, "within_distance", 10),
    (10, 9, 8, "beyond_distance", None), (5, 8, 16, "within_distance", 5),
    (5, 8, 17, "signatures_differ", None), (0, 8, 25, "signatures_differ", None),
])  # fmt: skip
def test_the_reason_and_the_distance_of_a_match(
    bits: int, distance: int, signature_bits: int | None, reason: str, matches_from: int | None
) -> None:
    signatures = (
        (None, None) if signature_bits is None else (100, (2**signature_bits - 1) << 8 | 100)
    )
    sides = [
        Side(simhash, signature=own)
        for simhash, own in zip((0, 2**bits - 1), signatures, strict=True)
    ]
    found = explain_sides(*sides, distance=distance)
    assert (found.reason, found.matches_from) == (reason, matches_from)
    assert found.matches == (matches_from is not None and matches_from <= distance)
    assert str(bits) in found.sentence or bits == 0


def test_a_page_that_ingest_would_refuse_is_refused_here_too() -> None:
    with pytest.raises(PageError, check=because("too_large")):
        read_side(b"x" * 10_000_001, DEFAULT_SCHEME)
    with pytest.raises(PageError, check=because("invalid_url")):
        read_side(b"<p>x", DEFAULT_SCHEME, "not a URL")


def test_features_only_one_page_has_come_heaviest_first() -> None:
    found = explain_sides(side("tide-pools"), side("tide-pools-print"))
    assert found.features is not None
    only = found.features.only_a
    weights = [weight for _, weight in only.top]
    assert weights == sorted(weights, reverse=True)
    others, _ = weighted_features(side("tide-pools-print"), DEFAULT_SCHEME)
    assert not {feature for feature, _ in only.top} & set(others)
    assert only.count > len(only.top) == 20
    assert found.features.shared > 500
    assert (found.a.origin, only.bits_off) == ("page", 0)
    assert found.difference is not None
    assert "removed" in {row.kind for row in found.difference.rows}


def test_low_weight_blocks_are_listed_the_largest_first() -> None:
    text = " ".join(f"w{number}x" for number in range(60))
    menu = " ".join(f"<li><a href=/{n}>Menu {'entry' * 9} {n}</a></li>" for n in range(8))
    footer = " ".join(f"Footer{n}" for n in range(25))  # 240 characters
    html = f"<nav><ul>{menu}</ul></nav><article><p>{text}</article><footer><p>{footer}</footer>"
    page = read_side(html, DEFAULT_SCHEME)
    explained = explain_sides(page, Side(0)).as_json()
    assert explained["a"]["unseen"] == (8 * 3 + 25) / (8 * 3 + 25 + 60)
    first, *others = explained["a"]["unseen_blocks"]
    assert first == footer.lower()[:150] + " ..."
    assert others == [f"menu {'entry' * 9} {n}" for n in range(4)]
    assert (explained["b"]["unseen"], explained["b"]["unseen_blocks"]) == (None, ())
    assert read_side(html, CHOSEN).unseen is None  # the scheme does not weigh blocks


def test_the_features_of_kept_markdown_are_those_that_were_hashed() -> None:
    read = 0
    for path in sorted(PAGES.glob("*.html")):
        with contextlib.suppress(PageError):
            page = side(path.stem, CHOSEN)
            weights, bits_off = weighted_features(from_markdown(page), CHOSEN)
            assert bits_off == 0
            assert weights == weighted_features(page, CHOSEN)[0]
            read += 1
    assert read > 20
    # Markdown that differs from the hashed page is reported.
    page = side("tide-pools", CHOSEN)
    other = dataclasses.replace(from_markdown(page), simhash=page.simhash ^ 0b11)
    assert weighted_features(other, CHOSEN)[1] == 2
    cut = dataclasses.replace(page, article=kept_article("a few words", None), origin="markdown")
    assert weighted_features(cut, CHOSEN)[1] is None


def page(name: str) -> bytes:
    return (PAGES / f"{name}.html").read_bytes()


def url(name: str) -> str:
    return f"https://a.example/{name}"


@pytest.fixture
def keeping(dsn: str) -> Iterator[Store]:
    with connect(dsn, collection="keeping", create=True, keep_markdown=True) as opened:
        for name in ("tide-pools", "tide-pools-print", "night-train"):
            opened.ingest(url(name), page(name))
        yield opened


def test_two_known_pages_are_explained_by_their_markdown(keeping: Store) -> None:
    found = analysis.explain(keeping, url("tide-pools"), url("tide-pools-print"))
    stored = page_at(keeping, url("tide-pools-print"))
    assert (found.matches, found.distance) == (True, stored.distance)
    assert (found.max_distance, found.scheme, found.layout) == (
        8,
        keeping.collection.scheme,
        keeping.collection.layout,
    )
    assert found.containment is not None
    assert found.structure_distance is not None
    assert found.features is not None
    assert found.b.origin == "markdown"
    # Markdown contains the words without their weights.
    assert found.features.only_b.bits_off is not None
    assert found.features.only_b.bits_off <= 12
    assert found.difference is not None


def test_the_sentence_names_a_mark_that_decides(store: Store) -> None:
    for name, simhash in (("a", 0), ("b", 2**40 - 1), ("c", 1)):
        store.add_page(url(name), simhash)
    maintenance.mark(store, url("a"), url("b"), same=True)
    maintenance.mark(store, url("c"), url("a"), same=False)

    def sentence(one: str, other: str) -> str:
        return analysis.explain(store, url(one), url(other)).sentence

    assert sentence("b", "a").endswith(" But they are marked as the same: that decides.")
    assert sentence("a", "c").endswith(" But they are marked as different: that decides.")
    assert "marked" not in sentence("b", "c")


def test_a_known_page_is_compared_with_one_from_elsewhere(keeping: Store, store: Store) -> None:
    fetched = read_side(page("tide-pools-redesign"), DEFAULT_SCHEME)
    found = analysis.explain(keeping, url("tide-pools"), fetched)
    assert found.features is not None
    assert (found.a.origin, found.b.origin) == ("markdown", "page")
    bare = analysis.explain(keeping, url("tide-pools"), 0)
    assert (bare.features, bare.difference) == (None, None)
    assert json.loads(json.dumps(bare.as_json()))["b"]["text"] is None
    # Without Markdown the bits are explained alone.
    store.ingest(url("tide-pools"), page("tide-pools"))
    found = analysis.explain(store, url("tide-pools"), fetched)
    assert (found.matches, found.features, found.difference) == (True, None, None)


def test_the_present_version_counts_and_an_unknown_url_is_an_error(store: Store) -> None:
    store.add_page(url("x"), 0)
    store.add_page(url("x"), 7)
    assert analysis.explain(store, url("x"), Side(7)).distance == 0
    with pytest.raises(NotFoundError, match=r"does not know https://a\.example/none: .*ingest"):
        analysis.explain(store, url("none"), Side(0))


URL = "https://a.example/x"


@pytest.mark.parametrize(("same", "distance", "structure", "change"), [
    (True, 0, None, "same"), (True, 3, 12, "same"), (True, 9, 12, "same"),
    (True, 9, 13, "redesign"), (False, 0, None, "edited"), (False, 4, 0, "edited"),
    (False, 8, 12, "edited"), (False, 9, None, "rewritten"), (False, 9, 13, "rewritten"),
    (False, 8, 13, "redesign"), (False, 0, 13, "redesign"),
])  # fmt: skip
def test_kinds_of_change(same: bool, distance: int, structure: int | None, change: Change) -> None:
    assert judge(distance, structure, same=same) == change


def test_versions_come_oldest_first_with_what_changed(keeping: Store) -> None:
    for name in ("tide-pools", "tide-pools-redesign", "tide-pools-redesign", "night-train"):
        keeping.ingest(URL, page(name))
    found = analysis.versions(keeping, URL)
    assert [version.change for version in found] == [None, "redesign", "rewritten"]
    assert [version.number for version in found] == [1, 2, 3]
    assert (found[1].structure_distance or 0) > 12
    assert found[2].distance_to_first == (found[0].simhash ^ found[2].simhash).bit_count()
    assert all(version.markdown for version in found)
    assert not any(version.markdown for version in analysis.versions(keeping, URL, markdown=False))
    with pytest.raises(NotFoundError, check=because("unknown_page")):
        analysis.versions(keeping, f"{URL}/none")


def test_versions_keep_the_order_in_which_they_came(store: Store) -> None:
    newer, older = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    store.add_page(URL, 0, fetched_at=newer)
    store.add_page(URL, 255, fetched_at=older)
    store.add_page(URL, 3)
    first, second, third = analysis.versions(store, URL)
    assert (first.fetched_at, first.seen_at, second.fetched_at) == (newer, newer, older)
    assert (first.distance, first.distance_to_first, first.change) == (None, 0, None)
    assert (second.distance, second.structure_distance) == (8, None)
    assert (third.distance, third.distance_to_first) == (6, 2)
    assert first.as_json()["simhash"] == "0" * 16


PARAGRAPHS = [f"Paragraph {n} speaks of {n * 7} other things at length." for n in range(12)]
OLD, NEW = PARAGRAPHS[5], PARAGRAPHS[5].replace("other", "better")


def same(text: str) -> dict[str, str]:
    return {"kind": "same", "a": text, "b": text}


def changed(a: str, only_a: str, b: str, only_b: str) -> dict[str, Any]:
    return {"kind": "changed", "a": a, "only_a": [only_a], "b": b, "only_b": [only_b]}


@pytest.mark.parametrize(("left", "right", "rows"), [
    ("\n\n".join(PARAGRAPHS), "\n".join(PARAGRAPHS), [{"kind": "skipped", "paragraphs": 12}]),
    ("\n".join(PARAGRAPHS), "\n".join([*PARAGRAPHS[:5], NEW, *PARAGRAPHS[6:]]), [
        {"kind": "skipped", "paragraphs": 4}, same(PARAGRAPHS[4]),
        changed(OLD, "other", NEW, "better"),
        same(PARAGRAPHS[6]), {"kind": "skipped", "paragraphs": 5},
    ]),
    ("one\ntwo", "two\nthree", [
        {"kind": "removed", "a": "one"}, same("two"), {"kind": "added", "b": "three"},
    ]),
    ("", "a", [{"kind": "added", "b": "a"}]), ("", "", []),
    # Scripts without spaces are compared by characters.
    ("朝市は六時に始まる", "朝市は七時に始まる",
     [changed("朝市は六時に始まる", "六", "朝市は七時に始まる", "七")]),
])  # fmt: skip
def test_texts_side_by_side(left: str, right: str, rows: list[dict[str, Any]]) -> None:
    assert side_by_side(left, right).as_json() == {"cut": False, "rows": rows}


def test_long_hostile_and_changed_texts() -> None:
    assert side_by_side("a " * CHARS_MAX, "b").cut
    assert side_by_side("a\n" * 3000, "b").cut
    assert side_by_side("\n".join(PARAGRAPHS), "x\n" * 9, rows=3).cut
    # Hostile texts end.
    rng = random.Random(1)
    one, two = ("\n".join(" ".join(rng.choices("ab", k=60)) for _ in range(1500)) for _ in range(2))
    assert side_by_side(one, two).rows
    assert side_by_side("a " * 49_999, "b a " * 24_999).rows
    # A changed paragraph beside a new one is found.
    other = [*PARAGRAPHS[:5], "Quite another sentence.", "Paragraph 5 speaks of 35 odd things."]
    rows = side_by_side("\n".join(PARAGRAPHS[:6]), "\n".join(other), context=0).rows
    assert [row.kind for row in rows] == ["skipped", "added", "changed"]


lines = st.lists(st.text(alphabet="ab c", max_size=6), max_size=8).map("\n".join)


@given(lines, lines)
def test_the_rows_contain_both_texts(a: str, b: str) -> None:
    rows = side_by_side(f"{a}\nA", f"{b}\nB", context=20).rows
    for side, whole in (("left", f"{a}\nA"), ("right", f"{b}\nB")):
        pieces = [getattr(row, side) for row in rows]
        kept = ["".join(piece.text for piece in line) for line in pieces if line]
        assert kept == [line.strip() for line in whole.splitlines() if line.strip()]
