"""The text blocks of a page, and the meaning of the elements around them."""

import pytest
from lxml import etree

from pgsimhash.hashing.tokens import SIGNS, tokenize_signed
from pgsimhash.html.blocks import Outline, block_texts, outline, structure_simhash
from pgsimhash.html.parse import may_crowd_attributes, parse
from tests.html.test_hostile_html import TEXT


def outline_of(body: str) -> Outline:
    root = parse(f"<body>{body}")
    assert root is not None
    return outline(root.find("body"))


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
