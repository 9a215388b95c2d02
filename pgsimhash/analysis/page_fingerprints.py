"""Compute the simhashes of named pages, and collect the failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pgsimhash.analysis.labelled_pages import Named
from pgsimhash.analysis.measures import Unseen
from pgsimhash.pages.records import PageFailure, PageRecord
from pgsimhash.reading.workers import extract_many
from pgsimhash.schemes import Scheme
from pgsimhash.sources import SourcePage


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The simhashes and failures of pages.

    Attributes:
        simhashes: by name; None if the page has no fingerprint, no entry if it is missing or could
            not be read.
        too_short: the names of pages with too little text for a fingerprint.
        failures: all other pages without a fingerprint, by name.
        titles: by name, of pages with a simhash.
        shares: by name, the share of a page's words in low-weight blocks; empty if the scheme does
            not weigh blocks.
    """

    simhashes: dict[str, int | None] = field(default_factory=dict)
    too_short: list[str] = field(default_factory=list)
    failures: list[PageFailure] = field(default_factory=list)
    titles: dict[str, str | None] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)

    @property
    def unseen(self) -> Unseen | None:
        """The mean and the largest share, if any."""
        if not self.shares:
            return None
        worst = max(self.shares, key=self.shares.__getitem__)
        mean = sum(self.shares.values()) / len(self.shares)
        return Unseen(mean, self.shares[worst], worst)

    def add_missed(self, other: Fingerprints) -> None:
        """Add the pages without a simhash in ``other``, each once."""
        self.too_short[:] = dict.fromkeys((*self.too_short, *other.too_short))
        self.failures[:] = dict.fromkeys((*self.failures, *other.failures))


def fingerprint_pages(
    pages: Iterable[Named], into: Fingerprints, scheme: Scheme, jobs: int = 1
) -> Iterator[str]:
    """Yield the name of each page after adding its result to ``into``.

    Args:
        pages: pairs of name and page.
        into: the object to add results to.
        scheme: the scheme.
        jobs: the number of processes.
    """
    started: list[tuple[str, bool]] = []

    def starting() -> Iterator[SourcePage | PageFailure]:
        for name, page in pages:
            started.append((name, isinstance(page, PageFailure)))
            yield page

    for number, record in enumerate(extract_many(starting(), jobs, scheme, markdown=False)):
        name, is_unread = started[number]
        if isinstance(record, PageRecord):
            into.simhashes[name] = record.simhash
            into.titles[name] = record.title
            if record.unseen is not None:
                into.shares[name] = record.unseen
        else:
            if not is_unread:
                into.simhashes[name] = None
            if record.reason == "too_short":
                into.too_short.append(name)
            else:
                into.failures.append(PageFailure(name, record.reason, record.detail))
        yield name
