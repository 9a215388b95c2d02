"""Generate pages from real ones, for kinds that labelled sets lack.

- index: the text of a page is replaced by a list of links. Two lists in one template differ; the
  same list with another footer or markup does not.
- footer: two short pages get the same footer, or versions of one page get two different ones.
- data: prose and a table, a list or code in one template. Pages with different data differ; the
  same data with another footer, other class names or few changed tokens do not.
- small sites: bench/made_sites.py.

Everything depends on a seed, so the pages are reproducible.
"""

import json
import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from zlib import crc32

import lxml.html
from lxml import etree
from lxml.html import HtmlElement as Element

from pgsimhash.hashing.tokens import tokenize
from pgsimhash.html.parse import clean_utf8

sys.path.append(str(Path(__file__).parents[1]))

from bench.made_sites import SITES as SMALL_SITES
from tests.html.made_data import KINDS, number, pair_of

FEW = 14
MANY_OF_MIXED = 200
"""The number of pages per kind that are generated from a source: sources of many sites give more.
"""
SHORT = 160
PROSE_AROUND = 80
"""With more prose than this in its boilerplate, a page is not an index with any list."""
_WRITTEN = json.loads(Path(__file__).with_name("made_phrases.json").read_text(encoding="utf-8"))
SITES: list[str] = _WRITTEN["sites"]
PHRASES = {language: SimpleNamespace(**texts) for language, texts in _WRITTEN["phrases"].items()}
"""Invented phrases of boilerplate by language; {site} and {year} are placeholders."""
_RUSSIAN = re.compile("[\u0400-\u04ff]")
_CHINESE = re.compile("[\u3400-\u9fff]")


class Real(NamedTuple):
    """A labelled page: its source, its HTML, its main text and the text's element."""

    page: str
    source: str
    html: bytes
    text: str
    xpath: str


class Made(NamedTuple):
    """A generated page."""

    page: str
    html: bytes


class MadePair(NamedTuple):
    """Two pages, at least one of them generated."""

    a: str
    b: str
    near: bool
    kind: str


class MadeSet(NamedTuple):
    """Generated pages and their pairs."""

    pages: list[Made]
    pairs: list[MadePair]


def tree(html: bytes) -> Element | None:
    """Parse a page; None if lxml cannot."""
    text = re.sub(r"^\s*<\?xml[^>]*>", "", clean_utf8(html).decode())
    try:
        root = lxml.html.document_fromstring(text)
    except (etree.ParserError, ValueError):
        return None
    return root if root.find("body") is not None else None


def body_of(root: Element) -> Element:
    """The body of a page that tree() returned."""
    body = root.find("body")
    assert body is not None
    return body


def written(root: Element) -> bytes:
    head = b'<!doctype html><meta charset="utf-8">'
    return head + etree.tostring(root, method="html", encoding="utf-8")


def main_element(root: Element, real: Real) -> Element | None:
    """The element of the main text: as labelled, else the smallest with most of it."""
    if real.xpath.startswith("/"):
        found = root.xpath(real.xpath)
        return found[0] if found and found[0].tag != "body" else None
    wanted = set(tokenize(real.text))
    if len(wanted) < 10:
        return None
    at = body_of(root)
    while True:
        inner = [
            child
            for child in at
            if isinstance(child.tag, str)
            and len(wanted & set(tokenize(child.text_content()))) > 0.8 * len(wanted)
        ]
        if not inner or inner[0].tag in ("p", "ul", "table", "tr", "td", "li"):
            return at if at.tag != "body" else None
        at = inner[0]


def phrases_of(root: Element, text: str) -> SimpleNamespace:
    """The phrases of the page's language, by default English."""
    start = text[:2000]
    if len(_CHINESE.findall(start)) > len(start) / 4:
        return PHRASES["zh"]
    if len(_RUSSIAN.findall(start)) > len(start) / 4:
        return PHRASES["ru"]
    return PHRASES.get((root.get("lang") or "en")[:2].lower(), PHRASES["en"])


