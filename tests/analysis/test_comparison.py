"""Why two pages match, how a page changed, and how two texts are aligned."""

import itertools
import json
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from difflib import SequenceMatcher
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash import Store, analysis, connect
from pgsimhash.analysis import compare_pages
from pgsimhash.analysis.block_pairs import (
    BLOCKS_MAX,
    CHARS_MAX,
    Block,
    BlockPair,
    aligned,
    blocks_of_text,
    vote_shares,
)
from pgsimhash.analysis.changes import Change, changed_words, judge
from pgsimhash.analysis.comparison import Side, compared
from pgsimhash.analysis.skyline import bars
from pgsimhash.errors import ArgumentError, NotFoundError, PageError
from pgsimhash.html import Article, read_article
from pgsimhash.html.blocks import outline_of_text
from pgsimhash.html.page_words import TextBlock, WeightedWords
from pgsimhash.schemes.features import BlockWeights
from pgsimhash.schemes.registry import DEFAULT_SCHEME
from pgsimhash.search.layout import DEFAULT_LAYOUT
from pgsimhash.sources import SourcePage
from tests.conftest import ROOT
from tests.refusals import because
from tests.store.content import page_at

PAGES = ROOT / "examples" / "pages"


def page(name: str) -> bytes:
    return (PAGES / f"{name}.html").read_bytes()


@pytest.mark.parametrize(("bits", "distance", "signature_bits", "reason", "matches_from"), [
    (0, 3, None, "same_simhash", 0), (3, 3, None, "within_distance", 3),
    (4, 3, None, "beyond_distance", 4), (13, 12, None, "beyond_distance", None),
    (10, 12, 9, "signatures_differ", None), (10, 12, 8, "within_distance", 10),
    (10, 9, 9, "beyond_distance", None), (5, 8, 12, "within_distance", 5),
    (5, 8, 13, "signatures_differ", None), (0, 8, 32, "signatures_differ", None),
])  # fmt: skip
def test_the_reason_and_the_distance_of_a_match(
    bits: int, distance: int, signature_bits: int | None, reason: str, matches_from: int | None
) -> None:
    signatures = (
        (None, None) if signature_bits is None else (100, (2**signature_bits - 1) << 8 | 100)
    )
    a, b = (
        Side(simhash, signature=own)
        for simhash, own in zip((0, 2**bits - 1), signatures, strict=True)
    )
    found = compared(a, b, DEFAULT_SCHEME, DEFAULT_LAYOUT, distance)
    assert (found.reason, found.matches_from) == (reason, matches_from)
    assert found.matches == (matches_from is not None and matches_from <= distance)
    assert str(bits) in found.sentence or bits == 0
    words = {0: "all 64 bits are equal", 3: "3 of 64 bits differ"}
    assert words.get(bits, "") in found.headline


@pytest.mark.parametrize(("second", "low", "because_of"), [
    (16, 100, "in 16 of 64 bits, and together that is too many for a copy: no match"),
    # 94.3% is not the 94.5% of copies.
    (13, 0b111 << 8 | 20, "in 13 of 64 bits, and by their signatures the larger page has 94% of "
     "the smaller one, and of copies as near as this 95% or more: no match"),
])  # fmt: skip
def test_the_sentence_says_how_far_the_second_simhashes_are(
    second: int, low: int, because_of: str
) -> None:
    a, b = Side(0, signature=low & 255), Side(255, signature=(2**second - 1) << 64 | low)
    found = compared(a, b, DEFAULT_SCHEME, DEFAULT_LAYOUT, 8)
    assert found.reason == "signatures_differ"
    assert f"But their second simhashes differ {because_of}" in found.sentence
    nearer = compared(a, b, DEFAULT_SCHEME, DEFAULT_LAYOUT, 7).sentence
    assert "nor at a larger distance: their second simhashes differ in" in nearer


