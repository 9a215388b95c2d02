"""Read the main content of a page: its words with weights, and the text blocks to show."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from itertools import chain, compress
from typing import Final

from lxml.html import HtmlElement

from pgsimhash.hashing.tokens import tokenize
from pgsimhash.html import native
from pgsimhash.html.blocks import Ignored, block_texts, outline, structure_simhash
from pgsimhash.html.cut import cut
from pgsimhash.html.head import PAGE_WORDS_MAX, check_stand_in, read_head
from pgsimhash.html.hidden import open_hidden, show_hidden
from pgsimhash.html.markdown import Links, escape, escape_start, events, render
from pgsimhash.html.native import NativePage
from pgsimhash.html.page_words import WeightedWords, read_words, weighted_words
from pgsimhash.html.parse import ELEMENTS_MAX, clean_text, clean_utf8, parse
from pgsimhash.html.repair import clear_around_title, clear_topics
from pgsimhash.html.weights import weigh
from pgsimhash.pages.selectors import NO_SELECTORS, Selectors
from pgsimhash.pages.values import BytesLike

_TAG: Final = re.compile(b"<[a-zA-Z/!?]")
# A page with fewer words may be hidden until a script shows it. With this many outside links, the
# hidden part has to be prose.
_VISIBLE_WORDS, _PROSE_WORDS = 1500, 50
_NOTICE_WORDS: Final = 150  # a page with more outside links has more than a notice
_HIDDEN_TIMES: Final = 4  # the hidden part has this many times the visible words
_SHOWN_MAX, _OPENED_MAX = 8, 2  # how often more of a page is shown, and of that opened
_LINKED: Final = re.compile(" \0\0 [^\0]*+(?:\0{4,5}+[^\0]*+)*+\0\0\0 ")
MARKED_UP_MAX: Final = 150_000  # Markdown of more links, items and marks is only paragraphs


def read_article(
    html: BytesLike | str,
    url: str | None = None,
    charset: str | None = None,
    max_elements: int = ELEMENTS_MAX,
    selectors: Selectors = NO_SELECTORS,
) -> Article:
    """Return the main content of a page: all words with weights, and the heaviest to read.

    Text without tags is plain text: all lines are main content with equal weights.

    Args:
        html: the page, as bytes or text.
        url: the page's URL, the base of relative URLs.
        charset: the label in the HTTP header, if any.
        max_elements: the most elements of a page.
        selectors: which part of the page counts; plain text counts as a whole.

    Raises:
        PageError: the page has another format (``not_html``) or too many elements (``too_large``),
            or is an error page (``error_page``), a bot check (``blocked``) or JavaScript-rendered
            (``needs_script``).
    """
    source = clean_utf8(html, charset)
    if _TAG.search(source) is None:
        text = source.decode()
        if len(text.split()) <= PAGE_WORDS_MAX:
            check_stand_in(None, text, lambda: text)
        is_missing = bool(selectors.content)
        paragraphs = map(str.strip, text.split("\n"))
        return Article(lambda: unmarked(paragraphs), text, content_missing=is_missing)
    return article_of_tree(parse(source, max_elements), url, (), selectors)


def article_of_tree(
    root: HtmlElement,
    url: str | None = None,
    also: Collection[HtmlElement] = (),
    selectors: Selectors = NO_SELECTORS,
) -> Article:
    """Return the main content of a parsed page, including all elements of ``also``.

    The other arguments and the errors are those of :func:`read_article`.
    """
    head = read_head(root, url)
    is_missing = any(selectors) and cut(root, selectors)
    clear_topics(root, head.title)
    body = root.find("body")
    body = root if body is None else body

    def read() -> NativePage | _WeighedPage:
        return (None if also else native.read(body)) or _WeighedPage(body, also)

    page = read()
    if page.is_title_apart and clear_around_title(root, head.title):
        page = read()
    for times in range(_SHOWN_MAX):
        is_opened = times < _OPENED_MAX and open_hidden(root, page.hidden)
        if not (is_opened or _show_only_text(page)):
            break
        page = read()

    def shown(source: str) -> str:
        return "\n".join(compress(block_texts(source), page.shown))

    def text() -> str:
        return shown(page.text())

    def markdown() -> str:
        links, parts = Links(head.base), None
        if isinstance(page, NativePage):
            parts = page.events(body, links.functions(), MARKED_UP_MAX)
        if parts is None:
            links, parts = Links(head.base), list(events(body, weighed().ignored(body)))
        if not parts or parts.count(None) > MARKED_UP_MAX:
            return unmarked(text().split("\n"))
        return clean_text(render(parts, links))

    def weighed() -> _WeighedPage:
        return page if isinstance(page, _WeighedPage) else _WeighedPage(body)

    if page.word_count <= PAGE_WORDS_MAX:
        source = page.text()
        check_stand_in(head.title, shown(source), lambda: shown(_LINKED.sub(" ", source)), root)
    about = (head.title, head.canonical_url, head.language, page.structure, lambda: weighed().words)
    by_c = page if isinstance(page, NativePage) else None
    return Article(markdown, text, *about, by_c, is_missing, head.noindex, head.alternates)


class Article:
    """The main content of a page: ``markdown`` for people, ``text`` for simhashes.

    Articles with equal content are equal.

    Args:
        markdown: the main content, or a function that renders it on first use.
        text: the same words without markup, a line per block, or a function that returns them.
        title: the page's title.
        canonical_url: the absolute URL of its ``rel=canonical``.
        language: the value of its ``lang``.
        structure: the simhash of its structure; None if the reader does not compute it.
        words: all words of the page with weights, if the reader computes weights, or a function
            that returns them.
        native: the page as the C extension read it.
        content_missing: whether ``content`` selects nothing, so that the page was read whole.
        noindex: whether it asks search engines not to list it.
        alternates: the absolute URLs of its ``hreflang`` links, separated by spaces.
    """

    def __init__(
        self,
        markdown: str | Callable[[], str],
        text: str | Callable[[], str],
        title: str | None = None,
        canonical_url: str | None = None,
        language: str | None = None,
        structure: int | None = None,
        words: WeightedWords | Callable[[], WeightedWords] | None = None,
        native: NativePage | None = None,
        content_missing: bool = False,
        noindex: bool = False,
        alternates: str | None = None,
    ) -> None:
        self._markdown, self._text, self._words = markdown, text, words
        self.title, self.canonical_url, self.language = title, canonical_url, language
        self.structure, self.native = structure, native
        self.content_missing = content_missing
        self.noindex, self.alternates = noindex, alternates

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Article) and self._content() == other._content()

    def _content(self) -> tuple[str | int | None, ...]:
        about = (self.title, self.canonical_url, self.language, self.structure)
        return (self.markdown, self.text, *about)

    @cached_property
    def markdown(self) -> str:
        """The main content in Markdown."""
        return self._markdown() if callable(self._markdown) else self._markdown

    @cached_property
    def text(self) -> str:
        """The main content without markup, a line per block."""
        return self._text() if callable(self._text) else self._text

    @cached_property
    def words(self) -> WeightedWords | None:
        """All words of the page with the weights of their blocks, if the reader computes them."""
        return self._words() if callable(self._words) else self._words


class _WeighedPage:
    """A page as the Python code reads it, with the values of :class:`NativePage`, and its words."""

    def __init__(self, body: HtmlElement, also: Collection[HtmlElement] = ()) -> None:
        self._outline = outline(body)
        self.structure, self.hidden = structure_simhash(self._outline), self._outline.hidden
        blocks = read_words(self._outline)
        is_frame_only = weigh(self._outline, blocks)
        included = {node for element in also for node in element.iter()}
        for piece in self._outline.pieces if included else ():
            if piece.around() in included:
                blocks[piece.block].shown = True
        for block in blocks:
            block.counted = block.shown and not is_frame_only
        self.shown = [block.shown for block in blocks]
        self.is_title_apart = any(each.is_apart and each.element.tag == "h1" for each in blocks)
        self.words = weighted_words(self._outline, blocks)
        self.word_count = sum(len(block.words) for block in blocks)

    @property
    def unlinked_count(self) -> int:
        return len(tokenize(_LINKED.sub(" ", self.text())))

    def text(self) -> str:
        return self._outline.text

    def ignored(self, body: HtmlElement) -> Ignored:
        """Return the elements without shown blocks, and the texts of other blocks."""
        reached, kept = {body}, {body}
        for piece in self._outline.pieces:
            _add_with_ancestors(piece.around(), reached)
            if self.shown[piece.block]:
                _add_with_ancestors(piece.around(), kept)
        texts = {piece[1:] for piece in self._outline.pieces if not self.shown[piece.block]}
        return reached - kept, texts


def _show_only_text(page: NativePage | _WeighedPage) -> bool:
    """Show what is hidden on a page with few words outside links, if it has more words."""
    if page.word_count >= _VISIBLE_WORDS or (unlinked := page.unlinked_count) >= _NOTICE_WORDS:
        return False
    of_main = _HIDDEN_TIMES * unlinked
    least, is_prose = max(of_main, page.word_count), unlinked >= _PROSE_WORDS
    return show_hidden(page.hidden, least, of_main, is_prose=is_prose)


def unmarked(lines: Iterable[str]) -> str:
    """Return lines of text as Markdown, a paragraph each."""
    return "\n\n".join([escape_start(escape(line)) for line in lines if line])


def _add_with_ancestors(element: HtmlElement, elements: set[HtmlElement]) -> None:
    """Add an element and those around it, up to one that is in the set."""
    for around in chain((element,), element.iterancestors()):
        if around in elements:
            return
        elements.add(around)