class Maker:
    """Random markup for one page."""

    def __init__(
        self, rng: random.Random, phrases: SimpleNamespace, headlines: Sequence[str]
    ) -> None:
        self.rng = rng
        self.phrases = phrases
        self.headlines = headlines
        self.site = rng.choice(SITES)
        self.year = rng.randrange(2008, 2026)

    def fill(self, texts: Sequence[str]) -> str:
        return self.rng.choice(texts).format(site=self.site, year=self.year)

    def attributes(self, *names: str) -> str:
        """A class or an id: a meaningful one, a meaningless one, or none."""
        style = self.rng.random()
        if style < 0.3:
            return ""
        name = self.rng.choice(names) if style < 0.7 else f"c{self.rng.randrange(16**5):05x}"
        return f' {self.rng.choice(("class", "class", "id"))}="{name}"'

    def box(self, inner: str, *names: str, tags: Sequence[str] = ("div",)) -> str:
        tag = self.rng.choice(tags)
        return f"<{tag}{self.attributes(*names)}>{inner}</{tag}>"

    def link(self, text: str) -> str:
        return f'<a href="/{crc32(text.encode()):x}">{escape(text)}</a>'

    def links(self, texts: Iterable[str], form: str) -> str:
        linked = [self.link(text) for text in texts]
        match form:
            case "ul" | "ol":
                return f"<{form}>{''.join(f'<li>{a}</li>' for a in linked)}</{form}>"
            case "br":
                return f"<div>{'<br>'.join(linked)}</div>"
            case "table":
                return f"<table>{''.join(f'<tr><td>{a}</td></tr>' for a in linked)}</table>"
            case "h3":
                return "".join(f'<div class="entry"><h3>{a}</h3></div>' for a in linked)
            case "tree":
                items = "".join(f'<li class="level1"><p>{a}</p></li>' for a in linked)
                return f'<div class="tree-wrapper"><ul>{items}</ul></div>'
            case "dated":
                items = "".join(
                    f"<li>{a} <span>{self.rng.randrange(1, 29)} Mar {self.year}</span></li>"
                    for a in linked
                )
                return f"<ul>{items}</ul>"
        return "".join(f"<{form}>{a}</{form}>" for a in linked)

    def some(self, low: int, high: int) -> list[str]:
        return [self.rng.choice(self.headlines) for _ in range(self.rng.randrange(low, high))]

    def paragraphs(self, text: str) -> str:
        """Text as one paragraph, or split into sentences."""
        parts = [text] if self.rng.random() < 0.5 else re.split(r"(?<=[.?!]) ", text)
        tag = self.rng.choice(("p", "p", "div", "small", "li"))
        return "".join(f"<{tag}>{part}</{tag}>" for part in parts)

    def footer(self) -> str:
        inner = self.paragraphs(self.fill(self.phrases.footers))
        if self.rng.random() < 0.3:
            inner += self.links(self.phrases.menu[-4:], self.rng.choice(("ul", "br", "p")))
        tags = ("div", "div", "footer", "center", "section")
        return self.box(inner, "footer", "copyright", "bottom", "legal", "page-end", tags=tags)

    def sidebar(self) -> str:
        """The navigation of a site: long, and always marked as such."""
        tag, name = self.rng.choice(
            (("nav", ""), ("aside", ""), ("div", "sidebar"), ("div", "nav"))
        )
        mark = f' class="{name}"' if name else ""
        return f"<{tag}{mark}>{self.links(self.some(30, 60), 'ul')}</{tag}>"

    def notice(self) -> str:
        return self.box(f"<p>{self.fill(self.phrases.notices)}</p>", "notice", "alert", "top")


def insert(parent: Element, at: int, markup: str) -> None:
    parent.insert(at, lxml.html.fragment_fromstring(markup))


def before(element: Element, markup: str) -> None:
    element.addprevious(lxml.html.fragment_fromstring(markup))


def headlines(texts: Iterable[str], rng: random.Random) -> list[str]:
    """Runs of two to eight words of the texts, or of characters in scripts without spaces."""
    drawn: list[str] = []
    for text in texts:
        words = re.findall(r"[\u3400-\u9fff]{2,9}|\w[\w'-]*", text)[:3000]
        at = 0
        while at + 8 < len(words) and len(drawn) < 5000:
            size = rng.randrange(2, 9)
            drawn.append(" ".join(words[at : at + size]))
            at += size
    return drawn


def prose_around(root: Element, main: Element) -> int:
    """Return the number of words outside the main element and outside links."""
    linked = [element for element in root.iter("a") if main not in element.iterancestors()]
    outside = len(tokenize(body_text(root))) - len(tokenize(body_text(main)))
    return outside - sum(len(tokenize(element.text_content())) for element in linked)


def body_text(element: Element) -> str:
    """Return the text in an element, without scripts and styles."""
    unread = ("script", "style", "noscript", "template", "head")
    return " ".join(
        text
        for text in element.xpath(
            f".//text()[not({' or '.join(f'ancestor::{tag}' for tag in unread)})]"
        )
    )


def indexes(real: Real, pool: Sequence[str], seed: int) -> Iterator[Made]:
    """Three index pages in the page's template: a, b with another list, c like a with changes."""
    root = tree(real.html)
    main = None if root is None else main_element(root, real)
    if root is None or main is None or prose_around(root, main) > PROSE_AROUND:
        return
    rng = random.Random(seed)
    count = rng.choice((6, 8, 10, 10, 12, 15))
    forms = ("ul", "ul", "ul", "tree", "ol", "br", "p", "div", "table", "h3", "dated")
    form = rng.choice(forms)
    other = form if rng.random() < 0.6 else rng.choice(("ul", "div", "p"))
    first, second = ([rng.choice(pool) for _ in range(count)] for _ in range(2))
    third = list(first)
    if rng.random() < 0.4:
        at = rng.randrange(count)
        third[at] = " ".join((*third[at].split()[:-1], rng.choice(pool).split()[-1]))
    heads = [f"<h1>{escape(rng.choice(pool))}</h1>" for _ in range(2)]
    match rng.choice(("same", "own", "own", "none")):
        case "same":
            heads = heads[:1] * 2
        case "none":
            heads = ["", ""]
    intro = f"<p>{escape(rng.choice(pool))}:</p>" if rng.random() < 0.3 else ""
    with_footer, with_notice, with_tree = (
        rng.random() < 0.8,
        rng.random() < 0.15,
        rng.random() < 0.4,
    )
    shared = rng.randrange(1 << 30)
    for name, items, markup, head in (
        ("a", first, form, heads[0]),
        ("b", second, form, heads[1]),
        ("c", third, other, heads[0]),
    ):
        page = replaced(
            real,
            pool,
            # a and b share footer, notice and tree; c has another footer.
            (shared + (name == "c"), shared),
            f"index-{name}",
            (f"<div>{head}{intro}", items, markup),
            (with_tree, with_notice, with_footer),
        )
        if page is None:
            return
        yield page


def replaced(
    real: Real,
    pool: Sequence[str],
    seeds: tuple[int, int],
    name: str,
    content: tuple[str, Sequence[str], str],
    additions: tuple[bool, bool, bool],
) -> Made | None:
    """The page with other content, and with a sidebar, a notice and a footer, if wanted."""
    root = tree(real.html)
    main = None if root is None else main_element(root, real)
    if root is None or main is None or main.getparent() is None:
        return None
    body = body_of(root)
    maker, beside = (
        Maker(random.Random(seed), phrases_of(root, real.text), pool) for seed in seeds
    )
    for child in list(main):
        main.remove(child)
    main.text = None
    markup, items, form = content
    insert(main, 0, f"{markup}{maker.links(items, form) if form else ''}</div>")
    with_tree, with_notice, with_footer = additions
    if with_tree:
        before(main, beside.sidebar())
    if with_notice:
        insert(body, 0, beside.notice())
    if with_footer:
        insert(body, len(body), maker.footer())
    return Made(f"{real.page}-{name}", written(root))


