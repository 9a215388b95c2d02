"""How well and how fast pages become simhashes, on labelled pages.

``python bench/quality.py FOLDER`` takes a folder with ``pages/*.html``, ``gt/*.txt`` (the main
texts), ``pages.csv`` (with an ``id``) and ``pairs.csv`` (``a,b,label,kind``), or one that has
them in ``dev/`` or packed as ``dev.tar.xz``. The package's recipe and the literal one read the
same pages, one after the other, so that their times compare.

Pairs labelled ``near-dup`` should match and pairs labelled ``distinct`` should not; others are
left out. Precision is over organic pairs. A page without a fingerprint matches nothing; the
literal recipe gives every page a simhash, empty ones too.
"""

from __future__ import annotations

import argparse
import csv
import logging
import statistics
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from pgsimhash import PageError, fingerprint, hamming_distance
from pgsimhash.features import weigh
from pgsimhash.hashes import murmur3_64
from pgsimhash.page.clean import clean
from pgsimhash.page.content import main_content
from pgsimhash.page.decode import decode
from pgsimhash.page.markdown import render
from pgsimhash.page.parse import parse
from pgsimhash.tokens import tokenize
from pgsimhash.votes import vote

if TYPE_CHECKING:
    from bench.literal import literal_simhash
else:  # A script finds its neighbours under their own names.
    from literal import literal_simhash

DISTANCES = (3, 5, 8)
STEPS = ("decode", "parse", "clean", "content", "markdown", "features", "votes")
KINDS = ("synthetic-light", "synthetic-medium", "synthetic-heavy")
PRECISION = 0.995
ENOUGH_WORDS = 25
LARGEST = 16


@dataclass
class Measured:
    """What became of one page: simhashes (None: no fingerprint) and seconds."""

    page: str
    ours: int | None
    literal: int
    ours_seconds: float
    literal_seconds: float
    steps: list[float]
    words: int


@dataclass
class Pair:
    """Two pages and whether they should match."""

    a: str
    b: str
    near: bool
    kind: str


@contextmanager
def corpus(folder: Path) -> Iterator[Path]:
    """Yield the folder that holds the pages, unpacked for as long as it is needed."""
    for place in (folder, folder / "dev"):
        if (place / "pairs.csv").is_file():
            yield place
            return
    packed = folder / "dev.tar.xz"
    if not packed.is_file():
        sys.exit(f"{folder} holds neither pairs.csv nor dev/pairs.csv nor dev.tar.xz")
    with tempfile.TemporaryDirectory() as unpacked, tarfile.open(packed) as archive:
        archive.extractall(unpacked, filter="data")
        yield Path(unpacked) / "dev"


def read_pairs(folder: Path) -> list[Pair]:
    """Read the labelled pairs, without those that are neither near nor distinct."""
    with (folder / "pairs.csv").open(encoding="utf-8", newline="") as file:
        return [
            Pair(row["a"], row["b"], row["label"] == "near-dup", row["kind"])
            for row in csv.DictReader(file)
            if row["label"] in ("near-dup", "distinct")
        ]


def measure(folder: Path, page: str) -> Measured:
    """Run both recipes on one page, and ours a second time step by step."""
    html = (folder / "pages" / f"{page}.html").read_bytes()
    truth = folder / "gt" / f"{page}.txt"
    words = len(truth.read_text(encoding="utf-8").split()) if truth.is_file() else 0
    start = perf_counter()
    try:
        ours: int | None = fingerprint(html).simhash
    except PageError:
        ours = None
    middle = perf_counter()
    literal = literal_simhash(html)
    end = perf_counter()
    return Measured(page, ours, literal, middle - start, end - middle, time_steps(html), words)


def time_steps(html: bytes) -> list[float]:
    """Return the seconds of each of :data:`STEPS`."""
    times = [perf_counter()]

    def lap() -> None:
        times.append(perf_counter())

    text = decode(html)
    lap()
    root = parse(text)
    lap()
    if root is not None:
        outline = clean(root)
        lap()
        content = main_content(root, outline)
        lap()
        plain = render(content, None).plain
        lap()
        features = weigh(tokenize(plain))
        lap()
        if features:
            vote(murmur3_64(features), np.array(list(features.values())))
        lap()
    return [b - a for a, b in pairwise(times)]


