"""Evaluate schemes and distances on labelled pairs: recall and false matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from pgsimhash.analysis.fingerprints import (
    Fingerprints,
    Print,
    Unseen,
    find_pages,
    fingerprint_pages,
    fingerprint_texts,
    stored_fingerprints,
)
from pgsimhash.analysis.labels import LabelledPair, read_labels
from pgsimhash.hashing.bits import hamming_distance
from pgsimhash.hashing.signature import verified
from pgsimhash.pages.records import PageFailure
from pgsimhash.runtime.progress import no_progress
from pgsimhash.schemes import DEFAULT_SCHEME, Scheme, get_scheme, scheme_for_texts
from pgsimhash.search.pairs import Compared
from pgsimhash.store import Store

LARGEST: Final = 16
"""The largest distance that is evaluated; beyond it matches are random."""


class Counts(NamedTuple):
    """How many copies match, and how many pairs of different pages do."""

    found: int = 0
    copies: int = 0
    false_matches: int = 0
    distinct: int = 0

    @property
    def recall(self) -> float | None:
        """The share of copies that match; None without copies."""
        return self.found / self.copies if self.copies else None

    @property
    def precision(self) -> float:
        """The share of matches that are copies, 1.0 without matches."""
        matches = self.found + self.false_matches
        return self.found / matches if matches else 1.0


@dataclass(frozen=True, slots=True)
class AtDistance:
    """The matches up to a distance.

    Attributes:
        distance: the largest number of differing bits of a match.
        counts: those of the matches that signatures confirm, as ``ingest`` decides.
        unverified: those of all matches.
        kinds: ``counts`` by kind of pair.
    """

    distance: int
    counts: Counts
    unverified: Counts
    kinds: Mapping[str, Counts]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The matches among labelled pairs at each distance from 0 to 16.

    Attributes:
        scheme: the name of the scheme.
        curve: the matches, by distance.
        best: the recommended distance: the largest recall at the required precision, the smallest
            of several; None if no distance is as precise.
        precision: the required precision.
        graded: the number of pairs labelled ``graded``, which do not count.
        left_out: the number of pairs with a missing or unreadable page, which do not count.
        too_short: the pages with too little text; they match nothing.
        failures: the other pages without a fingerprint.
        unseen: the share of words in low-weight blocks; None if no page was read.
    """

    scheme: str
    curve: Sequence[AtDistance]
    best: AtDistance | None
    precision: float
    graded: int
    left_out: int
    too_short: Sequence[str] = ()
    failures: Sequence[PageFailure] = ()
    unseen: Unseen | None = None

    @property
    def sentence(self) -> str:
        """The recommended distance, or that none is, in a sentence."""
        if self.best is None:
            return f"At no distance is the precision {self.precision:g} or better."
        counts = self.best.counts
        matches = counts.found + counts.false_matches
        sentence = (
            f"Distance {self.best.distance}: recall {counts.recall:.4f}, precision "
            f"{counts.precision:.4f} ({counts.false_matches:,} false of {matches:,} matches)."
        )
        if matches * (1 - self.precision) < 1:
            sentence += (
                f" That is too few matches to tell a precision of {self.precision:g}: "
                f"label {1 / max(1 - self.precision, 1e-6):,.0f} or more."
            )
        return sentence