def data_pages(real: Real, pool: Sequence[str], seed: int) -> Iterator[Made]:
    """Three data pages in the page's template: a, b with other data, c like a with changes."""
    root = tree(real.html)
    main = None if root is None else main_element(root, real)
    if root is None or main is None or prose_around(root, main) > PROSE_AROUND:
        return
    rng = random.Random(seed)
    words = [word for text in pool for word in text.split() if not word.isdecimal()]
    first, second = pair_of(rng, rng.choice(tuple(KINDS)), words)
    # Like the first, with a share of the tokens replaced.
    tokens = list(first.tokens)
    for at in rng.sample(range(len(tokens)), int(rng.choice((0.0, 0.0, 0.05)) * len(tokens))):
        tokens[at] = number(rng) if tokens[at].isdecimal() else rng.choice(words)
    third = replace(first, tokens=tokens)
    shared = rng.randrange(1 << 30)
    with_footer, with_tree = rng.random() < 0.5, rng.random() < 0.3
    for name, data in (("a", first), ("b", second), ("c", third)):
        page = replaced(
            real,
            pool,
            (shared + (name == "c"), shared),
            f"data-{name}",
            (f"<div>{data.markup()}", (), ""),
            (with_tree, False, with_footer),
        )
        if page is None:
            return
        yield page


def framed(real: Real, phrases_seed: int, pool: Sequence[str]) -> Made | None:
    """The page with a footer, and sometimes a notice, depending on the seed."""
    root = tree(real.html)
    if root is None:
        return None
    maker = Maker(random.Random(phrases_seed), phrases_of(root, real.text), pool)
    body = body_of(root)
    if maker.rng.random() < 0.2:
        insert(body, 0, maker.notice())
    insert(body, len(body), maker.footer())
    return Made(f"{real.page}-footer-{phrases_seed}", written(root))


def make(reals: Sequence[Real], pairs: Sequence[tuple[str, str, bool]], seed: int) -> MadeSet:
    """Generate pages from one source; ``pairs`` are its labelled ones (a, b, near)."""
    rng = random.Random(seed)
    pool = headlines((real.text for real in reals), rng)
    made = MadeSet([], [])
    if len(pool) < 100:
        return made
    by_page = {real.page: real for real in reals}
    many = MANY_OF_MIXED if len({real.html[:300] for real in reals}) > 100 else FEW
    for real in rng.sample(reals, min(many, len(reals))):
        pages = list(indexes(real, pool, rng.randrange(1 << 30)))
        if len(pages) == 3:
            made.pages.extend(pages)
            made.pairs.append(MadePair(pages[0].page, pages[1].page, False, "made-index"))
            made.pairs.append(MadePair(pages[0].page, pages[2].page, True, "made-index"))
    of_data = random.Random(seed + 1)
    for real in of_data.sample(reals, min(many, len(reals))):
        pages = list(data_pages(real, pool, of_data.randrange(1 << 30)))
        if len(pages) == 3:
            made.pages.extend(pages)
            made.pairs.append(MadePair(pages[0].page, pages[1].page, False, "made-data"))
            made.pairs.append(MadePair(pages[0].page, pages[2].page, True, "made-data"))
    of_sites = random.Random(seed + 2)
    for kind, make_pages in SMALL_SITES.items():
        for at in range(many // 4 if many == MANY_OF_MIXED else FEW // 2):
            name = f"{reals[0].page}-{kind}-{at}"
            htmls = enumerate(make_pages(of_sites, pool))
            made.pages.extend(Made(f"{name}{n}", html.encode()) for n, html in htmls)
            made.pairs.append(MadePair(f"{name}0", f"{name}1", False, kind))
            made.pairs.append(MadePair(f"{name}0", f"{name}2", True, kind))
    # These draws keep the footers below those of the shipped coefficients.
    for _ in rng.sample(reals, min(many, len(reals))):
        rng.randrange(1 << 30), rng.randrange(1 << 30)
    known = {page.page for page in made.pages}
    short = [
        pair
        for pair in pairs
        if all(name in by_page and len(by_page[name].text.split()) < SHORT for name in pair[:2])
    ]
    seeds = [rng.randrange(1 << 30) for _ in range(3)]
    for a, b, near in rng.sample(short, min(FEW * 3, len(short))):
        drawn = rng.sample(seeds, 2) if near else [rng.choice(seeds)] * 2
        first, second = (
            framed(by_page[name], at, pool) for name, at in zip((a, b), drawn, strict=True)
        )
        if first is None or second is None:
            continue
        made.pages.extend(page for page in (first, second) if page.page not in known)
        known |= {first.page, second.page}
        made.pairs.append(MadePair(first.page, second.page, near, "made-footer"))
    return made