def measure_all(folder: Path, pages: list[str], jobs: int) -> list[Measured]:
    """Measure every page, with progress on a terminal."""
    done: list[Measured] = []
    with ProcessPoolExecutor(jobs, initializer=quiet) as pool:
        for result in pool.map(measure, [folder] * len(pages), pages, chunksize=4):
            done.append(result)
            if sys.stderr.isatty():
                print(f"\r{len(done)} of {len(pages)} pages", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return done


def quiet() -> None:
    """Silence readability, which logs every page it finds little on."""
    logging.disable(logging.CRITICAL)


class Judge:
    """The distances of all pairs under one recipe."""

    def __init__(self, simhashes: dict[str, int | None], pairs: Iterable[Pair]) -> None:
        self.near: dict[str, list[int]] = {"organic": [], **{kind: [] for kind in KINDS}}
        self.distinct: list[int] = []
        for pair in pairs:
            a, b = simhashes.get(pair.a), simhashes.get(pair.b)
            distance = 65 if a is None or b is None else hamming_distance(a, b)
            if not pair.near:
                self.distinct.append(distance)
            else:
                self.near[pair.kind if pair.kind in KINDS else "organic"].append(distance)

    def recall(self, kind: str, k: int) -> float:
        found = self.near[kind]
        return sum(distance <= k for distance in found) / len(found) if found else float("nan")

    def false_matches(self, k: int) -> int:
        return sum(distance <= k for distance in self.distinct)

    def precision(self, k: int) -> float:
        right = sum(distance <= k for distance in self.near["organic"])
        return right / max(right + self.false_matches(k), 1)

    def largest_precise(self) -> int | None:
        """Return the largest k up to which precision stays at :data:`PRECISION` or above."""
        precise = None
        for k in range(LARGEST + 1):
            if self.precision(k) < PRECISION:
                break
            precise = k
        return precise


def report(measured: list[Measured], pairs: list[Pair]) -> None:
    """Print the tables."""
    judges = {
        "pgsimhash": Judge({page.page: page.ours for page in measured}, pairs),
        "literal": Judge({page.page: page.literal for page in measured}, pairs),
    }
    first = judges["pgsimhash"]
    print(
        f"{len(measured)} pages; {len(first.near['organic'])} organic copies, "
        f"{sum(len(first.near[kind]) for kind in KINDS)} synthetic ones, "
        f"{len(first.distinct)} distinct pairs\n"
    )
    print("| recipe | k | organic recall | precision | false matches | light | medium | heavy |")
    print("|---|---|---|---|---|---|---|---|")
    for name, judge in judges.items():
        for k in DISTANCES:
            synthetic = " | ".join(f"{judge.recall(kind, k):.3f}" for kind in KINDS)
            print(
                f"| {name} | {k} | {judge.recall('organic', k):.4f} | {judge.precision(k):.4f} "
                f"| {judge.false_matches(k)} | {synthetic} |"
            )
    for name, judge in judges.items():
        farthest = judge.largest_precise()
        if farthest is None:
            print(f"\n{name}: at no distance is the precision {PRECISION} or better")
        else:
            print(
                f"\n{name}: precision stays at {PRECISION} or better up to k={farthest} "
                f"(of {LARGEST} tried), where recall is {judge.recall('organic', farthest):.4f}"
            )
    report_times(measured)
    short = [page for page in measured if page.ours is None]
    wrong = [page.page for page in short if page.words >= ENOUGH_WORDS]
    print(
        f"\n{len(short)} pages have no fingerprint; {len(wrong)} of them have {ENOUGH_WORDS} "
        f"words or more of main text{': ' if wrong else ''}{' '.join(wrong)}"
    )


def report_times(measured: list[Measured]) -> None:
    """Print the times of both recipes and of each step of ours."""
    ours = [page.ours_seconds * 1e3 for page in measured]
    literal = [page.literal_seconds * 1e3 for page in measured]
    ratios = [b / a for a, b in zip(ours, literal, strict=True)]
    print("\n| ms a page | median | mean |\n|---|---|---|")
    for name, times in (("pgsimhash", ours), ("literal", literal)):
        print(f"| {name} | {statistics.median(times):.2f} | {statistics.mean(times):.2f} |")
    print(
        f"| literal / pgsimhash | {statistics.median(ratios):.1f} "
        f"| {sum(literal) / sum(ours):.1f} |"
    )
    print("\n| step | mean ms | share |\n|---|---|---|")
    means = [statistics.mean(page.steps[i] for page in measured) for i in range(len(STEPS))]
    for step, mean in zip(STEPS, means, strict=True):
        print(f"| {step} | {mean * 1e3:.2f} | {mean / sum(means):.0%} |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, help="stop after about this many pages")
    parser.add_argument("--jobs", type=int, default=1, help="processes (times are best with 1)")
    options = parser.parse_args()
    with corpus(options.folder) as folder:
        pairs = read_pairs(folder)
        wanted: dict[str, None] = {}
        for pair in sorted(pairs, key=lambda pair: murmur3_64([pair.a + pair.b])[0]):
            if options.pages is None or len(wanted) < options.pages:
                wanted.update(dict.fromkeys((pair.a, pair.b)))
        pairs = [pair for pair in pairs if pair.a in wanted and pair.b in wanted]
        report(measure_all(folder, list(wanted), options.jobs), pairs)


if __name__ == "__main__":
    main()
