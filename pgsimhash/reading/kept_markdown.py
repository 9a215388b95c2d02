"""Compute articles and records from kept Markdown, without the page."""

from __future__ import annotations

import dataclasses
from typing import Final, NoReturn

from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.html import Article
from pgsimhash.html.markdown_syntax import plain_text
from pgsimhash.pages.records import PageFailure, PageRecord
from pgsimhash.schemes import DEFAULT_SCHEME, Scheme, get_scheme, read_text
from pgsimhash.schemes.blog import read_blog

_VERBATIM: Final = (read_text, read_blog)
"""The readers whose text is the Markdown itself."""


class _NeedsPageError(ArgumentError):
    """A scheme needs the weights of text blocks, which Markdown does not have."""


def kept_article(
    markdown: str | None, title: str | None, scheme: str = DEFAULT_SCHEME.name
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
    the weighting need only the article, except for the weights of its text blocks.

    Raises:
        ArgumentError: the scheme weighs text blocks.
    """
    if record.markdown is None:
        return PageFailure(
            record.url,
            "unreadable",
            "no Markdown was kept of this version; ingest the page into the new collection",
        )

    def refuse() -> NoReturn:
        raise _NeedsPageError(
            "invalid_argument",
            f"scheme {scheme.name!r} cannot use Markdown: it weighs text blocks, and Markdown does "
            "not have their weights; ingest the pages into another collection",
        )

    verbatim = scheme.extract in _VERBATIM
    text = record.markdown if verbatim else plain_text(record.markdown)
    known = (record.markdown, text, record.title, record.canonical_url, record.language)
    article, recipe = Article(*known, record.structure), scheme
    if not verbatim:
        # Equal weights would give other simhashes than the page.
        unweighted = Article(*known, record.structure, words=refuse)
        recipe = dataclasses.replace(
            scheme, weigh=lambda tokens, _: scheme.weigh(tokens, unweighted)
        )
    try:
        vote = recipe.vote(article)
    except _NeedsPageError:
        raise
    except PageError as error:
        return PageFailure(record.url, error.reason, str(error))
    except Exception as error:  # one page must never end the others
        return PageFailure(record.url, "crashed", f"{type(error).__name__}: {error}")
    return dataclasses.replace(
        record,
        simhash=vote.simhash,
        signature=vote.signature,
        features=vote.features,
        tokens=vote.tokens,
        text_digest=None,  # needs the page
    )
