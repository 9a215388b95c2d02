"""The text blocks of a page, their structure, and the Markdown of the main content."""

import random
from itertools import product

import pytest
from lxml import etree, html

from pgsimhash import fingerprint, hamming_distance
from pgsimhash.hashing.tokens import SIGNS, tokenize_signed
from pgsimhash.html import head
from pgsimhash.html.blocks import (
    SAME_TEMPLATE_MAX,
    Outline,
    block_texts,
    outline,
    structure_of,
    structure_simhash,
)
from pgsimhash.html.markdown import Links, events, render
from pgsimhash.html.parse import may_crowd_attributes
from tests.conftest import ROOT
from tests.html.texts import TEXT, parsed, parsed_body


def outline_of(body: str) -> Outline:
    return outline(parsed_body(body))


def texts(body: str) -> list[str]:
    return block_texts(outline_of(body).text)


@pytest.mark.parametrize(("html", "blocks"), [
    ("<div>before<p>one</p>between<ul><li>two<li>three</ul>after</div>",
     ["before", "one", "between", "two", "three", "after"]),
    ("<fieldset><legend>gulls</legend>two</fieldset><search>one</search><hgroup>three</hgroup>four",
     ["gulls", "two", "one", "three", "four"]),
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
    "<span hidden=''>", "<i hidden>", "<font style='display:none'>", "<label hidden>", "<title>",
    "<script>", "<noscript>", "<template>", "<textarea>", "<button>",
])  # fmt: skip
def test_hidden_content_is_not_text(hidden: str) -> None:
    name = hidden.strip("<>").split()[0]
    assert texts(f"<p>seen {hidden}not seen</{name}> as well") == ["seen as well"] or texts(
        f"<p>seen</p>{hidden}not seen</{name}><p>as well"
    ) == ["seen", "as well"]
    # A page cannot contain the signs.
    tokens = tokenize_signed(outline_of("<p>one &#1; two \x02 three &#x3; four").text)
    assert tokens == [SIGNS[0], "one", "two", "three", "four"]


@pytest.mark.parametrize(("attributes", "is_seen"), [
    ("style='display:none;display:block'", True), ("style='display:none;display:revert'", True),
    ("style='visibility:hidden; Visibility : visible'", True),
    ("hidden style='display: flex'", True), ("hidden style='color:red'", False),
    ("style='display:none !important;display:block'", False),
    ("style='color:red;DISPLAY:NONE;'", False), ("style='display:block;display:none'", False),
    # Browsers ignore what is no value.
    ("style='display:none9'", True), ("style='display:none\\9'", True),
    ("style='display:none color:red'", True), ("style='--display:none'", True),
])  # fmt: skip
def test_the_last_declaration_of_a_style_hides_or_shows(attributes: str, is_seen: bool) -> None:
    assert texts(f"<p {attributes}>one</p><p>two") == ["one"] * is_seen + ["two"]


def test_a_page_may_be_deeper_than_pythons_stack() -> None:
    root = html.Element("body")
    deepest = root
    for _ in range(5_000):
        deepest = etree.SubElement(deepest, "div")
    deepest.text = "at the bottom"
    page = outline(root)
    assert block_texts(page.text) == ["at the bottom"]
    assert structure_simhash(page)


def test_first_blocks_keep_names_and_first_links_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgsimhash.html.blocks.NAMED_MAX", 2)
    page = outline_of("<p class=sidebar>one<p class=sidebar>two<p class=sidebar hidden>three")
    assert [element.names.first for element in page.elements] == ["", "", "sidebar", ""]
    assert block_texts(page.text) == ["one", "two"]
    monkeypatch.setattr("pgsimhash.html.markdown.URLS_MAX", 2)
    made = rendered("<p><a href=a>tide</a> <img src=b> <a href=c>ebb</a> <img src=d alt=flood>")
    assert made == f"[tide]({BASE}a) ![]({BASE}b) ebb"


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
    assert shape("<p>") == shape("text alone")
    # A page without an element has no shape.
    assert shape("") != shape("<p>")


BASE = "https://bay.example/news/"


def rendered(html: str) -> str:
    return render(events(parsed(f"<body>{html}</body>")), Links(BASE))


