"""Read and tokenize a page for the interoperable scheme.

Its document includes figure captions, the contents of tables, quoted text and lists of references.
They are shown at any weight.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.hashing.tokens import TOKENS_MAX
from pgsimhash.html.article import Article, article_of_tree
from pgsimhash.html.blocks import BESIDE_TAGS, HEADING_TAGS, LIST_TAGS, words
from pgsimhash.html.markdown import is_data_table
from pgsimhash.html.parse import clean_utf8, parse
from pgsimhash.pages.selectors import NO_SELECTORS, Selectors

RUN_MAX: Final = 256  # characters of a run of letters that count; longer runs are slow to hash
CHARS_MAX: Final = 1_000_000  # characters of a text that count
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
_PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_NUMBERING: Final = re.compile(r"^(?:\d[\d.]{0,9}|[ivx]{1,5}\.)\s+|\s*(?:\[[^\]]*\]|[:.])$")

_CATEGORIES: Final = frozenset({"Ll", "Lu", "Lt", "Lo", "Lm", "Mn", "Nd", "Pc"})
# The letters of the categories above.
_LETTER: Final = re.compile(r"[^\W\d_]")
# Unicode's Default_Ignorable_Code_Point: soft hyphens, zero-width and directional characters.
_IGNORABLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_HOST: Final = r"(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?![a-z0-9-])"
_URL: Final = (
    rf"(?:[a-z][a-z0-9+.-]{{0,31}}://|www\.|{_HOST}(?::\d{{1,5}})?/)"
    r"""[^\s<>"\u3001\u3002\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]+"""
)
_IDENTIFIER: Final = re.compile(
    r"""
    (?=[a-z0-9])(?<![a-z0-9_])
    (?: (?:doi|isbn|issn|arxiv|pmid|pmcid|hdl|orcid|uri|url)[:\s]{0,3}
        (?=[a-z][a-z0-9+.-]{0,31}://|www\.) )?
    (?: <URL>
      | [a-z0-9._%+-]{1,64}@<HOST>
      | (?:doi[:\s]{0,3}|info:doi/|(?:dx\.)?doi\.org/)? 10\.\d{4,9}/[^\s<>"]+
      | (?:urn:[a-z0-9-]{1,32}:|hdl:|mailto:|ark:/?\d) [^\s<>"]+
      | arxiv[:\s]{1,3} (?: [a-z-]{1,20}(?:\.[a-z]{2})?/\d{7} | \d{4}\.\d{4,5} ) (?:v\d{1,3})?
      | isbn(?:-1[03])?[:\s]{0,3} (?:97[89][\ -]?)? \d[\d\ -]{7,15}[\dx] (?![a-z0-9])
      | (?:[ep]-?)?issn[:\s]{0,3} \d{4}-?\d{3}[\dx] (?![a-z0-9])
      | \d{4}-\d{3}x (?![a-z0-9])
      | (?:orcid[:\s]{0,3})? \d{4}-\d{4}-\d{4}-\d{3}[\dx] (?![a-z0-9])
      | (?:pmid|pmcid|oclc|lccn|s2cid|jstor)[:\s]{0,3} (?:pmc)?\d{1,12} (?![a-z0-9])
      | pmc\d{4,12} (?![a-z0-9])
      | [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12} (?![a-z0-9])
    )
    """.replace("<URL>", _URL).replace("<HOST>", _HOST),
    re.IGNORECASE | re.ASCII | re.VERBOSE,
)
"""URLs, and the identifiers of publications and people, with their labels.

A URL has a scheme, begins with ``www.``, or is a host with a path. It ends at white space, a quote,
or the punctuation of scripts without spaces.
"""


def read_with_references(
    html: bytes | str,
    url: str | None = None,
    charset: str | None = None,
    selectors: Selectors = NO_SELECTORS,
) -> Article:
    """Return the main content of a page with all references, captions, tables and quotes.

    Class, id, role or the heading above identify a list of references. Layout tables are excluded.
    So is everything in a ``nav`` or ``footer``. Other elements beside the text include only
    references. The arguments and errors are those of :func:`pgsimhash.html.read_article`.
    """
    root = parse(clean_utf8(html, charset))
    return article_of_tree(root, url, list(_included(root)), selectors)


@dataclass(frozen=True, slots=True)
class CategoryWords:
    """Split text into runs of letters, marks, digits and connectors by Unicode category.

    First, invisible characters (such as soft hyphens and zero-width spaces) are removed from the
    text, and URLs and identifiers (e-mail addresses, DOI, ISBN, ISSN, arXiv, ORCID and others, with
    their labels) are replaced by spaces. Then it is lower-cased. A token is the first
    :data:`RUN_MAX` characters of a run of the categories Ll, Lu, Lt, Lo, Lm, Mn, Nd and Pc that
    contains a letter. There is no normalisation. Only the first :data:`CHARS_MAX` characters count.

    Attributes:
        stop_words: tokens to ignore, in lower case.
    """

    stop_words: frozenset[str] = frozenset()

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of ``text`` in order."""
        prose = _IDENTIFIER.sub(" ", _IGNORABLE.sub("", text[:CHARS_MAX]))
        runs = (run[:RUN_MAX] for run in prose.lower().translate(_SPACED).split())
        words = (run for run in runs if run not in self.stop_words and _LETTER.search(run))
        return list(islice(words, TOKENS_MAX))


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
        if tag in ("nav", "footer"):
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


class _Spaced(dict[int, int]):
    """A table from each character to itself or a space, filled on demand."""

    def __missing__(self, code: int) -> int:
        replacement = code if unicodedata.category(chr(code)) in _CATEGORIES else 32
        self[code] = replacement
        return replacement


_SPACED: Final = _Spaced()