def test_a_page_that_has_too_little_of_another_is_said_to_have_less_than_copies() -> None:
    for bits, differing in itertools.product(range(9), range(8, 20)):
        other = Side(2**bits - 1, signature=(2**differing - 1) << 8 | 100)
        found = compared(Side(0, signature=100), other, DEFAULT_SCHEME, DEFAULT_LAYOUT, 8)
        shares = [int(share) for share in re.findall(r"(\d+)%", found.sentence)]
        assert found.matches or shares[0] < shares[1], found.sentence


def test_a_page_that_ingest_would_refuse_is_refused_here_too() -> None:
    with pytest.raises(PageError, check=because("too_large")):
        compare_pages(b"x" * 10_000_001, 0)
    with pytest.raises(PageError, match="page A: ", check=because("invalid_url")):
        compare_pages(SourcePage("not a URL", b"<p>x"), 0)
    with pytest.raises(PageError, match="page B: ", check=because("too_short")):
        compare_pages(0, b"<p>x")
    for bad in (-1, 2**64):
        with pytest.raises(ArgumentError):
            compare_pages(bad, 0)


@pytest.mark.parametrize(("a", "b", "headline", "summary"), [
    ("tide-pools", "tide-pools", "The same page: all 64 bits are equal",
     "100% of the vote is the same. Every block of one page is on the other."),
    ("tide-pools", "night-train", "Different pages: ", "The biggest difference, "),
    ("repair-cafe", "repair-cafe-corrected", "Near-duplicates: ", "% of the vote of B: “"),
    ("sourdough", "sourdough-other-ads", "The same page: ", "but they hardly count: "),
])  # fmt: skip
def test_the_headline_and_what_two_pages_share(a: str, b: str, headline: str, summary: str) -> None:
    found = compare_pages(page(a), page(b))
    assert found.headline.startswith(headline)
    assert summary in found.summary
    assert found.agreement is not None
    assert found.matches == (found.agreement > 0.8)
    again = compare_pages(page(b), page(a))
    assert again.agreement == pytest.approx(found.agreement)
    assert again.distance == found.distance


def test_what_hardly_counts_is_no_large_share_of_a_vote() -> None:
    texts = [" ".join(f"w{number}x{n}" for n in range(40)) for number in range(5)]
    a, b = (
        f"<nav><ul>{''.join(f'<li>{name} {n}' for n in range(9))}</ul></nav><article><p>"
        + "<p>".join(texts[:last])
        for name, last in (("own", 4), ("other", 5))
    )
    found = compare_pages(a, b, distance=12)
    assert found.matches
    assert sum(pair.is_quiet for pair in found.differing) == 9
    assert "The biggest change, 18% of the vote of B: " in found.summary


def test_shares_are_those_of_the_vote_and_each_block_is_there_once() -> None:
    names = ["tide-pools", "tide-pools-redesign", "night-train", "town-swifts", "morning-market-ja"]
    for a, b in itertools.product(names, names):
        found = compare_pages(page(a), page(b))
        for side, article in (("a", read(a)), ("b", read(b))):
            blocks = [getattr(pair, side) for pair in found.blocks if getattr(pair, side)]
            assert article.words is not None
            assert [block.words for block in blocks] == [len(w.words) for w in article.words.blocks]
            assert sum(block.share for block in blocks) == pytest.approx(1)
            assert max(block.weight for block in blocks) == 1
        if a == b:
            assert {pair.kind for pair in found.blocks} == {"same"}
            assert found.agreement == pytest.approx(1)


def read(name: str) -> Article:
    return read_article(page(name))


def test_a_pair_across_cells_is_part_of_the_share_of_its_second_cell() -> None:
    blocks = [TextBlock(outline_of_text("").elements[0], [word], b"\0", row=1) for word in "ab"]
    words = WeightedWords(blocks, list)
    weighed = BlockWeights()([], Article("", "", words=words))
    assert set(weighed) == {"a", "b", "a b"}
    whole = sum(weighed.values())
    expected = [weighed["a"] / whole, (weighed["b"] + weighed["a b"]) / whole]
    assert vote_shares(words, BlockWeights()) == pytest.approx(expected)


