"""Evaluate schemes and distances on labelled pairs: recall and false matches."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import tee
from numbers import Real
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pgsimhash.analysis.pairs import LARGEST, LabelledPair, read_labels
from pgsimhash.errors import check_number
from pgsimhash.hashing.bits import BITS, hamming_distance
from pgsimhash.hashing.signature import verified
from pgsimhash.pages.records import PageFailure, PageRecord, PageStatus
from pgsimhash.pages.values import MAX_BYTES
from pgsimhash.reading.workers import extract_many
from pgsimhash.runtime import no_progress
from pgsimhash.schemes import Scheme, get_scheme, read_text, scheme_for_texts
from pgsimhash.schemes.registry import DEFAULT_SCHEME, reads_texts
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.search.pairs import Compared
from pgsimhash.sources import HTML_SUFFIXES, SourcePage, read_html, read_pages
from pgsimhash.store import Store

_SUFFIXES: Final = ("", *HTML_SUFFIXES)

Named = tuple[str, SourcePage | PageFailure]


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


class AtDistance(NamedTuple):
    """The matches up to a distance: those that signatures confirm, as in ``ingest``, and all.

    ``kinds`` are ``counts`` by kind of pair.
    """

    distance: int
    counts: Counts
    unverified: Counts
    kinds: Mapping[str, Counts]


class Print(NamedTuple):
    """The fingerprint of a page."""

    simhash: int
    signature: int | None = None


Fingerprints = tuple[Mapping[str, Print | None], list[PageFailure]]
"""The pages by name, None for one without a fingerprint, no entry for a missing one; failures."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The matches among labelled pairs at each distance from 0 to 16.

    ``best`` is the recommended distance: the largest recall at the required ``precision``, the
    smallest of several, up to the 12 bits of a search; None if no distance is as precise.
    ``omitted`` pairs with a missing page do not count. ``failures`` are the pages without a
    fingerprint; if they are not missing, such as pages that are ``too_short``, they match nothing.
    """

    scheme: str
    curve: Sequence[AtDistance]
    best: AtDistance | None
    precision: float
    omitted: int
    failures: Sequence[PageFailure]

    def __repr__(self) -> str:
        return f"<{self.scheme}: {self.sentence}>"

    @property
    def sentence(self) -> str:
        """The recommended distance, or that no distance is precise enough, in a sentence."""
        if self.omitted and not any(self.curve[0].counts):
            return f"Each of the {self.omitted:,} pairs misses a page; failures name them."
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
    pairs: Any,
    pages: Store | Path | str | Sequence[Path | str] | Mapping[str, Print | None] | None = None,
    *,
    scheme: Scheme | str | None = None,
    precision: float = 0.999,
    jobs: int = 1,
    progress: Compared = no_progress,
) -> Evaluation:
    """Return the recall and the false matches of labelled pairs at each distance.

    ``Evaluation.best`` recommends a distance of at least ``precision``. Like ``ingest``, it counts
    the matches that the signatures confirm; see :mod:`pgsimhash.hashing.signature`.

    Args:
        pairs: what :func:`read_labels` reads, or :class:`LabelledPair` objects.
        pages: where the pages of the pairs are. A store has them by URL, and nothing is read.
            Paths are folders, JSON lines or WARC archives. A mapping has a fingerprint for each
            name, None for a page without one. The default for a file of pairs is its folder, and
            its subfolder ``pages``. Otherwise ``a`` and ``b`` are the texts themselves.
        scheme: the default is the store's, "pgsimhash-article-1" for pages, and for texts what
            :func:`~pgsimhash.schemes.scheme_for_texts` chooses.
        precision: from 0 to 1.
        jobs: the number of processes that read pages.
        progress: receives the numbers of finished pages and of all pages.
    """
    check_number("precision", precision, 0, 1, Real)
    given = isinstance(pairs, Sequence) and not isinstance(pairs, str)
    labelled = pairs if given else read_labels(pairs)
    counted = [pair for pair in labelled if pair.label != "graded"]
    names = list(dict.fromkeys(name for pair in counted for name in (pair.a, pair.b)))
    if isinstance(pages, Store):
        name, fingerprints = pages.collection.scheme, stored_fingerprints(pages, names)
    elif isinstance(pages, Mapping):
        name, fingerprints = str(scheme or ""), (pages, [])
    else:
        named: Iterable[Named]
        if pages is None and not isinstance(pairs, str | Path):
            recipe = get_scheme(scheme_for_texts(names) if scheme is None else scheme)
            reading = replace(recipe, extract=read_text)
            named = ((text, SourcePage(cast(str, None), text)) for text in names)
        else:
            reading = recipe = get_scheme(DEFAULT_SCHEME if scheme is None else scheme)
            places = [Path(str(pairs)).parent] if pages is None else pages
            places = [places] if isinstance(places, str | Path) else places
            named = find_pages(names, list(map(Path, places)), texts=reads_texts(recipe))
        fingerprints = fingerprint_pages(named, reading, jobs, progress, len(names))
        name = recipe.name
    return _evaluated(name, counted, fingerprints, precision)


def _evaluated(
    scheme: str, pairs: Sequence[LabelledPair], fingerprints: Fingerprints, precision: float
) -> Evaluation:
    prints, failures = fingerprints
    known = [pair for pair in pairs if pair.a in prints and pair.b in prints]
    # The numbers of pairs by kind, label, distance (65 without a simhash) and confirmation.
    tallies: Counter[tuple[str, bool, int, bool]] = Counter()
    for pair in known:
        a, b = prints[pair.a], prints[pair.b]
        bits, confirmed = BITS + 1, False
        if a is not None and b is not None:
            bits = hamming_distance(a.simhash, b.simhash)
            confirmed = verified(bits, a.signature, b.signature)
        tallies[pair.kind, pair.label == "copy", bits, confirmed] += 1

    def within(distance: int, *, verify: bool = True) -> dict[str, Counts]:
        kinds = {kind: Counter[str]() for kind in sorted({kind for kind, *_ in tallies})}
        for (kind, is_copy, bits, confirmed), number in tallies.items():
            kinds[kind]["copies" if is_copy else "distinct"] += number
            if bits <= distance and (confirmed or not verify):
                kinds[kind]["found" if is_copy else "false_matches"] += number
        return {kind: Counts(**counts) for kind, counts in kinds.items()}

    def summed(kinds: dict[str, Counts]) -> Counts:
        return Counts(*map(sum, zip(*kinds.values(), strict=True)))

    curve = []
    for distance in range(LARGEST + 1):
        kinds, unverified = within(distance), within(distance, verify=False)
        curve.append(AtDistance(distance, summed(kinds), summed(unverified), kinds))
    usable = curve[: DISTANCE_MAX + 1]  # a search has no larger distance
    precise = [at for at in usable if at.counts.found and at.counts.precision >= precision]
    best = max(precise, key=lambda at: (at.counts.found, -at.distance), default=None)
    return Evaluation(scheme, curve, best, precision, len(pairs) - len(known), failures)


def stored_fingerprints(store: Store, urls: Sequence[str]) -> Fingerprints:
    """Return the fingerprints of the current versions of pages in a store, by URL."""
    with store._session.calls_to_read() as calls:
        collection = calls.collection
        # The database rejects NUL, and no page has a URL with NUL.
        stored_url = {url: collection.page_url(url) for url in urls if "\0" not in url}
        pages = calls.stored_pages(stored_url.values(), ("url", "simhash", "signature"))
    stored = {page["url"]: Print(page["simhash"], page["signature"]) for page in pages}
    prints = {url: stored[known] for url, known in stored_url.items() if known in stored}
    detail = f"collection {collection.name!r} has no page with this URL"
    return prints, [PageFailure(url, "unreadable", detail) for url in urls if url not in prints]


def fingerprint_pages(
    pages: Iterable[Named],
    scheme: Scheme,
    jobs: int = 1,
    progress: Compared = no_progress,
    total: int = 0,
) -> Fingerprints:
    """Return the fingerprints of named pages; ``progress`` receives their number and ``total``."""
    prints: dict[str, Print | None] = {}
    failures = []
    named, ahead = tee(pages)
    records = extract_many((page for _, page in ahead), jobs, scheme, markdown=False)
    for number, ((name, page), record) in enumerate(zip(named, records, strict=True), start=1):
        if isinstance(page, SourcePage):
            prints[name] = None
        if isinstance(record, PageRecord):
            prints[name] = Print(record.simhash, record.signature)
        else:
            failures.append(replace(record, url=name))
        progress(number, total)
    return prints, failures


def find_pages(
    names: Iterable[str], places: Sequence[Path], *, texts: bool = False
) -> Iterator[Named]:
    """Yield each page of ``names``, with its name, or its failure, in no particular order.

    A name is a ``file:`` URL, an absolute path, the name of a file in one of ``places`` or its
    ``pages``, with or without ``.html``, or the URL of a page in an archive, of which the first is
    read.
    """
    folders = [place for place in places if place.is_dir()]
    archives = [place for place in places if not place.is_dir()]
    missing: dict[str, None] = {}
    for name in names:
        if path := _file(name, folders):
            yield name, read_html(path, MAX_BYTES)
        else:
            missing[name] = None
    # One pass through the archives, in any order of pages.
    for page in read_pages(archives if missing else (), texts=texts):
        if not isinstance(page, PageStatus) and (
            page.url in missing or isinstance(page, PageFailure)
        ):
            missing.pop(page.url, None)
            yield page.url, page
    where = ", ".join(map(str, places))
    for name in missing:
        detail = f"no page with this name in {where}; name its place with --pages"
        yield name, PageFailure(name, "unreadable", detail)


def _file(name: str, folders: Sequence[Path]) -> Path | None:
    if name.lower().startswith("file:"):
        return Path(url2pathname(urlsplit(name).path))
    parents = (parent for folder in folders for parent in (folder, folder / "pages"))
    paths = (parent / f"{name}{suffix}" for parent in parents for suffix in _SUFFIXES)
    try:
        file = next(filter(Path.is_file, paths), None)
    except (OSError, ValueError):  # too long or with NUL: not a path
        return None
    path = Path(name)
    return path if file is None and path.is_absolute() else file
