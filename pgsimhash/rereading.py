"""From kept Markdown to what another scheme makes of a page, without the page.

Schemes are readers, tokenizers and weightings. Tokenizers and weightings see an article only, and
Markdown gives that back (see :func:`pgsimhash.html.plain.plain_text` for how exactly); what a
reader makes of a page, only the page can tell. So simhashes are those of the pages where the new
scheme reads them as the old one did, and are approximate elsewhere.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.html import Article
from pgsimhash.html.plain import plain_text
from pgsimhash.records import PageFailure, PageRecord
from pgsimhash.schemes import DEFAULT_SCHEME, BlockWeights, Scheme, get_scheme, read_text
from pgsimhash.schemes.blog import read_blog

_VERBATIM: Final = (read_text, read_blog)
"""The readers whose text is the Markdown as it stands."""


def kept_article(
    markdown: str | None, title: str | None, scheme: str = DEFAULT_SCHEME.name
) -> Article | None:
    """Return the article that can be made of the Markdown that ``scheme`` kept, if there is any."""
    if markdown is None:
        return None
    try:
        verbatim = get_scheme(scheme).extract in _VERBATIM
    except ArgumentError:
        verbatim = False
    return Article(markdown, markdown if verbatim else plain_text(markdown), title, None, None)


@dataclass(frozen=True, slots=True)
class Rereading:
    """What makes records of a scheme from records with Markdown; see :func:`rereading`.

    Attributes:
        scheme: the scheme to vote with.
        verbatim: whether the Markdown as it stands is what is voted on, marks and all.
    """

    scheme: Scheme
    verbatim: bool

    def reread(self, record: PageRecord) -> PageRecord | PageFailure:
        """Return ``record`` as the scheme has it; whatever goes wrong becomes a failure.

        The reason of a failure is ``no_markdown``, or what it is for a page that is read.
        """
        if record.markdown is None:
            return PageFailure(
                record.url,
                "no_markdown",
                "no Markdown was kept of this version; ingest the page into the new collection",
            )
        try:
            voted = self.scheme.vote(self._article(record, record.markdown))
        except PageError as error:
            return PageFailure(record.url, error.reason, str(error))
        except Exception as error:  # one page must never end the others
            return PageFailure(record.url, "unexpected", f"{type(error).__name__}: {error}")
        return dataclasses.replace(
            record,
            simhash=voted.simhash,
            sketch=voted.sketch,
            features=voted.features,
            tokens=voted.tokens,
            # Of what the other scheme reads from the page itself nothing is known.
            text_digest=None,
        )

    def _article(self, record: PageRecord, markdown: str) -> Article:
        text = markdown if self.verbatim else plain_text(markdown)
        return Article(
            markdown, text, record.title, record.canonical_url, record.language, record.structure
        )


def rereading(source: str, scheme: Scheme, *, approximate: bool = False) -> Rereading:
    """Return what votes with ``scheme`` over Markdown that a collection of ``source`` keeps.

    Args:
        source: the name of the scheme that read the pages.
        scheme: the scheme to vote with.
        approximate: whether the schemes may read pages in different ways.

    Raises:
        ArgumentError: they do, or ``scheme`` weighs blocks, and ``approximate`` is false; or
            ``source`` is not registered.
    """
    reader, wanted = get_scheme(source).extract, scheme.extract
    # Markdown does not tell how much its blocks counted.
    weighed = isinstance(scheme.weigh, BlockWeights) and reader not in _VERBATIM
    if (weighed or wanted != reader) and not approximate:
        raise ArgumentError(
            "other_reader",
            f"scheme {scheme.name!r} reads pages in another way than {source!r}, which made the "
            "Markdown that is kept, or weighs their blocks, which Markdown does not tell, so its "
            "simhashes of that would not be those of the pages; "
            "ingest the pages again, or take the difference with approximate=True (--approximate)",
        )
    return Rereading(scheme, reader is read_text or wanted in _VERBATIM)