@pytest.mark.parametrize(("html", "markdown"), [
    ("<h1>The tide</h1><p>comes in</p>", "# The tide\n\ncomes in"),
    ("<h3>At <b>noon</b></h3>", "### At noon"),
    ("<p>one\n  two</p><p> three </p>", "one two\n\nthree"),
    ("<div>loose<p>tied</p>adrift</div>", "loose\n\ntied\n\nadrift"),
    ("<p>low<br>high</p>", "low  \nhigh"), ("<p>a</p><hr><p>b</p>", "a\n\n---\n\nb"),
    ("<p><em>slack</em> and <strong> spring </strong>tide</p>", "*slack* and **spring** tide"),
    ("<p><b></b>empty <i> </i>marks</p>", "empty marks"),
    ("<p>see <code><a href=/x>mod_<b>x</b></a></code></p>", "see `mod_x`"),
    ("<p>run <code>a`b</code> now</p>", "run ``a`b`` now"),
    ("<p><del>three</del> two</p>", "~~three~~ two"),
    ("<p><b>EB</b><b>B</b><b> a</b> <i>n</i><i>d</i> <b>f</b></p>", "**EBB a** *nd* **f**"),
    ("<p>Ebb!<a href=/x>a</a>! <a href=/x>b</a><code>c</code><kbd>d</kbd></p>",
     "Ebb\\![a](https://bay.example/x)! [b](https://bay.example/x)`c` `d`"),
    ("<p>&amp;copy; &amp;#38; AT&amp;T &amp;c.</p>", "\\&copy; \\&#38; AT&T &c."),
    ("<p>Ebb<br>-----<br>+ 3 m<br><b>- 2</b><br>= 1</p>",
     "Ebb  \n\\-----  \n\\+ 3 m  \n**- 2**  \n= 1"),
    ("<p>~~~ Ebb ~~~</p><p>--- no rule</p><p>## 2</p><p>#2</p><p>&gt;b</p>",
     "\\~~~ Ebb ~~~\n\n--- no rule\n\n\\## 2\n\n#2\n\n\\>b"),
    ("<p>2 * 3 [sic] a_b &lt;x&gt;</p>", "2 \\* 3 \\[sic\\] a\\_b \\<x>"),
    ("<p># no heading</p><p>1. no list</p><p>- nor this</p>",
     "\\# no heading\n\n1\\. no list\n\n\\- nor this"),
    ("<ul><li>boats<ol start=3><li>ferry</li><li>dinghy</li></ol></li><li>oars</li></ul>",
     "- boats\n\n  3. ferry\n\n  4. dinghy\n\n- oars"),
    ("<ol><li><p>Moor.</p><p>Wait.</p></li><li><p>Row.</p></li></ol>",
     "1. Moor.\n\n   Wait.\n\n2. Row."),
    ("<blockquote><p>She said:</p><blockquote><p>Row!</p></blockquote></blockquote>",
     "> She said:\n\n> > Row!"),
    *((f"<dl><dt>ebb<dd><p>goes</p><p>out</p>{end}<dd>or slack{end}<dt>flood<dd>comes{end}</dl>",
       "ebb\n\n: goes\n\n  out\n\n: or slack\n\nflood\n\n: comes") for end in ("</dd>", "")),
    ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"), ("<p>foo<u>bar</u></p>", "foobar"),
    ("<table><tr><th>Tide<th>Time</tr><tr><td>low | ebb<td>6:40<br>am</tr>"
     "<tr><td colspan=2>none</tr></table>",
     "| Tide | Time |\n| --- | --- |\n| low \\| ebb | 6:40 am |\n| none |  |"),
    # Browsers show what is outside of cells above the table.
    ("<table><caption>tides</caption><tr>1. of<th>a<th>b</tr>May<tr><td>c<td>d</table>",
     "tides 1. of\n\nMay\n\n| a | b |\n| --- | --- |\n| c | d |"),
])  # fmt: skip
def test_blocks_and_marks(html: str, markdown: str) -> None:
    assert rendered(html) == markdown


