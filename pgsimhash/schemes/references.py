"""Read a page including references, captions, tables and quotes.

The document of the interoperable scheme includes figure captions, the contents of tables, quoted
text and lists of references. They are shown at any weight.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.html import Article, article_of_tree
from pgsimhash.html.blocks import BESIDE_TAGS, HEADING_TAGS, LIST_TAGS, words
from pgsimhash.html.charset import clean_utf8
from pgsimhash.html.markdown_syntax import is_data_table
from pgsimhash.html.parse import parse

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
_HEADING_MAX: Final = 200
_BLOCKS: Final = LIST_TAGS | words("div section aside table")
_QUOTED: Final = words("figcaption caption blockquote")
_NEVER_IN: Final = words("nav footer")
_PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_NUMBERING: Final = re.compile(r"^(?:\d[\d.]{0,9}|[ivx]{1,5}\.)\s+|\s*(?:\[[^\]]*\]|[:.])$")


def read_with_references(
    html: bytes | str, url: str | None = None, charset: str | None = None
) -> Article:
    """Return the main content of a page with all references, captions, tables and quotes.

    Class, id, role or the heading above identify a list of references. Layout tables are excluded.
    So is everything in a ``nav`` or ``footer``. Other elements beside the text include only
    references. The arguments and errors are those of :func:`pgsimhash.html.read_article`.
    """
    root = parse(clean_utf8(html, charset))
    if root is None:
        return Article("", "")
    return article_of_tree(root, url, also=list(_included(root)))


def _included(root: HtmlElement) -> Iterator[HtmlElement]:
    """Yield the outermost elements that the scheme includes, in order."""
    walker = etree.iterwalk(root, events=("start", "end"))
    headed = False
    beside = 0
    for event, node in walker:
        tag = node.tag
        if event == "end":
            beside -= tag in BESIDE_TAGS
            continue
        beside += tag in BESIDE_TAGS
        if tag in _NEVER_IN:
            walker.skip_subtree()
        elif tag in HEADING_TAGS:
            headed = _heads_references(node)
        elif (
            (headed and tag in LIST_TAGS)
            or (tag in _BLOCKS and _is_named_so(node))
            or (not beside and (tag in _QUOTED or (tag == "table" and is_data_table(node))))
        ):
            walker.skip_subtree()
            yield node


def _heads_references(heading: HtmlElement) -> bool:
    if next(islice(heading.iter(), _HEADING_MAX, None), None) is not None:
        return False
    title = ""
    for piece in heading.itertext():
        title += f" {piece}"
        # Headings may be nested, and contain the whole page.
        if len(title) > _HEADING_MAX:
            return False
    text = " ".join(title.split()).lower()
    while (bare := _NUMBERING.sub("", text)) != text:
        text = bare
    return text in _TITLES


def _is_named_so(node: HtmlElement) -> bool:
    if node.get("role") in _ROLES:
        return True
    names = f"{node.get('class', '')[:1000]} {node.get('id', '')[:1000]}"
    return not _NAMES.isdisjoint(part.lower() for part in _PART.findall(names))
