"""The C extension computes what the Python code computes, bit by bit.

Without the extension these tests are skipped, unless PGSIMHASH_TEST_NATIVE is "required".
PGSIMHASH_TEST_PAGES names folders with more pages, separated as in PATH.
"""

import json
import os
import random
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from pgsimhash import PageError
from pgsimhash.html import Article, implementation, native
from pgsimhash.html.blocks import MARKS
from pgsimhash.html.markup import repaired_source
from pgsimhash.schemes import get_scheme
from tests.conftest import ROOT
from tests.html.fuzzed_pages import ATTRIBUTES, CHARSETS, PAGES, TAGS, TEXTS
from tests.html.hostile_pages import KINDS as HOSTILE_KINDS
from tests.html.hostile_pages import page
from tests.html.made_data import KINDS, around, invented, pair_of
from tests.html.made_streams import DATA, ROTATING, TABLES, Stream
from tests.html.texts import TEXT, parsed_body

SCHEME = get_scheme("pgsimhash-article-1")
URL = "https://bay.example/ledger"
EXAMPLES = sorted((ROOT / "examples" / "pages").rglob("*.html"))
FOLDERS = [*map(Path, filter(None, os.environ.get("PGSIMHASH_TEST_PAGES", "").split(os.pathsep)))]
VECTORS = ROOT / "tests" / "vectors"
MUTATED = int(os.environ.get("PGSIMHASH_TEST_MUTATED", "2000"))

pytestmark = pytest.mark.skipif(
    implementation() == "Python" and os.environ.get("PGSIMHASH_TEST_NATIVE") != "required",
    reason="the C extension is not built, or turned off",
)


def read(html: str | bytes, charset: str | None = None) -> tuple[object, Article | None]:
    """What is read of a page, or its error; and its article."""
    try:
        article = SCHEME.extract(html, URL, charset)
        vote = SCHEME.vote(article)
    except PageError as error:
        return str(error), None
    head = (article.title, article.canonical_url, article.language, article.structure)
    return (vote, head, article.text, article.markdown), article


