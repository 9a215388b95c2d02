"""Selectors: what is cut from a page before it is read, by both implementations alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree, html

from pgsimhash import ArgumentError, PageError, fingerprint
from pgsimhash.html import Article, native, read_article
from pgsimhash.html.cut import cut
from pgsimhash.html.parse import parse
from pgsimhash.pages.selectors import Selectors, check_selectors
from pgsimhash.schemes.registry import scheme_names

OWN = "The ferry to the northern islands leaves at seven each morning and is back before dark."
FRAME = "Tickets are sold at the harbour office, where maps and tide tables hang by the door."
PAGE = (
    "<html lang=en><head><title>Ferry</title><link rel=canonical href=https://a.example/f></head>"
    f"<body><div class=k1><p>{FRAME}</p></div>before<div id=own class='a k2'><p>{OWN}</p>"
    "<p class=promo>Buy one, get one <b>free</b>.</p> after</div>tail</body></html>"
)


def read(page: str, content: str | None = None, ignore: str | None = None) -> Article:
    return read_article(page, selectors=Selectors(content, ignore))


def words(article: Article) -> list[str]:
    assert article.words is not None
    return [word for block in article.words.blocks for word in block.words]


def test_content_is_the_page_and_ignore_is_not() -> None:
    part = read(PAGE, ".k2", ".promo")
    assert part.text.split() == [*OWN.split(), "after"]
    assert not part.content_missing
    # The head is always read.
    assert (part.title, part.canonical_url, part.language) == (
        "Ferry", "https://a.example/f", "en"
    )  # fmt: skip
    assert "free" not in read(PAGE, ignore="p.promo").markdown


def test_nested_matches_count_once_and_in_document_order() -> None:
    page = "<body><p class=b>one</p><div class=a>two<p class=b>three</p></div><i class=b>four</i>"
    assert words(read(page, "i.b, .b, .a")) == ["one", "two", "three", "four"]
    assert words(read(page, ".a .b")) == ["three"]
    assert words(read(page, "div > .b")) == ["three"]
    assert words(read(page, "body > .b")) == ["one", "four"]


def test_content_within_what_is_ignored_does_not_count() -> None:
    page = f"<article>{OWN}</article><aside><article>{FRAME}</article></aside>"
    assert read(page, "article", "aside").text.split() == OWN.split()
    # It is there, so the page is not read whole.
    with pytest.raises(PageError) as failed:
        fingerprint(page, content="article", ignore="aside, body > article")
    assert failed.value.reason == "cut_short"


def test_html_and_body_may_be_selected() -> None:
    whole = read(PAGE)
    for selector in ("html", "body", "*", "body, .k1"):
        assert read(PAGE, selector) == whole
        with pytest.raises(PageError) as failed:
            fingerprint(PAGE, ignore=selector)
        assert failed.value.reason == "cut_short"


def test_a_page_without_the_content_is_read_whole() -> None:
    # What matches in the head does not count.
    for selector in (".k3", "title"):
        part = read(PAGE, selector)
        assert part == read(PAGE)
        assert part.content_missing
    page = fingerprint(PAGE, content=".k3")
    assert (page.content_missing, page.simhash) == (True, fingerprint(PAGE).simhash)
    assert page.selectors is not None
    assert fingerprint(PAGE).selectors is None
    assert read("plain text", "main").content_missing


def test_a_page_that_is_cut_short_names_the_selectors() -> None:
    with pytest.raises(PageError, match=r"cut by content '\.k2' and ignore 'p'") as failed:
        fingerprint(PAGE, content=".k2", ignore="p")
    assert failed.value.reason == "cut_short"
    with pytest.raises(PageError, match="has 2 words") as failed:
        fingerprint("<p>Too short", ignore=".k2")
    assert failed.value.reason == "too_short"


def test_words_around_an_ignored_block_stay_apart() -> None:
    page = "<body><p>one<i class=x>two</i>three</p><div>four<div class=x>five</div>six</div>"
    assert words(read(page, ignore=".x")) == ["onethree", "four", "six"]


@pytest.mark.parametrize("name", [name for name in scheme_names() if "article" in name
                                  or "blog" in name or "interop" in name])  # fmt: skip
def test_all_schemes_for_pages_are_cut(name: str) -> None:
    options: dict[str, Any] = {"content": "#own", "ignore": ".promo"}
    long = PAGE.replace(OWN, f"{OWN} {OWN}")
    cut_page = fingerprint(long, scheme=name, **options)
    other = fingerprint(long.replace(FRAME, "Something else.").replace("free", "a map"),
                        scheme=name, **options)  # fmt: skip
    assert cut_page.simhash == other.simhash
    assert cut_page.simhash != fingerprint(long, scheme=name).simhash


def test_a_scheme_that_reads_texts_takes_none() -> None:
    with pytest.raises(ArgumentError, match="takes no selectors"):
        fingerprint(OWN, scheme="pgsimhash-text-1", content="main")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a + b", "selector 1 .* character 2 "),
        ("main, p:has(b)", "selector 2 .* character 8 "),
        ("a,,b", "selector 2 .* character 3 "),
        ("p, ", "selector 2 .* character 3 "),
        (" ", "selector 1 .* character 1 "),
        ("[x=", "selector 1 .* character 1 "),
        (":not(:not(a))", "selector 1 .* character 1 "),
        ("b:not(.a )", "selector 1 .* character 2 "),
        ("b\va", "selector 1 .* character 2 "),
        ("ns|a", "selector 1 .* character 3 "),
        ("a::before", "selector 1 .* character 2 "),
        (", ".join(["a"] * 21), "selector 21"),
        (f"b, {'a' * 501}", "selector 2"),
    ],
)
def test_an_unsupported_selector_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(ArgumentError, match=f"^content: .*{place}"):
        check_selectors("content", text)


PARTS = [
    "a",
    "b",
    "*",
    ".x",
    "#y",
    "[z]",
    "[z='1']",
    "[z~='1']",
    ":not(.x)",
    ":not(a)",
    "a.x",
    "b[z]",
]
SELECTORS = st.lists(
    st.tuples(st.sampled_from(PARTS), st.sampled_from([" ", " > ", ", "])), min_size=1, max_size=4
).map(lambda parts: "".join(map("".join, parts)).rstrip(" >,"))
OPENED = ["a class=x", "b id=y", "b z=1", "a z='1 2' class='w x'"]
TREES = st.recursive(
    st.just(""),
    lambda inside: st.lists(
        st.tuples(st.sampled_from(OPENED), inside)
        .map(lambda pair: f"<{pair[0]}>t{pair[1]}</{pair[0][0]}>u"), max_size=3,
    ).map("".join),
    max_leaves=8,
)  # fmt: skip


@given(TREES, SELECTORS)
def test_matches_are_those_of_lxml(page: str, selectors: str) -> None:
    check_selectors("ignore", selectors)
    root = html.document_fromstring(f"<body><p>{page}</p></body>")
    around = {root, root.find("body")}
    matched = root.cssselect(selectors)
    if around.intersection(matched):
        left = around
    else:
        out = set(matched)
        left = {one for one in root.iter() if out.isdisjoint([one, *one.iterancestors()])}
    cut(root, Selectors(None, selectors))
    assert set(root.iter()) == left


@pytest.mark.skipif(not native.is_used, reason="needs the C extension")
def test_c_reads_a_cut_page_as_python_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def both(**options: Any) -> list[Any]:
        return [fingerprint(PAGE, **options), read(PAGE, **options)]

    by_c = both(content=".k2", ignore="b, .k1"), both(ignore=".k1, i")
    monkeypatch.setattr(native, "is_used", False)
    assert by_c == (both(content=".k2", ignore="b, .k1"), both(ignore=".k1, i"))


def test_a_deep_page_needs_no_search_for_each_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """The XPath of a step looks at each element once, and so does what connects the steps."""
    page = f"<body>{'<div class=a>' * 200}{'<p class=b>x</p>' * 20_000}"
    root = parse(page)
    visited = 0
    parent_of = html.HtmlElement.getparent

    def getparent(element: Any) -> Any:
        nonlocal visited
        visited += 1
        return parent_of(element)

    monkeypatch.setattr(html.HtmlElement, "getparent", getparent, raising=False)
    cut(root, Selectors(None, ".a .a .a .a .b"))
    assert 40_000 < visited < 42_000
    assert root.xpath("count(//p)") == 0


def test_too_much_work_is_a_failure() -> None:
    page = f"<body>{'<p>x</p>' * 60_000}"
    with pytest.raises(PageError, match="times 40 names") as failed:
        read(page, ", ".join(["a.b"] * 20))
    assert failed.value.reason == "too_large"
    assert read(page, "p.b").content_missing


def test_tails_of_many_ignored_elements_are_not_copied() -> None:
    root = parse(f"<body>{'<b>x</b>y' * 50_000}")
    cut(root, Selectors(None, "b"))
    assert "".join(root.itertext()) == "y" * 50_000
    assert len(etree.tostring(root)) < 60_000
