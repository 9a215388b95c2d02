"""Read pages by the C extension ``pgsimhash._native``, if it was built and fits lxml.

Its sources are in ``native/``. They follow the modules beside this one step by step, and
``tests/native`` compares the two bit by bit. Rare pages, and installations without a compiler, are
left to the Python code.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from lxml import etree, html
from lxml.html import HtmlElement

from pgsimhash.hashing.tokens import COMPLEX, complex_words, fold_table, is_mark, is_unspaced
from pgsimhash.hashing.votes import bins_to_copy
from pgsimhash.html import blocks, page_words, weights
from pgsimhash.runtime.extension import is_built

Event = tuple[str, Any] | str | None
"""What is rendered of a page: see :func:`pgsimhash.html.markdown.events`."""

_SHORT_RUN: Final = 64
_OTHER_DIGIT: Final = re.compile(r"[^\D0-9]")
_TREE: Final = '<p class="a b">text<b>bold</b><i id="c">italic</i>tail</p>'

Factors = tuple[float, ...]
"""The weights of occurrences, the damping, and the sum that evens weights in a signature."""

VoteFields = tuple[int, int, int, int, int, float]
"""The fields of a ``Vote``: simhash, signature, features, tokens, digest, share of unseen words."""


def implementation() -> Literal["C", "Python"]:
    """Return which implementation reads pages in this process; the results are the same."""
    return "C" if is_used else "Python"


class NativePage(NamedTuple):
    """A page as the extension read it."""

    page: object
    structure: int  # the simhash
    word_count: int
    unlinked_count: int  # of words outside links that are no numbers
    shown: bytes  # whether each block is shown
    is_title_apart: bool  # whether an h1 is in an element with a name of no content
    hidden: list[HtmlElement]

    def text(self) -> str:
        """Return the text of its outline."""
        return _native.text(self.page)

    def events(
        self, body: HtmlElement, functions: tuple[Callable[..., object], ...], most: int
    ) -> list[Event] | None:
        """Return what is rendered of the page: elements, and lines with the tag "".

        None if ``body`` has changed, nothing for more than ``most`` elements. ``functions`` are
        those of native/inline.h.
        """
        return _native.events(_tables(), self.page, body, functions, most)

    def vote(self, factors: Factors) -> VoteFields | None:
        """Return the fields of the ``Vote`` of its words and pairs, or None without one."""
        return _native.vote(_tables(), self.page, factors)


def read(body: HtmlElement) -> NativePage | None:
    """Return what the extension reads of a page, or None if the Python code has to read it."""
    page = _native.read(_tables(), body) if is_used else None
    return None if page is None else NativePage(*page)


def vote_texts(texts: list[str], factors: Factors | None) -> list[VoteFields | None]:
    """Return the fields of the ``Vote`` of each text's outline, None if Python has to read it.

    Without factors, of short texts without joiners by ``short_weights``, without the digest.
    """
    return _native.vote_texts(_tables(), texts, factors) if is_used else [None] * len(texts)


def is_clean(utf8: bytes) -> bool:
    """Return whether the extension finds only UTF-8, and nothing that :func:`clean_text` drops."""
    return is_used and _native.is_clean(utf8)


def odd_tags(html: bytes) -> tuple[int, bool, bool, bool, bool]:
    """Return where the first ``</body>`` or ``</html>`` may be, or the end of a page.

    And whether the start tag of an element that hides its text may end with a slash, and whether
    there may be a CDATA section that is text, a ``noscript``, and a title that a drawing ends.
    """
    return _native.odd_tags(html) if is_used else (0, True, True, True, True)


@cache
def _tables() -> object:
    """Return the tables of the modules beside this one for the extension."""
    # The bits of native/page.h.
    tags = {
        0: blocks.BESIDE_TAGS, 1: ("footer",), 2: ("header",), 3: blocks.CONTENT_TAGS, 4: ("h1",),
        5: blocks.HEADING_TAGS, 6: blocks.COMMON_TAGS, 7: ("p",), 8: blocks.CELL_TAGS,
        9: ("table",), 10: ("tr",), 11: weights._WHOLE_TAGS, 12: ("figure",), 13: ("pre",),
        14: ("th",), 15: blocks.CELL_BLOCKS, 16: ("aside",), 17: ("main",), 18: ("article",),
        19: blocks.TITLE_TAGS,
        20: blocks.BLOCK, 21: blocks.NEVER_TEXT, 22: blocks._EMPTY,
        23: blocks._CONTAINERS, 24: ("a",), 29: ("blockquote",),
    }  # fmt: skip
    flags = blocks.flags_of({1 << bit: listed for bit, listed in tags.items()})
    for tag, event in blocks.EVENT_TAGS.items():
        flags[tag] |= event << 25
    words = {
        0: page_words.BEFORE, 1: page_words.BEHIND, 2: weights.PRIVACY_WORDS,
        3: page_words.VISITS, 4: ("ago",), 5: page_words.UPDATED, 6: page_words.MONTHS,
        7: page_words.CONTACTS, 10: weights.LEGAL_WORDS, 11: ("copyright",), 12: page_words.YEARS,
    }  # fmt: skip
    return _native.make_tables(
        flags,
        {tag: number for number, tag in enumerate(["", *sorted(blocks.BLOCK)])},
        blocks._FLAGS,
        dict.fromkeys(blocks._HIDING, 1),
        blocks.flags_of({1 << bit: listed for bit, listed in words.items()}),
        {name.upper(): value for name, value in weights.COEFFICIENTS.items()},
        np.array(list(map(_utf8, fold_table().tolist())), dtype=np.uint32).tobytes(),
        bins_to_copy().astype("=i8").tobytes(),
        _words_of_run,
        _words_of_title,
    )


def _utf8(code: int) -> int:
    return code if code == COMPLEX else int.from_bytes(chr(code).encode(), "little")


def _words_of_run(run: str) -> tuple[str, ...] | None:
    """Return words of characters that fold together, None if the first joins the one before."""
    return _short_run(run) if len(run) < _SHORT_RUN else _long_run(run)


def _words_of_title(run: str) -> tuple[str, ...] | None:
    """Return the same, None also with digits beyond ASCII; a sign begins those without spaces."""
    words = _words_of_run(run)
    if words is None or _OTHER_DIGIT.search("".join(words)):
        return None
    return tuple(f"\1{word}" if is_unspaced(word) else word for word in words)


def _long_run(run: str) -> tuple[str, ...] | None:
    return None if is_mark(run[0]) else tuple(chain.from_iterable(complex_words(run)))


_short_run = lru_cache(maxsize=8192)(_long_run)


def fits_lxml(extension: Any) -> bool:
    """Return whether the extension, which reads libxml2's nodes, sees a small tree as lxml does."""
    try:
        element_size = extension.use_lxml()
    except ImportError:
        return False
    if etree._Element.__basicsize__ != element_size or etree.LIBXML_VERSION[0] != 2:
        return False
    return all(
        extension.describe(element)
        == (element.tag, *next(iter(element.items()), (None, None)), element.text, len(element))
        for element in html.fragment_fromstring(_TREE).iter()
    )


is_used = is_built
if is_used:
    from pgsimhash import _native

    is_used = fits_lxml(_native)