def test_what_is_alone_what_changed_and_where_it_is() -> None:
    texts = [" ".join(f"w{number}x{n}" for n in range(30)) for number in range(4)]
    menu = "<nav><ul><li><a href=/>Home</a><li><a href=/a>All about us</a></ul></nav>"
    a = f"{menu}<article><p>{texts[0]}<p>{texts[1]} 1,496 people<p>{texts[2]}</article>"
    b = f"<article><p>{texts[0]}<p>{texts[1]} 1,521 people<p>{texts[3]}</article>{menu}"
    found = compare_pages(a, b)
    kinds = [(pair.kind, pair.blocks[0].place) for pair in found.blocks]
    assert kinds.count(("moved", "menu")) == 4
    assert [kind for kind in kinds if kind[1] == "text"] == [
        ("same", "text"), ("changed", "text"), ("only_a", "text"), ("only_b", "text"),
    ]  # fmt: skip
    (changed,) = (pair for pair in found.blocks if pair.kind == "changed")
    assert [piece.text for piece in changed.left if piece.changed] == ["1,496 "]
    assert [piece.text for piece in changed.right if piece.changed] == ["1,521 "]
    assert [pair.kind for pair in found.differing] == ["only_a", "only_b", "changed"]
    line = json.loads(json.dumps(found.as_json()))
    assert line["blocks"][-3]["b"]["text"] == texts[3]


@pytest.mark.parametrize("html", [
    "<p>" + "<p>".join(f"word{n} {n}" for n in range(3_000)),
    "<p>x y z " * 3_000,
    "<p>" + "long " * 40_000,
    "<div>" * 3_000 + "deep words " * 40,
])  # fmt: skip
def test_a_large_page_is_compared_by_its_loudest_blocks(html: str) -> None:
    found = compare_pages(html, html.replace("word7", "other7"))
    assert 1 <= len(found.blocks) <= 2 * BLOCKS_MAX
    assert sum(pair.a.share for pair in found.blocks if pair.a) == pytest.approx(1)
    blocks = [block for pair in found.blocks for block in pair.blocks]
    assert all(len(block.text) <= 20_000 and not block.tokens for block in blocks)


def test_blocks_beyond_the_limit_are_on_both_pages_only_if_they_are() -> None:
    def text(name: str, last: int = 700) -> str:
        long = [" ".join(f"w{n}x{m}" for m in range(9)) for n in range(1_000)]
        return "\n".join([*long, *(f"{name} {n}" for n in range(last))])

    whole = sum(block.words for block in blocks_of_text(text("one")))
    for other, share in (
        (text("two"), 1_400 / whole),
        (text("one", 701), 2 / (whole + 2)),
        (text("one", 300), 800 / whole),
    ):
        found = pairs_of(text("one"), other)
        assert len(found) < BLOCKS_MAX + 10
        lost = [sum(each) for each in zip(*(pair.lost for pair in found), strict=True)]
        assert max(lost) == pytest.approx(share)


def test_of_a_long_block_only_what_lies_between_equal_words_is_changed() -> None:
    long = " ".join(f"w{n}" for n in range(3_000))
    (pair,) = pairs_of(long, long.replace("w5 ", "x5 ").replace("w9 ", "x9 y9 "))
    assert pair.runs()[1:3] == [("w5 w6 w7 w8 w9", "gone"), ("x5 w6 w7 w8 x9 y9", "new")]
    assert max(pair.lost) < 0.01
    assert "".join(piece.text for piece in pair.left) == long


