"""The simhashes of named pages, and what became of those that have none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pgsimhash.analysis.labelled_pages import Named
from pgsimhash.analysis.measures import Unseen
from pgsimhash.records import PageFailure, PageRecord
from pgsimhash.schemes import Scheme
from pgsimhash.sources import SourcePage
from pgsimhash.workers import extract_many


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """What became of pages.

    Attributes:
        simhashes: by name; None where a page was read and has no fingerprint, no entry where it
            was not found or could not be read.
        too_short: the names of the pages with too little text for a fingerprint.
        failures: every other page that has none, by its name.
        titles: by name, of the pages that have a simhash.
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
        """The mean and the largest of the shares, if there are any."""
        if not self.shares:
            return None
        worst = max(self.shares, key=self.shares.__getitem__)
        mean = sum(self.shares.values()) / len(self.shares)
        return Unseen(mean, self.shares[worst], worst)

    def add_missed(self, other: Fingerprints) -> None:
        """Take over the names of the pages that ``other`` has no simhash of, each once."""
        self.too_short[:] = dict.fromkeys((*self.too_short, *other.too_short))
        self.failures[:] = dict.fromkeys((*self.failures, *other.failures))


def fingerprint_pages(
    pages: Iterable[Named], into: Fingerprints, scheme: Scheme, jobs: int = 1
) -> Iterator[str]:
    """Fingerprint pages into ``into``, and yield the name of each when that is done.

    Args:
        pages: by name.
        into: takes what becomes of them.
        scheme: the recipe.
        jobs: how many processes read them.
    """
    begun: list[tuple[str, bool]] = []

    def remembered() -> Iterator[SourcePage | PageFailure]:
        for name, page in pages:
            begun.append((name, isinstance(page, PageFailure)))
            yield page

    for number, record in enumerate(extract_many(remembered(), jobs, scheme, markdown=False)):
        name, is_unread = begun[number]
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
