"""Apply another scheme to kept Markdown, without the page.

A scheme has a reader, a tokenizer and a weighting. The tokenizer and the weighting need only the
article, which Markdown gives back (:func:`pgsimhash.html.plain.plain_text` says how exactly). The
reader needs the page. So both schemes need the same reader.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.html import Article
from pgsimhash.html.plain import plain_text
from pgsimhash.pages.records import PageFailure, PageRecord
from pgsimhash.schemes import DEFAULT_SCHEME, BlockWeights, Scheme, get_scheme, read_text
from pgsimhash.schemes.blog import read_blog
from pgsimhash.schemes.names import SHIPPED_NAMES

_VERBATIM: Final = (read_text, read_blog)
"""The readers whose text is the Markdown itself."""


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


@dataclass(frozen=True, slots=True)
class Rereading:
    """Compute records of a scheme from records with Markdown; see :func:`rereading`.

    Attributes:
        scheme: the new scheme.
        verbatim: whether the text is the Markdown itself, with its markup.
    """

    scheme: Scheme
    verbatim: bool

    def reread(self, record: PageRecord) -> PageRecord | PageFailure:
        """Return the record of the new scheme, or a failure; never raise.

        The reason of a failure is ``no_markdown``, or the same as for reading a page.
        """
        if record.markdown is None:
            return PageFailure(
                record.url,
                "no_markdown",
                "no Markdown was kept of this version; ingest the page into the new collection",
            )
        try:
            vote = self.scheme.vote(self._article(record, record.markdown))
        except PageError as error:
            return PageFailure(record.url, error.reason, str(error))
        except Exception as error:  # one page must never end the others
            return PageFailure(record.url, "unexpected", f"{type(error).__name__}: {error}")
        return dataclasses.replace(
            record,
            simhash=vote.simhash,
            signature=vote.signature,
            features=vote.features,
            tokens=vote.tokens,
            text_digest=None,  # needs the page
        )

    def _article(self, record: PageRecord, markdown: str) -> Article:
        text = markdown if self.verbatim else plain_text(markdown)
        return Article(
            markdown, text, record.title, record.canonical_url, record.language, record.structure
        )


def rereading(source: str, scheme: Scheme) -> Rereading:
    """Return the function of ``scheme`` on Markdown that a collection of ``source`` keeps.

    Args:
        source: the name of the scheme that read the pages.
        scheme: the new scheme.

    Raises:
        ArgumentError: the readers of the two schemes differ, ``scheme`` weighs blocks, or
            ``source`` is not registered.
    """
    reason = _refusal(source, scheme)
    if reason is not None:
        usable = [
            name
            for name in SHIPPED_NAMES
            if name != source and _refusal(source, get_scheme(name)) is None
        ]
        choice = f"use {' or '.join(usable)}, or " if usable else ""
        raise ArgumentError(
            "other_reader",
            f"scheme {scheme.name!r} cannot use the Markdown of {source!r}: {reason}; {choice}"
            "ingest the pages into another collection",
        )
    return Rereading(scheme, get_scheme(source).extract in _VERBATIM)


def _refusal(source: str, scheme: Scheme) -> str | None:
    """Return why Markdown of ``source`` is not enough for ``scheme``, None if it is."""
    reader = get_scheme(source).extract
    if scheme.extract != reader:
        return "it reads pages differently"
    if isinstance(scheme.weigh, BlockWeights) and reader not in _VERBATIM:
        return "it weighs text blocks, and Markdown does not have their weights"
    return None