def test_a_block_that_moved_and_changed_has_only_changed_where_it_did() -> None:
    lines = [f"In place {n} they spoke of {n * 7} {PARAGRAPHS[n]}" for n in range(6)]
    edited = lines[5].replace("spoke", "sang")
    before, after = "\n".join(lines), "\n".join([edited, *lines[:5]])
    found = pairs_of(before, after)
    assert [pair.kind for pair in found] == ["moved", *["same"] * 5, "moved"]
    assert 0 < sum(pair.difference for pair in found) < 0.04
    runs = [
        [
            ("In place 5 they", "same"),
            ("sang", "new"),
            ("of 35 Paragraph … things at length.", "same"),
        ],
        [
            ("In place 5 they", "same"),
            ("spoke", "gone"),
            ("of 35 Paragraph … things at length.", "same"),
        ],
    ]
    assert [pair.runs() for pair in (found[0], found[-1])] == runs
    assert sorted(changed_words(before, after) or ()) == sorted(runs)
    scheme = "pgsimhash-blog-words-1"
    pages = (text.replace("\n", "<p>") for text in (before, after))
    assert "“spoke”" in compare_pages(*pages, scheme=scheme).summary
    # Half of the words make no block the same.
    half = " ".join(f"a{n}" for n in range(10))
    one, other = (f"{half} {' '.join(f'{name}{n}' for n in range(10))}" for name in "bc")
    kinds = [pair.kind for pair in pairs_of(f"{one}\nlast", f"last\n{other}")]
    assert kinds == ["only_a", "same", "only_b"]


def test_schemes_without_weighted_blocks_compare_paragraphs() -> None:
    a, b = ("\n".join([*PARAGRAPHS, line]) for line in ("The end.", "To be continued."))
    found = compare_pages(a, b, scheme="pgsimhash-blog-words-1")
    assert found.agreement is not None
    assert {pair.kind for pair in found.blocks} == {"changed"}
    assert sum(pair.a.share for pair in found.blocks if pair.a) == pytest.approx(1)
    bare = compare_pages(0, 7)
    assert (bare.agreement, bare.blocks) == (None, ())
    assert bare.summary == "Their texts cannot be compared: A and B have no text here."


def url(name: str) -> str:
    return f"https://a.example/{name}"


@pytest.fixture
def keeping(dsn: str) -> Iterator[Store]:
    with connect(dsn, collection="keeping", create=True, keep_markdown=True) as opened:
        for name in ("tide-pools", "tide-pools-print", "night-train"):
            opened.ingest(url(name), page(name))
        yield opened


def test_two_known_pages_are_compared_by_their_markdown(keeping: Store) -> None:
    found = compare_pages(url("tide-pools"), url("tide-pools-print"), store=keeping)
    stored = page_at(keeping, url("tide-pools-print"))
    assert (found.matches, found.distance) == (True, stored.distance)
    assert (found.max_distance, found.scheme) == (8, keeping.collection.scheme)
    assert found.containment is not None
    assert found.structure_distance is not None
    assert found.b.text == "markdown"
    # Markdown contains the words without their weights.
    assert {block.weight for pair in found.blocks for block in pair.blocks} == {1.0}
    with pytest.raises(ArgumentError, match="the scheme is the store's"):
        compare_pages(0, 1, store=keeping, scheme=DEFAULT_SCHEME)


def test_the_sentence_names_a_mark_that_decides(store: Store) -> None:
    for name, simhash in (("a", 0), ("b", 2**40 - 1), ("c", 1)):
        store.add_page(url(name), simhash)
    store.mark(url("a"), url("b"), same=True)
    store.mark(url("c"), url("a"), same=False)

    def sentence(one: str, other: str) -> str:
        return compare_pages(url(one), url(other), store=store).sentence

    assert sentence("b", "a").endswith(" But they are marked as the same: that decides.")
    assert sentence("a", "c").endswith(" But they are marked as different: that decides.")
    assert "marked" not in sentence("b", "c")


