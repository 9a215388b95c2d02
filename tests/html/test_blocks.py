"""The text blocks of a page, the meaning of the elements around them, and their structure."""

import random

import pytest
from lxml import etree

from pgsimhash import fingerprint, hamming_distance
from pgsimhash.hashing.tokens import SIGNS, tokenize_signed
from pgsimhash.html.blocks import (
    SAME_TEMPLATE_MAX,
    Outline,
    block_texts,
    outline,
    structure_of,
    structure_simhash,
)
from pgsimhash.html.parse import may_crowd_attributes, parse
from tests.conftest import ROOT
from tests.html.texts import TEXT, parsed


def outline_of(body: str) -> Outline:
    return outline(parsed(f"<body>{body}").find("body"))


def texts(body: str) -> list[str]:
    return block_texts(outline_of(body).text)


@pytest.mark.parametrize(("html", "blocks"), [
    ("<div>before<p>one</p>between<ul><li>two<li>three</ul>after</div>",
     ["before", "one", "between", "two", "three", "after"]),
    # Inline elements divide no word.
    *((f"<p>ferry<{tag}>man</{tag}>'s oar", ["ferryman's oar"])
      for tag in ("b", "span", "font", "a", "custom-mark", "code")),
    # White space in an element of its own does.
    *((f"<pre>let{space}ferry</pre>", ["let ferry"])
      for space in ("<span> </span>", "<b> <i></i></b>", "<b></b> ")),
    # A line break divides words and no block; in pre, so do blocks.
    ("<p>one<br>two<br/><b>three</b><wbr>four", ["one two threefour"]),
    ("<pre>one<div>two</div><p>th<b>ree</b></pre>four", ["one two three", "four"]),
    ("<div style='overflow:hidden'>seen</div>", ["seen"]),
])  # fmt: skip
def test_a_block_is_a_run_of_text_between_two_tags_of_blocks(html: str, blocks: list[str]) -> None:
    assert texts(html) == blocks


@pytest.mark.parametrize("hidden", [
    "<div hidden>", "<div style='color: red; display : none'>", "<span style='visibility:hidden'>",
    "<span hidden=''>", "<script>", "<noscript>", "<template>", "<textarea>", "<button>", "<svg>",
])  # fmt: skip
def test_hidden_content_is_not_text(hidden: str) -> None:
    name = hidden.strip("<>").split()[0]
    assert texts(f"<p>seen {hidden}not seen</{name}> as well") == ["seen as well"] or texts(
        f"<p>seen</p>{hidden}not seen</{name}><p>as well"
    ) == ["seen", "as well"]
    # A page cannot contain the signs.
    tokens = tokenize_signed(outline_of("<p>one &#1; two \x02 three &#x3; four").text)
    assert tokens == [SIGNS[0], "one", "two", "three", "four"]


def test_a_page_may_be_deeper_than_pythons_stack() -> None:
    root = etree.Element("body")
    deepest = root
    for _ in range(20_000):
        deepest = etree.SubElement(deepest, "div")
    deepest.text = "at the bottom"
    page = outline(root)
    assert block_texts(page.text) == ["at the bottom"]
    assert structure_simhash(page)


def test_of_very_many_blocks_the_first_ones_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgsimhash.html.blocks.NAMED_MAX", 2)
    page = outline_of("<p class=sidebar>one<p class=sidebar>two<p class=sidebar hidden>three")
    assert [element.names.first for element in page.elements] == ["", "", "sidebar", ""]
    assert block_texts(page.text) == ["one", "two"]


# Pages that would take quadratic time are detected before they are parsed.
ATTRIBUTES = " ".join(f"a{number}" for number in range(30_000))
CROWDED = [
    f"<p {ATTRIBUTES}>", f"<script a='>' {ATTRIBUTES}>", f'<p " a=">" {ATTRIBUTES}>',
    f"<p a='<' {ATTRIBUTES}>", f"<p {ATTRIBUTES}", f"<i {ATTRIBUTES[:40_000]}>" * 3,
]  # fmt: skip
ORDINARY = [
    TEXT, f"<p>{TEXT * 1000}", f'<script type="module">{"let a = 1;" * 20_000}</script>',
    f'<div class="x" data-all="{"&quot;a&quot;: 1, " * 20_000}">',
    f"<style media='print'>{'p > a { color: red }' * 9000}</style>", "<p class=x>boats</p>" * 5000,
]  # fmt: skip


def test_only_tags_with_thousands_of_attributes_are_known_before() -> None:
    assert all(may_crowd_attributes(page.encode()) for page in CROWDED)
    assert not any(may_crowd_attributes(page.encode()) for page in ORDINARY)


GOLDEN = 0x6190588D046A5179


def shape(html: str) -> int:
    return structure_of(parsed(html))


def example(name: str) -> int:
    structure = fingerprint((ROOT / "examples" / "pages" / f"{name}.html").read_bytes()).structure
    assert structure is not None
    return structure


def page(article: str, classes: str = "main") -> str:
    return (
        f"<html><head><title>x</title><meta name=a></head><body class={classes}><header><nav><ul>"
        f"<li><a href=/>Home</a></ul></nav></header><main class={classes}><div id={classes}>"
        f"<article>{article}</article></div><aside><section><form><input></form></section></aside>"
        "</main><footer><div><p>Imprint</div></footer></body></html>"
    )


LONG = "<h2>more</h2><p>some <b>bold</b> text</p><ul><li>x</ul><pre><code>y</code></pre>" * 500
RICH = "<figure><img><figcaption>x</figcaption></figure><table><tr><td>x</table><svg><g/></svg>"


@pytest.mark.parametrize("other", [page("<p>text", "css-1x2y3z"), page(LONG), page(RICH)])
def test_classes_length_and_pictures_change_no_structure_a_promotion_little(other: str) -> None:
    assert shape(page("<p>text")) == shape(other)
    promotion = "<div><section><button>Subscribe</button></section></div><p>text"
    assert 0 < hamming_distance(shape(other), shape(page(promotion))) <= SAME_TEMPLATE_MAX


@pytest.mark.parametrize(("one", "other", "near"), [
    ("tide-pools", "town-swifts", True), ("lighthouse", "night-train", True),
    ("night-train", "night-train-other-menu", True), ("tide-pools", "tide-pools-one-comment", True),
    ("tide-pools-redesign", "lighthouse-redesign", True),
    ("tide-pools", "tide-pools-redesign", False), ("lighthouse", "lighthouse-redesign", False),
    ("repair-cafe", "repair-cafe-syndicated", False), ("tide-pools", "seilfaehre", False),
])  # fmt: skip
def test_pages_of_one_template_are_near_and_others_far(one: str, other: str, near: bool) -> None:
    assert (hamming_distance(example(one), example(other)) <= SAME_TEMPLATE_MAX) == near


def test_the_order_of_siblings_does_not_matter_and_the_value_never_changes() -> None:
    parts = ["<div><form></form></div>", "<nav></nav>", "<section></section>"]
    shapes = set()
    for seed in range(5):
        random.Random(seed).shuffle(parts)
        shapes.add(shape("<body>" + "".join(parts)))
    assert shapes == {GOLDEN}
    # A page without an element has no shape.
    assert shape("<p>") == shape("text alone")
    assert parse("") is None