def evaluate(
    pairs: object,
    pages: Store | Path | str | Sequence[Path | str] | Mapping[str, Print | None] | None = None,
    *,
    scheme: Scheme | str | None = None,
    precision: float = 0.999,
    jobs: int = 1,
    progress: Compared = no_progress,
) -> Evaluation:
    """Return the recall and the false matches of labelled pairs at each distance.

    ``Evaluation.best`` recommends a distance. Like ``ingest``, it counts the matches that the
    signatures confirm; see :mod:`pgsimhash.hashing.signature`.

    Args:
        pairs: the path of a CSV file, a data frame, or :class:`LabelledPair` objects; see
            :func:`read_labels`.
        pages: where the pages of the pairs are. A store has them by URL, and nothing is read.
            Paths are folders, JSON lines, WARC archives, or CSV files with the columns ``id`` and
            ``file``. A mapping has a fingerprint for each name, None for a page without one. The
            default for a file of pairs is its folder, and its subfolder ``pages``. Otherwise ``a``
            and ``b`` are the texts themselves.
        scheme: the scheme; the default is the store's, "pgsimhash-article-1" for pages, and for
            texts what :func:`~pgsimhash.schemes.scheme_for_texts` chooses.
        precision: the smallest precision of the recommended distance.
        jobs: the number of processes that read pages.
        progress: a function that receives the numbers of finished pages and of all pages.

    Raises:
        ArgumentError: the pairs are invalid, or the scheme is unknown.
    """
    labelled = _labelled(pairs)
    counted = [pair for pair in labelled if pair.label != "graded"]
    names = list(dict.fromkeys(name for pair in counted for name in (pair.a, pair.b)))
    if isinstance(pages, Store):
        name, prints = pages.scheme, stored_fingerprints(pages, names)
    elif isinstance(pages, Mapping):
        name, prints = str(scheme or ""), Fingerprints(dict(pages))
    elif pages is None and not isinstance(pairs, str | Path):
        recipe = get_scheme(scheme_for_texts(names) if scheme is None else scheme)
        name, prints = recipe.name, fingerprint_texts(names, recipe)
    else:
        recipe = get_scheme(DEFAULT_SCHEME if scheme is None else scheme)
        if pages is None:
            pages = [Path(str(pairs)).parent]
        elif isinstance(pages, str | Path):
            pages = [pages]
        found = find_pages(names, [Path(place) for place in pages])
        prints = fingerprint_pages(found, recipe, jobs, progress, len(names))
        name = recipe.name
    return _evaluated(name, labelled, prints, precision)


def _labelled(pairs: Any) -> list[LabelledPair]:
    if isinstance(pairs, Sequence) and not isinstance(pairs, str):
        return list(pairs)
    return read_labels(pairs)


def _evaluated(
    scheme: str, pairs: Iterable[LabelledPair], prints: Fingerprints, precision: float
) -> Evaluation:
    graded = left_out = 0
    # The numbers of pairs by kind and label, and of those at each distance, confirmed or not.
    sizes: Counter[tuple[str, bool]] = Counter()
    places: Counter[tuple[str, bool, int, bool]] = Counter()
    for pair in pairs:
        if pair.label == "graded":
            graded += 1
        elif pair.a not in prints.prints or pair.b not in prints.prints:
            left_out += 1
        else:
            kind = pair.kind, pair.label == "copy"
            sizes[kind] += 1
            a, b = prints.prints[pair.a], prints.prints[pair.b]
            if a is not None and b is not None:
                bits = hamming_distance(a.simhash, b.simhash)
                places[(*kind, bits, verified(bits, a.signature, b.signature))] += 1

    def within(distance: int, kind: str, *, verify: bool) -> Counts:
        matches = {True: 0, False: 0}
        for (one, is_copy, bits, agrees), count in places.items():
            if one == kind and bits <= distance and (agrees or not verify):
                matches[is_copy] += count
        return Counts(matches[True], sizes[kind, True], matches[False], sizes[kind, False])

    kinds = sorted({kind for kind, _ in sizes})
    curve = []
    for distance in range(LARGEST + 1):
        confirmed = {kind: within(distance, kind, verify=True) for kind in kinds}
        everything = [within(distance, kind, verify=False) for kind in kinds]
        curve.append(AtDistance(distance, _sum(confirmed.values()), _sum(everything), confirmed))
    precise = [at for at in curve if at.counts.found and at.counts.precision >= precision]
    best = max(precise, key=lambda at: (at.counts.found, -at.distance), default=None)
    unread = prints.too_short, prints.failures, prints.unseen
    return Evaluation(scheme, curve, best, precision, graded, left_out, *unread)


def _sum(counts: Iterable[Counts]) -> Counts:
    return Counts(*map(sum, zip(Counts(), *counts, strict=True)))