def test_the_sentence_names_a_canonical_link(store: Store) -> None:
    link = f'<link rel=canonical href="{url("tide-pools")}">'.encode()
    store.ingest(url("tide-pools"), page("tide-pools"))
    store.ingest(url("print"), link + page("night-train"))
    found = compare_pages(url("tide-pools"), url("print"), store=store)
    assert "The canonical link of B names the other page: " in found.sentence


def test_a_known_page_is_compared_with_one_from_elsewhere(keeping: Store, store: Store) -> None:
    fetched = page("tide-pools-redesign")
    found = compare_pages(url("tide-pools"), fetched, store=keeping)
    assert found.blocks
    assert (found.a.text, found.b.text) == ("markdown", "page")
    # Markdown has no menus and no weights, so those of the page beside it do not count.
    again = compare_pages(url("tide-pools"), page("tide-pools"), store=keeping)
    assert again.agreement == pytest.approx(1)
    assert again.differing == []
    bare = compare_pages(url("tide-pools"), 0, store=keeping)
    assert bare.blocks == ()
    assert json.loads(json.dumps(bare.as_json()))["b"]["text"] is None
    # Without Markdown the bits are explained alone.
    store.ingest(url("tide-pools"), page("tide-pools"))
    found = compare_pages(url("tide-pools"), fetched, store=store)
    assert (found.matches, found.blocks) == (True, ())
    assert found.summary == "Their texts cannot be compared: A has no text here."


def test_the_present_version_counts_or_that_of_a_day(store: Store) -> None:
    for day, simhash in ((20, 0), (24, 7), (26, 63)):
        store.add_page(url("x"), simhash, fetched_at=datetime(2026, 11, day, tzinfo=UTC))
    for name, distance in (
        ("x", 6), ("x@2026-11-26", 6), ("x@2026-11-25", 3), ("x@2026-11-20", 0),
    ):  # fmt: skip
        assert compare_pages(url(name), 0, store=store).distance == distance
    found = compare_pages(url("x@2026-11-20"), url("x"), store=store)
    assert found.sentence.endswith(" Both are versions of one URL, which ingest never compares.")
    assert "versions" not in compare_pages(0, 7, store=store).sentence
    with pytest.raises(NotFoundError, match=r"no version of https://a\.example/x of 2026-11-19"):
        compare_pages(url("x@2026-11-19"), 0, store=store)
    with pytest.raises(NotFoundError, match=r"does not know https://a\.example/none: .*ingest"):
        compare_pages(url("none"), 0, store=store)


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


def pairs_of(left: str, right: str) -> list[BlockPair]:
    return list(aligned(blocks_of_text(left), blocks_of_text(right)))


@pytest.mark.parametrize(("left", "right", "kinds", "runs"), [
    ("\n\n".join(PARAGRAPHS), "\n".join(PARAGRAPHS), ["same"] * 12, []),
    ("\n".join(PARAGRAPHS), "\n".join([*PARAGRAPHS[:5], NEW, *PARAGRAPHS[6:]]),
     [*["same"] * 5, "changed", *["same"] * 6],
     [("Paragraph 5 speaks of 35", "same"), ("other", "gone"), ("better", "new"),
      ("things at length.", "same")]),
    ("one\ntwo", "two\nthree", ["only_a", "same", "only_b"], [("one", "gone"), ("three", "new")]),
    ("one\ntwo", "two\none", ["moved", "same", "moved"], []),
    ("", "a", ["only_b"], [("a", "new")]), ("", "", [], []),
    # Scripts without spaces are compared by characters.
    ("朝市は六時に始まる", "朝市は七時に始まる", ["changed"],
     [("朝市は", "same"), ("六", "gone"), ("七", "new"), ("時に始まる", "same")]),
    # The paragraph that shares most words is the changed one, not the first that shares enough.
    ("the red boat sails", "the blue boat rests\nthe red boat sails today",
     ["only_b", "changed"], [("the blue boat rests", "new"), ("the red boat sails", "same"),
                             ("today", "new")]),
])  # fmt: skip
def test_texts_are_aligned_by_paragraphs(
    left: str, right: str, kinds: list[str], runs: list[tuple[str, str]]
) -> None:
    found = pairs_of(left, right)
    assert [pair.kind for pair in found] == kinds
    differing = [pair.runs() for pair in found if pair.kind not in ("same", "moved")]
    assert [run for place in differing for run in place] == runs


