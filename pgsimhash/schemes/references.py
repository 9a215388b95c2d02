"""Reads a page with the lists of references in it, which readers take for navigation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from pgsimhash.html import Article, article_of_tree
from pgsimhash.html.charset import clean_text, decode
from pgsimhash.html.links import base_url
from pgsimhash.html.markdown import render
from pgsimhash.html.names import HEADING_TAGS, LIST_TAGS, words
from pgsimhash.html.parse import parse
from pgsimhash.tokens import TOKENS_MAX

ITEMS_MAX: Final = 5_000
"""How many references of a page are looked at, the first ones."""

ITEMS_SIZE_MAX: Final = 1_000_000
"""And of how many characters together, an element within them counting as ten."""

_KNOWN: Final = 0.5
"""A reference with more than this of its windows of words in the text is there already."""

_WINDOW: Final = 3
_NAMES: Final = words(
    "references reflist refs bibliography biblio citations endnotes footnotes literature"
)
_ROLES: Final = words("doc-bibliography doc-endnotes")
_TITLES_TEXT: Final = """
    references, reference list, notes and references, bibliography, literature, literature cited,
    works cited, cited works, sources, endnotes, footnotes, notes, literatur, literaturverzeichnis,
    einzelnachweise, quellen, quellenverzeichnis, références, notes et références, bibliographie,
    referencias, bibliografía, riferimenti, bibliografia, note, referências, literatuur,
    referenties, referenser, przypisy, литература, список литературы, примечания,
    参考文献, 參考文獻, 参考资料, 脚注, 참고 문헌, 참고문헌, 각주, المراجع, संदर्भ
"""
_TITLES: Final = frozenset(" ".join(title.split()) for title in _TITLES_TEXT.split(","))
_SAID_MAX: Final = 200
_BLOCKS: Final = LIST_TAGS | words("div section aside table")
_ITEMS: Final = words("li dd dt p tr")
_BESIDE: Final = words("nav footer")
_PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_NUMBERING: Final = re.compile(r"^(?:\d[\d.]{0,9}|[ivx]{1,5}\.)\s+|\s*(?:\[[^\]]*\]|[:.])$")


def read_with_references(
    html: bytes | str, url: str | None = None, charset: str | None = None
) -> Article:
    """Return the main content of a page, and behind it the references that are not in it.

    A list of references is one by its class, its id or its role, or by the heading above it.

    Args:
        html: the page, as bytes or decoded.
        url: where it was found; relative URLs in it are resolved against this.
        charset: the label in the HTTP header, if there was one.

    Raises:
        PageError: the bytes are another format (``not_html``), there are too many elements
            (``too_large``), or the page stands in for another (``error_page``, ``blocked``,
            ``needs_script``).
    """
    root = parse(clean_text(html) if isinstance(html, str) else decode(html, charset))
    if root is None:
        return Article("", "")
    article = article_of_tree(root, url)
    items = list(_first(_items(root)))
    if not items:
        return article
    known = set(_windows(article.text))
    missing = [item for item in items if not _is_known(item, known)]
    added = render(missing, base_url(root, url))
    if not added.plain.strip():
        return article
    return Article(
        f"{article.markdown}\n\n{clean_text(added.markdown)}".strip(),
        f"{article.text}\n{added.plain}",
        article.title,
        article.canonical_url,
        article.language,
        article.structure,
    )


def _first(items: Iterator[HtmlElement]) -> Iterator[HtmlElement]:
    size = 0.0
    for item in islice(items, ITEMS_MAX):
        size += sum(map(len, item.itertext())) + 10 * item.xpath("count(.//*)")
        if size > ITEMS_SIZE_MAX:
            return
        yield item


def _items(root: HtmlElement) -> Iterator[HtmlElement]:
    """Yield the innermost items of all lists of references, or a list without any whole."""
    for found in _lists(root):
        items = [
            node
            for node in found.iter(*_ITEMS)
            if next(node.iterdescendants(*_ITEMS), None) is None and node is not found
        ]
        yield from items or [found]


def _lists(root: HtmlElement) -> Iterator[HtmlElement]:
    """Yield the outermost lists of references in order, each once."""
    inside: set[HtmlElement] = set()
    headed = False
    for node in root.iter("*"):
        tag = node.tag
        if (inside and node.getparent() in inside) or tag in _BESIDE:
            inside.add(node)
        elif tag in HEADING_TAGS:
            headed = _heads_references(node)
        elif (headed and tag in LIST_TAGS) or (tag in _BLOCKS and _is_named_so(node)):
            inside.add(node)
            yield node


def _heads_references(heading: HtmlElement) -> bool:
    if next(islice(heading.iter(), _SAID_MAX, None), None) is not None:
        return False
    said = ""
    for piece in heading.itertext():
        said += f" {piece}"
        # Headings may be nested, and hold all of a page.
        if len(said) > _SAID_MAX:
            return False
    text = " ".join(said.split()).lower()
    while (bare := _NUMBERING.sub("", text)) != text:
        text = bare
    return text in _TITLES


def _is_named_so(node: HtmlElement) -> bool:
    if node.get("role") in _ROLES:
        return True
    names = f"{node.get('class', '')[:1000]} {node.get('id', '')[:1000]}"
    return not _NAMES.isdisjoint(part.lower() for part in _PART.findall(names))


def _is_known(item: HtmlElement, known: set[str]) -> bool:
    windows = list(_windows(" ".join(item.itertext())))
    return sum(window in known for window in windows) > _KNOWN * len(windows) or not windows


def _windows(text: str) -> Iterator[str]:
    tokens = [found[0] for found in islice(re.finditer(r"\w+", text.lower()), TOKENS_MAX)]
    if 0 < len(tokens) < _WINDOW:
        yield " ".join(tokens)
    for start in range(len(tokens) - _WINDOW + 1):
        yield " ".join(tokens[start : start + _WINDOW])
