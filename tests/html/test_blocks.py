"""The text blocks of a page, and the meaning of the elements around them."""

from __future__ import annotations

import pytest
from lxml import etree

from pgsimhash.hashing.tokens import SIGNS, tokenize_signed
from pgsimhash.html.blocks import Outline, outline, structure_simhash
from pgsimhash.html.parse import parse


def outline_of(body: str) -> Outline:
    root = parse(f"<body>{body}")
    assert root is not None
    return outline(root.find("body"))


def texts(body: str) -> list[str]:
    return outline_of(body).texts()


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


def test_a_page_cannot_contain_the_signs() -> None:
    tokens = tokenize_signed(outline_of("<p>one &#1; two \x02 three &#x3; four").text)
    assert tokens == [SIGNS[0], "one", "two", "three", "four"]


def test_a_page_may_be_deeper_than_pythons_stack() -> None:
    root = etree.Element("body")
    deepest = root
    for _ in range(20_000):
        deepest = etree.SubElement(deepest, "div")
    deepest.text = "at the bottom"
    page = outline(root)
    assert page.texts() == ["at the bottom"]
    assert structure_simhash(page)


def test_of_very_many_blocks_the_first_ones_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgsimhash.html.blocks.NAMED_MAX", 2)
    page = outline_of("<p class=sidebar>one<p class=sidebar>two<p class=sidebar hidden>three")
    assert [element.names.first for element in page.elements] == ["", "", "sidebar", ""]
    assert page.texts() == ["one", "two"]