def test_long_and_hostile_texts_are_aligned_within_bounds() -> None:
    assert len(pairs_of("a\n" * 3000, "")) == BLOCKS_MAX - 1
    (pair,) = pairs_of("a " * CHARS_MAX, "b")[:1]
    assert len(pair.blocks[0].text) <= 20_000
    rng = random.Random(1)
    one, two = ("\n".join(" ".join(rng.choices("ab", k=60)) for _ in range(1500)) for _ in range(2))
    assert pairs_of(one, two)
    assert [pair.kind for pair in pairs_of("a " * 49_999, "b a " * 24_999)] == ["changed"]


def test_narrow_neighbours_are_one_bar() -> None:
    line, story = Block("a", 1, 0.5, 0.001, "menu"), Block("b", 700, 1.0, 0.7, "text")
    drawn = list(bars([BlockPair("same", line, line)] * 300 + [BlockPair("only_a", story)]))
    # A bar takes lines until it has 5% of the words.
    assert [(bar.is_a, round(bar.width, 3)) for bar in drawn] == [
        *[(True, 0.05), (False, 0.05)] * 6,
        (True, 0.7),
    ]
    assert {(bar.height, bar.shared) for bar in drawn} == {(0.5, 1.0), (1.0, 0.0)}
    assert [round(bar.left, 3) for bar in drawn if bar.is_a] == [n / 20 for n in range(7)]


def test_repeated_paragraphs_cost_no_more_than_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each longest match of equal paragraphs would take a million steps, and leave 999 others."""
    counted = 0
    find = SequenceMatcher.find_longest_match

    def count(*arguments: Any) -> Any:
        nonlocal counted
        counted += 1
        return find(*arguments)

    monkeypatch.setattr(SequenceMatcher, "find_longest_match", count)
    found = pairs_of("x\n" * 1000, "x\ny\n" * 500)
    assert counted < 10
    assert {pair.kind for pair in found} == {"same", "moved", "only_b"}


lines = st.lists(st.text(alphabet="ab c", max_size=6), max_size=8).map("\n".join)


@given(lines, lines)
def test_the_pairs_contain_both_texts(a: str, b: str) -> None:
    found = pairs_of(a, b)
    for side, whole in (("a", a), ("b", b)):
        blocks = [getattr(pair, side) for pair in found if getattr(pair, side)]
        kept = [line.strip() for line in whole.splitlines() if line.strip()]
        assert [block.text for block in blocks] == kept
        assert all(
            "".join(piece.text for piece in (pair.left if side == "a" else pair.right))
            == getattr(pair, side).text
            for pair in found
            if pair.kind == "changed"
        )


def test_what_selectors_cut_is_said(store: Store) -> None:
    html = f"<body><div id=a><p>{'own words here ' * 9}</p></div><p>{'frame text ' * 9}</p></body>"
    cut_page = SourcePage("https://a.example/1", html, content="#a")
    found = compare_pages(cut_page, html)
    assert found.a.cut == "18 of 45 words by content '#a'"
    assert [found.as_json()[side]["cut"] for side in "ab"] == [found.a.cut, None]
    assert f"Cut from A: {found.a.cut}." in found.sentence
    # A page of a store is cut by its policies.
    store.set_policy("a.example", content="#b")
    cut_page = SourcePage("https://a.example/1", html)
    cut = compare_pages(cut_page, html.encode(), store=store).a.cut
    assert cut == "0 of 45 words by content '#b' (content selects nothing)"
