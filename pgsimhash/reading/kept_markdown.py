"""Apply another scheme to kept Markdown, without the page.

A scheme has a reader, a tokenizer and a weighting. The tokenizer and the weighting need only the
article, which Markdown gives back (:func:`pgsimhash.html.plain.plain_text` says how exactly),
except for the weights of its text blocks. The reader needs the page. So both schemes need the same
reader, and the new one a weighting that does not use blocks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

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
    """Compute records of a scheme from records with Markdown that ``source`` kept.

    Raises:
        ArgumentError: the readers of the two schemes differ, ``scheme`` weighs blocks, or
            ``source`` is not registered.
    """

    scheme: Scheme
    source: str

    def __post_init__(self) -> None:
        """Check the schemes."""
        if self.scheme.extract != get_scheme(self.source).extract:
            self._refuse("it reads pages differently")
        if isinstance(self.scheme.weigh, BlockWeights) and not self._is_verbatim:
            self._refuse_blocks()

    def reread(self, record: PageRecord) -> PageRecord | PageFailure:
        """Return the record of the new scheme, or a failure.

        The reason of a failure is ``no_markdown``, or the same as for reading a page.

        Raises:
            ArgumentError: the scheme weighs blocks.
        """
        if record.markdown is None:
            return PageFailure(
                record.url,
                "no_markdown",
                "no Markdown was kept of this version; ingest the page into the new collection",
            )
        scheme = self.scheme
        if not self._is_verbatim:
            scheme = dataclasses.replace(scheme, weigh=self._weigh)
        try:
            vote = scheme.vote(self._article(record, record.markdown))
        except PageError as error:
            return PageFailure(record.url, error.reason, str(error))
        except Exception as error:  # one page must never end the others
            if isinstance(error, ArgumentError) and error.reason == "other_reader":
                raise
            return PageFailure(record.url, "unexpected", f"{type(error).__name__}: {error}")
        return dataclasses.replace(
            record,
            simhash=vote.simhash,
            signature=vote.signature,
            features=vote.features,
            tokens=vote.tokens,
            text_digest=None,  # needs the page
        )

    @property
    def _is_verbatim(self) -> bool:
        return self.scheme.extract in _VERBATIM

    def _article(self, record: PageRecord, markdown: str) -> Article:
        text = markdown if self._is_verbatim else plain_text(markdown)
        return Article(
            markdown, text, record.title, record.canonical_url, record.language, record.structure
        )

    def _weigh(self, tokens: Sequence[str], article: Article) -> Mapping[str, float]:
        """Weigh an article whose blocks have no weights, rather than equal ones."""
        kept = Article(
            article.markdown,
            article.text,
            article.title,
            article.canonical_url,
            article.language,
            article.structure,
            words=self._refuse_blocks,
        )
        return self.scheme.weigh(tokens, kept)

    def _refuse_blocks(self) -> NoReturn:
        self._refuse("it weighs text blocks, and Markdown does not have their weights")

    def _refuse(self, reason: str) -> NoReturn:
        usable = [
            scheme.name
            for scheme in map(get_scheme, SHIPPED_NAMES)
            if scheme.name != self.source
            and scheme.extract == get_scheme(self.source).extract
            and (scheme.extract in _VERBATIM or not isinstance(scheme.weigh, BlockWeights))
        ]
        choice = f"use {' or '.join(usable)}, or " if usable else ""
        raise ArgumentError(
            "invalid_argument",
            f"scheme {self.scheme.name!r} cannot use the Markdown of {self.source!r}: {reason}; "
            f"{choice}ingest the pages into another collection",
        )