def check(html: str | bytes, charset: str | None = None) -> str:
    """Compare the two, and return how the page was read, or nothing for an error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "is_used", False)
        expected, _ = read(html, charset)
    found, article = read(html, charset)
    assert found == expected
    if article is None:
        return ""
    return "Python" if article.native is None else "C"


def check_all(pages: Iterable[str | bytes]) -> Counter[str]:
    return Counter(map(check, pages))


def test_vectors_and_example_pages() -> None:
    cases = [
        case["html"]
        for kind in ("reading", "weights")
        for path in (VECTORS / kind).glob("pgsimhash-article-*.json")
        for case in json.loads(path.read_text(encoding="utf-8"))
    ]
    assert check_all(cases)["C"] == len(cases) > 0
    ways = check_all(path.read_bytes() for path in EXAMPLES)
    assert ways["C"] >= len(EXAMPLES) - 1


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_pages_of_a_folder(folder: Path) -> None:
    ways = check_all(path.read_bytes() for path in sorted(folder.rglob("*.html")))
    assert ways["Python"] <= ways.total() / 50


@pytest.mark.parametrize("kind", KINDS)
def test_data_pages(kind: str) -> None:
    rng = random.Random(f"{kind} in C")
    words = invented(rng, 500)
    pages = [around(data.markup(), site) for site in range(3) for data in pair_of(rng, kind, words)]
    assert check_all(pages)["C"] == len(pages)


def test_named_parts_and_data_without_numbers() -> None:
    made = Stream(3)
    names = (*ROTATING, "ad-slot", "no-ads", "adTitle", "content-sidebar", "shareButtons x", "c7")
    pages = [next(made.story(100, 2, 20, name)) for name in names]
    pages += [page for kind in ("comments", "related") for page in made.below(kind, 5)]
    pages += [next(made.data(kind, 150, 200)) for kind in DATA]
    pages += [next(made.table(kind)) for kind in TABLES]
    pages += [next(made.beside(65)), *(next(made.short(kind)) for kind in ("list", "cart"))]
    assert check_all(pages)["C"] == len(pages)


@pytest.mark.parametrize("kind", HOSTILE_KINDS)
def test_hostile_pages(kind: str) -> None:
    check(page(kind, 20_000), HOSTILE_KINDS[kind].charset)


PARTS = [
    *(" 12:30 ", "7/5/2016", "1.2.2020", " 2019 2020 ", " 3 days ago ", "12 views", "12:34:567"),
    *("updated 12 march", "\xa9", "copyright", "\u0661\u0662", "\xb2", "123:45:6", "1-2-3-4-5"),
    *("<p hidden>", "<p style='DISPLAY : none'>", "<p style='a:b;visibility:\xa0hidden'>x"),
    *("<a href='tel:1'>030 12345</a>", "<a href=fax:1><i>x</i> 9 8</a>", "+49 (30) 123-45 67 "),
    *("+1 23", "Fax 12 34 56", "phone 12 pro 128", "<div class='ad box'>", "<div id=comments>x"),
    *("<p>ad</p><div class=popup role=dialog>", "<div role=dialog class=withAds>", "tel 1 2 3 4 5"),
    *("<div class='Hidden hidden'>y", "<p class='md:block hidden'>", "<div id=S:1f hidden>q"),
    *("<p role=Navigation>", "<p style='d\u0131splay:none'>", "<svg><title>x</title></svg>"),
    *("<table><tr><td>1.2.2020<td>b<tr><td>c<td>12:30</table>", "<pre><div>a</div>b<br>c</pre>"),
    *("<p aria-expanded=true><a>b</a> c", "<a style='display:none;Display : block' hidden>z</a>"),
    *("<figure><figcaption>z</figcaption></figure>", "<link rel=Canonical href=/b>", "<title>"),
]


STYLES = [
    *("display", "Visibility", "x-display", ":", " : ", "none", "hidden", "NONE", "block", "a-b"),
    *("animation-name", ";Animation-Name:none"),
    *(";", "; ", " ", "!important", " ! IMPORTANT ", "!", "9", "\xa0", "\u0131", "\t", "color:red"),
]


def test_styles_hide_alike() -> None:
    rng = random.Random("styles")
    for _ in range(100):
        styles = ("".join(rng.choices(STYLES, k=rng.randrange(12))) for _ in range(20))
        kinds = ("<p style='{}'>x", "<b hidden style='{}'>y</b>", "<p style='display:none;{}'>z")
        page = "".join(rng.choice(kinds).format(style) for style in styles)
        assert check(f"<p>{TEXT}{page}") == "C"


def test_the_first_500_000_words_and_signs_count() -> None:
    rng = random.Random(0)
    parts = ["<p>x", "<a href=/>y</a>", "\xa9 ", "12:30 ", "copyright 7 ", "<a href=tel:1>2 3</a>"]
    page = "<p>" + "x " * 480_000 + "".join(rng.choice(parts) for _ in range(20_000))
    assert check(page) == "C"


RANGES = [(0x20, 0x3100), (0x3000, 0xD800), (0xE000, 0x30000)]


def mutated(rng: random.Random, html: bytes) -> bytes:
    """A page with some bytes, characters, tags and parts deleted, changed, repeated or added."""
    page = bytearray(html)
    for _ in range(rng.choice([1, 2, 5, 20])):
        at, other = rng.randrange(len(page) + 1), rng.randrange(len(page) + 1)
        added = rng.choice([
            f"<{rng.choice(TAGS)} {rng.choice(ATTRIBUTES)}>", f"</{rng.choice(TAGS)}>",
            rng.choice(TEXTS), rng.choice(PARTS), chr(rng.randrange(*rng.choice(RANGES))),
        ]).encode("utf-8", "replace")  # fmt: skip
        kind = rng.randrange(8)
        if kind == 0:
            del page[at : at + rng.randrange(40)]
        elif kind == 1:
            page[at:at] = page[other : other + rng.randrange(400)]
        elif kind == 2:
            page[at : at + 1] = bytes([rng.randrange(256)])
        else:
            page[at:at] = added
    return bytes(page)


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2, 3))])
def test_mutated_pages(part: int) -> None:
    rng = random.Random(f"mutated {part}")
    pages = [html for html in map(Path.read_bytes, EXAMPLES) if len(html) < 30_000]
    ways = check_all(mutated(rng, rng.choice(pages)) for _ in range(MUTATED // 4))
    assert ways["C"] > 0.8 * ways.total()


@pytest.mark.long
@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(PAGES, CHARSETS)
def test_fuzzed_pages(html: str | bytes, charset: str | None) -> None:
    check(html, charset)


WORDS = [
    *("word", "two words", " lead", "trail ", "a*b", "_x_", "`tick`", "``", "[br]", "x!", " "),
    *("&amp;amp;", "&amp;#35;", "&amp;x", "&lt;b&gt;", "\xa0", "\u3000z", "\x85y", "\u2028", "\n"),
    *("# not", "1. one", "\u0661. x", "- dash", "+", "=", "===", "~~~", "> q", "| p |", "\\", "]("),
]
INLINE = ["a href=/x", "a href=", "a href='javascript:1'", "u", *MARKS]
BLOCKS = [
    *("p", "div", "ul", "ol", "li", "h2", "blockquote", "table", "tr", "td", "th", "caption", "dd"),
    *("pre", "thead", "table role=none", "td colspan=3", "ol start=7", "pre class=lang-x", "svg"),
]
VOID = ["br", "img src=/i.png alt='a*b'", "img", "img src=data:x", "hr", "wbr"]


def made_markup(rng: random.Random, depth: int) -> str:
    parts = []
    for _ in range(rng.randrange(1, 6)):
        kind = rng.random()
        if kind < 0.4 or not depth:
            parts.append(rng.choice(WORDS))
        elif kind < 0.5:
            parts.append(f"<{rng.choice(VOID)}>")
        else:
            tag = rng.choice(INLINE if rng.random() < 0.6 else BLOCKS)
            end = f"</{tag.split()[0]}>" if rng.random() < 0.97 else ""
            parts.append(f"<{tag}>{made_markup(rng, depth - 1)}{end}")
    return "".join(parts)


def test_inline_elements_and_tables() -> None:
    rng = random.Random("markup")
    for _ in range(500):
        markup = (made_markup(rng, depth) for depth in (4, 3, 2))
        content = f"<p>{TEXT}</p>".join(("<main><article><h1>A ledger</h1>", *markup, ""))
        assert check(content) == "C"


def test_links_below_a_url_with_a_lone_surrogate(monkeypatch: pytest.MonkeyPatch) -> None:
    html, url = f"<p>{TEXT} <a href=x>y</a>", "http://a.example/\udc80/"
    found = SCHEME.extract(html, url, None).markdown
    monkeypatch.setattr(native, "is_used", False)
    assert found == SCHEME.extract(html, url, None).markdown


def test_threads_read_at_once() -> None:
    pages = [path.read_bytes() for path in EXAMPLES] * 4
    expected = [read(html)[0] for html in pages]
    with ThreadPoolExecutor(4) as threads:
        assert [found for found, _ in threads.map(read, pages)] == expected


SOURCES = [
    *("<script", "<STYLE a=b", "<title", "<textarea ", "</Title>", "</script>", "</textarea>"),
    *("/>", ">", "</body", "</BODY>", "</html >", "</bodyx>", "<br/>", "<stop/>", "<", "x", "Ж"),
    *("<?xml version='1.0'?>", "<![CDATA[<p>]]>", "y" * 2000),
    *("</svg>", "<title>", "<Noscript>", "</noscript>", "<p>", '"', "<!--", "</titley"),
]


def test_sources_are_repaired_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random("sources")
    sources = ["".join(rng.choices(SOURCES, k=rng.randrange(12))).encode() for _ in range(5000)]
    found = [repaired_source(source) for source in sources]
    monkeypatch.setattr(native, "is_used", False)
    assert found == [repaired_source(source) for source in sources]


def test_the_events_of_a_changed_tree_are_left_to_python() -> None:
    for removed in ("h1", "p", "i", "ul"):
        body = parsed_body(f"<h1>A ledger</h1><p>{TEXT} <i>x</i> y</p><ul><li>{TEXT}</ul>")
        page = native.read(body)
        assert page is not None
        functions = (str, str, str, str, bool)
        assert page.events(body, functions, 100)
        assert page.events(body, functions, 1) == []
        next(body.iter(removed)).drop_tree()
        assert page.events(body, functions, 100) is None
        assert page.events(parsed_body("<p>"), functions, 100) is None


def test_other_weights_and_texts_of_an_article() -> None:
    """What the extension does not return is read again."""
    html = EXAMPLES[0].read_bytes()
    article = SCHEME.extract(html, URL, None)
    assert article.native is not None
    assert article.words is not None
    assert article.words.length == SCHEME.vote(article).tokens
    assert len(SCHEME.weigh([], article)) == SCHEME.vote(article).features