@pytest.mark.parametrize(("language", "html"), [
    ("python", '<pre><code class="language-python">if low:\n    wait()</code></pre>'),
    ("python", '<pre class="lang-python">if low:\n    wait()</pre>'),
    ("python",
     '<div class="highlight highlight-source-python"><pre>if low:\n    wait()\n</pre></div>'),
    ("python", '<pre><code class="hljs-python">if low:\n    wait()</code></pre>'),
    ("python", '<pre lang="python">if low:\n    wait()</pre>'),
    ("python",
     '<pre class="language-python"><span>if low:<br></span><span>    wait()<br></span></pre>'),
    # Lines that are elements.
    ("", "<pre><div>if low:</div><div>    wait()</div></pre>"),
    ("", "<pre><div>if low:</div>\n<div>    wait()</div>\n</pre>"),
    ("", "<pre><ol><li>if low:<li>    wait()</ol></pre>"),
    ("", "<pre><div>if low:<br></div><span>    wait()</span></pre>"),
])  # fmt: skip
def test_code_keeps_its_lines_and_its_language(language: str, html: str) -> None:
    assert rendered(html) == f"```{language}\nif low:\n    wait()\n```"


@pytest.mark.parametrize(("rows", "header"), [
    ("<tr><td>low<td>6:40<tr><td>high<td>1:05", "|  |  |"),
    ("<tr><th>low<td>6:40<tr><th>high<td>1:05", "|  |  |"),
    ("<thead><tr><td>Tide<td>Time</thead><tr><td>low<td>6:40", "| Tide | Time |"),
    ("<tr><td><th>Time<tr><th>low<td>6:40", "|  | Time |"),
    ("<tr><th><th><tr><th>Tide<th>Time<tr><td>low<td>6:40", "| Tide | Time |"),
])  # fmt: skip
def test_only_header_cells_are_the_header_of_a_table(rows: str, header: str) -> None:
    lines = rendered(f"<table>{rows}</table>").split("\n")
    assert lines[:2] == [header, "| --- | --- |"]
    assert "| low | 6:40 |" in lines[2:]


@pytest.mark.parametrize("html", [
    "<table><tr><td><p>left</p></td><td><p>right</p></td></tr><tr><td>x</td></tr></table>",
    '<table role="presentation"><tr><td>left<td>right<tr><td>x</table>',
    "<table><tr><td>left</td><td><table><tr><td>right<tr><td>x</table></td></tr></table>",
])  # fmt: skip
def test_a_table_for_layout_is_only_its_cells(html: str) -> None:
    assert "|" not in rendered(html.replace("<td>x", "<td><div>x</div>"))


@pytest.mark.parametrize(("html", "markdown"), [
    ('<p>see <a href="tides.html">the tides</a>.</p>',
     "see [the tides](https://bay.example/news/tides.html)."),
    ('<p><a href="/a b(c)">x</a></p>', "[x](https://bay.example/a%20b%28c%29)"),
    ('<p><a href="javascript:void(0)">menu</a></p>', "menu"),
    ('<p><a href="http://[broken">x</a></p>', "x"), ("<p><a>nowhere</a></p>", "nowhere"),
    ('<a href="/x"><h2>The ferry</h2></a>', "## The ferry"),
    ('<p><img src="/f.jpg" alt="The ferry"></p>', "![The ferry](https://bay.example/f.jpg)"),
    ('<p><img src="data:image/gif;base64,R0" data-src="f.jpg"></p>',
     "![](https://bay.example/news/f.jpg)"),
    ('<p>x<img src="data:image/gif;base64,R0"></p>', "x"),
    ('<p><img srcset="s.jpg 1x, l.jpg 2x"></p>', "![](https://bay.example/news/s.jpg)"),
])  # fmt: skip
def test_links_and_images_are_absolute(html: str, markdown: str) -> None:
    assert rendered(html) == markdown


PARTS = [
    "/",
    "//",
    "../",
    "/..",
    "/.",
    "a.b",
    ";",
    "?",
    "#",
    "d=1",
    "%20",
    " ",
    "\n",
    "é",
    "(",
    "@",
]
ORIGINS = ["", "/", "http://e.f", "https://e.f:8/", "https://x@e.f/", "HTTP://e.f/", "http://["]
BASES = ["", BASE, "https://e.f", "http://e.f?x/y", "HTTP://e.f/", "http://u@e.f/a/b", "//e.f/a"]


@pytest.mark.parametrize("base", BASES)
def test_plain_references_are_resolved_as_all_others(
    base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    references = ["".join(parts) for parts in product(ORIGINS, PARTS, PARTS)]
    found = [head.absolute(reference, base) for reference in references]
    monkeypatch.setattr(head, "_before", lambda base, sign: None)
    assert found == [head.absolute(reference, base) for reference in references]
