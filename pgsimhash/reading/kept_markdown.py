"""Compute articles and records from kept Markdown, without the page."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Final, NoReturn

from pgsimhash.errors import ArgumentError, invalid_argument
from pgsimhash.html import Article
from pgsimhash.pages.records import PageFailure, PageRecord
from pgsimhash.reading.workers import failed
from pgsimhash.schemes import Scheme, get_scheme, read_text
from pgsimhash.schemes.blog import read_blog
from pgsimhash.schemes.registry import DEFAULT_SCHEME

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_VERBATIM: Final = (read_text, read_blog)  # the readers whose text is the Markdown itself
_NESTING_MAX: Final = 100
_TEXTS: Final = ("text", "text_special", "code_inline", "softbreak", "hardbreak")


def kept_article(
    markdown: str | None, title: str | None, scheme: str | Scheme = DEFAULT_SCHEME
) -> Article | None:
    """Return the article of the Markdown that ``scheme`` kept, or None without Markdown."""
    if markdown is None:
        return None
    try:
        verbatim = get_scheme(scheme).extract in _VERBATIM
    except ArgumentError:
        verbatim = False
    return Article(markdown, markdown if verbatim else plain_text(markdown), title)


def reread(record: PageRecord, scheme: Scheme) -> PageRecord | PageFailure:
    """Return the record of another scheme with the same reader, or a failure.

    A scheme has a reader, a tokenizer and a weighting. The reader needs the page. The tokenizer and
    the weighting need only the article; a scheme that weighs its text blocks is an ArgumentError.
    """
    article, recipe = kept_article(record.markdown, record.title, scheme), scheme
    if article is None:
        return PageFailure(
            record.url,
            "unreadable",
            "no Markdown was kept of this version; ingest the page into the new collection",
        )

    def refuse() -> NoReturn:
        raise invalid_argument(
            f"scheme {scheme.name!r} cannot use Markdown: it weighs text blocks, and Markdown does "
            "not have their weights; ingest the pages into another collection"
        )

    if scheme.extract not in _VERBATIM:
        # Equal weights would give other simhashes than the page.
        unweighted = Article(article.markdown, article.text, article.title, words=refuse)
        recipe = dataclasses.replace(
            scheme, weigh=lambda tokens, _: scheme.weigh(tokens, unweighted)
        )
    try:
        vote = recipe.vote(article)
    except ArgumentError:
        raise
    except Exception as error:  # one page must never end the others
        return failed(record.url, error)
    # The digest needs the page.
    values = {**vote._asdict(), "text_digest": None, "unseen": record.unseen}
    return dataclasses.replace(record, **values)


def plain_text(markdown: str) -> str:
    """Return the words of ``markdown`` without markup, URLs or images, a line for each block.

    They are the hashed words of the page, except at the ends of links and emphasis within a word:
    there a word may become two, or two words one.
    """
    lines: list[str] = []
    for token in _parser().parse(markdown):
        if token.type == "inline":
            parts = [part for part in token.children or () if part.type in _TEXTS]
            words = ("\n" if part.type.endswith("break") else part.content for part in parts)
            lines.append("".join(words))
        elif token.type in ("fence", "code_block"):
            lines.append(token.content)
    return "\n".join(lines)


@cache
def _parser() -> MarkdownIt:
    # Slow to import, and only kept Markdown needs it.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _NESTING_MAX}).enable("table")
    # Links are not followed, so any URL is valid, also that of a file.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser
