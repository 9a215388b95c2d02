"""Run evaluations, and print their tables."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
from rich.console import Console
from rich.table import Table

from pgsimhash import analysis
from pgsimhash.analysis.labelled_pages import Fingerprints, Named, find_pages, fingerprint_pages
from pgsimhash.analysis.labels import Labels, read_labels
from pgsimhash.analysis.measures import Score, Unseen, measure, recommendation
from pgsimhash.analysis.near_pairs import NearSample, sample_near_pairs
from pgsimhash.cli.options import stdin_bytes
from pgsimhash.cli.printing import people, tell
from pgsimhash.cli.work import NO_PAGE, choose_jobs, tell_left_out, with_progress
from pgsimhash.errors import ArgumentError
from pgsimhash.pages.records import PageFailure
from pgsimhash.schemes import get_scheme
from pgsimhash.sources import count_pages, read_pages
from pgsimhash.store import connect


def score_pairs(
    source: Path,
    places: Sequence[Path],
    schemes: Sequence[str],
    precision: float,
    jobs: int | None,
) -> tuple[list[Score], Fingerprints]:
    """Return each scheme's score on the pairs in ``source``, and the pages without a fingerprint.

    Raises:
        ArgumentError: the file is invalid, or no pair in it has a label.
    """
    labels, names = _labelled(source)
    scores = []
    missed = Fingerprints()
    for scheme in schemes:
        pages = find_pages(names, places, source.parent)
        seen = _fingerprint(scheme, pages, len(names), jobs)
        missed.add_missed(seen)
        scores.append(
            measure(scheme, labels.pairs, seen.simhashes, precision=precision, unseen=seen.unseen)
        )
    return scores, missed


def score_known_pairs(
    source: Path, dsn: str | None, collection: str, precision: float
) -> tuple[Score, Fingerprints]:
    """Return the score of a collection's simhashes on the pairs in ``source``, by their URLs.

    Raises:
        ArgumentError: the file is invalid, or no pair in it has a label.
    """
    labels, names = _labelled(source)
    with connect(dsn, collection=collection, create=False) as store:
        known = analysis.known_simhashes(store, names)
        score = measure(store.scheme, labels.pairs, known, precision=precision)
    detail = f"collection {collection!r} has no page with this URL; name another --collection"
    unknown = [PageFailure(name, "unreadable", detail) for name in names if name not in known]
    return score, Fingerprints(failures=unknown)


def _labelled(source: Path) -> tuple[Labels, list[str]]:
    """Return the pairs in ``source``, and the pages of the labelled ones.

    Raises:
        ArgumentError: the file is invalid, or no pair in it has a label.
    """
    labels = read_labels(source)
    pairs = [pair for pair in labels.pairs if pair.label != "graded"]
    if not pairs:
        raise ArgumentError(
            "invalid_labels",
            f"{source}: no pair is labelled near-dup or distinct ({labels.unlabelled} rows have "
            "no label yet); label some",
        )
    if labels.unlabelled:
        tell(f"{source}: {labels.unlabelled} rows have no label yet")
    return labels, list(dict.fromkeys(name for pair in pairs for name in (pair.a, pair.b)))


def sample_pages(
    paths: tuple[str, ...],
    size: int,
    seed: int,
    schemes: Sequence[str],
    distance: int,
    borderline: int,
    jobs: int | None,
) -> tuple[list[tuple[str, NearSample]], Fingerprints]:
    """Return each scheme's near pairs in a sample, and the pages without a fingerprint.

    The sample is the same for all schemes: ``size`` of the pages of ``paths``.
    """
    samples = []
    missed = Fingerprints()
    with _rereadable(paths) as files:
        total = count_pages(files)
        if total is None:
            total = sum(1 for _ in read_pages(files))
        chosen = set(Random(seed).sample(range(total), min(size, total)))  # noqa: S311
        for scheme in schemes:
            # Each scheme reads the pages again, and skips the same ones.
            left_out = Counter[str]()
            drawn = (
                (page.url, page)
                for number, page in enumerate(read_pages(files, left_out=left_out))
                if number in chosen
            )
            seen = _fingerprint(scheme, drawn, len(chosen), jobs)
            missed.add_missed(seen)
            # A URL that was crawled twice counts once.
            found = {url: value for url, value in seen.simhashes.items() if value is not None}
            simhashes = np.fromiter(found.values(), dtype=np.uint64, count=len(found))
            titles = [seen.titles[url] for url in found]
            near = sample_near_pairs(
                list(found), simhashes, distance, borderline, seed, titles=titles
            )
            samples.append((scheme, replace(near, unseen=seen.unseen)))
        if not total:
            tell(NO_PAGE)
        tell_left_out(left_out)
    return samples, missed


def sample_collection(
    dsn: str | None, collection: str, size: int, seed: int, distance: int | None, borderline: int
) -> tuple[tuple[str, NearSample], int]:
    """Return the scheme of a collection, near pairs in a sample of its pages, and their distance.

    The distance is the collection's if ``distance`` is None.
    """
    with connect(dsn, collection=collection, create=False) as store:
        urls, simhashes, titles = analysis.sample(store, size, seed)
        bits = store.opened.default_distance if distance is None else distance
        near = sample_near_pairs(urls, simhashes, bits, borderline, seed, titles=titles)
        return (store.scheme, near), bits


def _fingerprint(scheme: str, pages: Iterable[Named], total: int, jobs: int | None) -> Fingerprints:
    seen = Fingerprints()
    done = fingerprint_pages(pages, seen, get_scheme(scheme), choose_jobs(jobs, total))
    for _ in with_progress(done, total, people(), scheme):
        pass
    return seen


@contextmanager
def _rereadable(paths: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield the paths, with stdin copied to a file because the sample needs a second reading."""
    if "-" not in paths:
        yield list(paths)
        return
    with tempfile.TemporaryDirectory(prefix="pgsimhash-") as folder:
        copy = Path(folder, "stdin.jsonl")
        with copy.open("wb") as file:
            shutil.copyfileobj(stdin_bytes(), file)
        yield [str(copy) if path == "-" else path for path in dict.fromkeys(paths)]


_SHOWN = 20


def print_scores(console: Console, scores: Sequence[Score], precision: float) -> None:
    """Print each scheme's curve and its recommended distance."""
    for score in scores:
        table = Table(title=score.measured.scheme, title_justify="left")
        for column in ("distance", "recall", "precision", "found", "false"):
            table.add_column(column, justify="right")
        for at in score.curve:
            recall = "-" if at.recall is None else f"{at.recall:.4f}"
            figures = (f"{at.found:,}", f"{at.false_matches:,}")
            style = "bold" if at is score.best else None
            table.add_row(str(at.distance), recall, f"{at.precision:.4f}", *figures, style=style)
        console.print(table)
        console.print(recommendation(score, precision))
        _print_unseen(console, score.measured.unseen)


def print_sample(console: Console, samples: Sequence[tuple[str, NearSample]]) -> None:
    """Print the number of pairs at each distance for each scheme."""
    for name, sample in samples:
        table = Table(title=f"{name}: {sample.pages:,} pages", title_justify="left")
        for column in ("bits", "pairs", "pairs up to here"):
            table.add_column(column, justify="right")
        for bits, (pairs, total) in enumerate(
            zip(sample.histogram.tolist(), sample.histogram.cumsum().tolist(), strict=True)
        ):
            table.add_row(str(bits), f"{pairs:,}", f"{total:,}")
        console.print(table)
        _print_unseen(console, sample.unseen)


def _print_unseen(console: Console, unseen: Unseen | None) -> None:
    if unseen is not None:
        console.print(unseen.sentence)


def report_failures(missed: Fingerprints) -> None:
    """Print which pages failed, and how many have too little text."""
    for failure in missed.failures[:_SHOWN]:
        tell(f"failed: {failure.url}: {failure.detail}")
    if len(missed.failures) > _SHOWN:
        tell(f"{len(missed.failures) - _SHOWN:,} more pages failed")
    if missed.too_short:
        single = len(missed.too_short) == 1
        counted = "1 page has" if single else f"{len(missed.too_short):,} pages have"
        tell(f"{counted} too little text")
