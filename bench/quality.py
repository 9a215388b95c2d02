"""How well and how fast pages become simhashes, on labelled pages.

``python bench/quality.py FOLDER`` takes a folder with ``pages/*.html``, ``gt/*.txt`` (the main
texts), ``pages.csv`` (with an ``id``) and ``pairs.csv`` (``a,b,label,kind``), or one that has
them in ``dev/`` or packed as ``dev.tar.xz``. ``--schemes`` adds the other schemes that ship,
``--plain`` recipes without any main content, ``--peers`` those of other
packages, installed into a temporary folder. All read the same pages, one after the other, so that
their times compare; recipes on the default's main content are given it, and their times are
without it. Loops that numba compiles are loaded before.

Pairs labelled ``near-dup`` should match and pairs labelled ``distinct`` should not; others are
left out. Precision is over organic pairs. A page without a fingerprint matches nothing. MinHash
has three Jaccard similarities in place of the distances: .9, .8 and .7.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from pgsimhash import PageError, fingerprint
from pgsimhash.hashes import murmur3_64
from pgsimhash.page.clean import clean
from pgsimhash.page.content import main_content
from pgsimhash.page.decode import decode
from pgsimhash.page.markdown import render
from pgsimhash.page.parse import parse
from pgsimhash.schemes import DEFAULT_SCHEME, FAST_SCHEME

if TYPE_CHECKING:
    from bench.installed import install_peers, make_importable
    from bench.judging import KINDS, LARGEST, PRECISION, Judge, Pair, read_pairs
    from bench.recipes import MINHASH_CUTS, PACKAGES, RECIPES, Page, Signature, chosen
else:  # A script finds its neighbours under their own names.
    from installed import install_peers, make_importable
    from judging import KINDS, LARGEST, PRECISION, Judge, Pair, read_pairs
    from recipes import MINHASH_CUTS, PACKAGES, RECIPES, Page, Signature, chosen

DISTANCES = (3, 5, 8)
OURS = DEFAULT_SCHEME.name
STEPS = ("decode", "parse", "clean", "content", "markdown", "simhash")
ENOUGH_WORDS = 25


@dataclass
class Measured:
    """What became of one page: signatures (None: no fingerprint) and seconds, by recipe."""

    page: str
    words: int
    signatures: dict[str, Signature | None] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    steps: list[float] = field(default_factory=list)


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


def measure(folder: Path, page: str, recipes: list[str]) -> Measured:
    """Run the recipes on one page, and ours a second time step by step."""
    html = (folder / "pages" / f"{page}.html").read_bytes()
    truth = folder / "gt" / f"{page}.txt"
    words = len(truth.read_text(encoding="utf-8").split()) if truth.is_file() else 0
    measured = Measured(page, words)
    start = perf_counter()
    try:
        measured.signatures[OURS] = fingerprint(html).simhash
    except PageError:
        measured.signatures[OURS] = None
    measured.seconds[OURS] = perf_counter() - start
    measured.steps = time_steps(html)
    read = Page(html)
    assert read.article
    for name in recipes:
        start = perf_counter()
        measured.signatures[name] = RECIPES[name][1](read)
        measured.seconds[name] = perf_counter() - start
    return measured


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
        with suppress(PageError):
            DEFAULT_SCHEME.simhash(plain)
        lap()
    return [b - a for a, b in pairwise(times)]


def measure_all(
    folder: Path, pages: list[str], jobs: int, recipes: list[str], peers: Path | None
) -> list[Measured]:
    """Measure every page, with progress on a terminal."""
    done: list[Measured] = []
    run = partial(measure, folder, recipes=recipes)
    with ProcessPoolExecutor(jobs, initializer=prepare, initargs=(peers,)) as pool:
        for result in pool.map(run, pages, chunksize=4):
            done.append(result)
            if sys.stderr.isatty():
                print(f"\r{len(done)} of {len(pages)} pages", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return done


def prepare(peers: Path | None) -> None:
    """Find the peers, load compiled loops, and silence readability, which logs a lot."""
    make_importable(peers)
    logging.disable(logging.CRITICAL)
    for scheme in (FAST_SCHEME, DEFAULT_SCHEME):
        fingerprint(f"<p>{'boats and goats ' * 20}", scheme=scheme)


def report(measured: list[Measured], pairs: list[Pair]) -> None:
    """Print the tables."""
    judges = {
        name: Judge(
            {page.page: page.signatures[name] for page in measured},
            pairs,
            MINHASH_CUTS if "MinHash" in name else DISTANCES,
        )
        for name in measured[0].signatures
    }
    first = judges[OURS]
    print(
        f"{len(measured)} pages; {len(first.near['organic'])} organic copies, "
        f"{sum(len(first.near[kind]) for kind in KINDS)} synthetic ones, "
        f"{len(first.distinct)} distinct pairs\n"
    )
    print("| recipe | k | organic recall | precision | false matches | light | medium | heavy |")
    print("|---|---|---|---|---|---|---|---|")
    for name, judge in judges.items():
        for k in judge.cuts:
            synthetic = " | ".join(f"{judge.recall(kind, k):.3f}" for kind in KINDS)
            print(
                f"| {name} | {k} | {judge.recall('organic', k):.4f} | {judge.precision(k):.4f} "
                f"| {judge.false_matches(k)} | {synthetic} |"
            )
    farthest = first.largest_precise()
    if farthest is None:
        print(f"\n{OURS}: at no distance is the precision {PRECISION} or better")
    else:
        print(
            f"\n{OURS}: precision stays at {PRECISION} or better up to k={farthest} "
            f"(of {LARGEST} tried), where recall is {first.recall('organic', farthest):.4f}"
        )
    report_times(measured)
    short = [page for page in measured if page.signatures[OURS] is None]
    wrong = [page.page for page in short if page.words >= ENOUGH_WORDS]
    print(
        f"\n{len(short)} pages have no fingerprint; {len(wrong)} of them have {ENOUGH_WORDS} "
        f"words or more of main text{': ' if wrong else ''}{' '.join(wrong)}"
    )


def report_times(measured: list[Measured]) -> None:
    """Print the times of all recipes and of each step of ours."""
    print("\n| ms a page | median | mean | times ours |\n|---|---|---|---|")
    for name in measured[0].seconds:
        times = [page.seconds[name] * 1e3 for page in measured]
        ratios = [page.seconds[name] / page.seconds[OURS] for page in measured]
        print(
            f"| {name} | {statistics.median(times):.2f} | {statistics.mean(times):.2f} "
            f"| {statistics.median(ratios):.2f} |"
        )
    print("\n| step | mean ms | share |\n|---|---|---|")
    rows = [page.steps for page in measured if len(page.steps) == len(STEPS)]
    means = [statistics.mean(row[i] for row in rows) for i in range(len(STEPS))]
    for step, mean in zip(STEPS, means, strict=True):
        print(f"| {step} | {mean * 1e3:.2f} | {mean / sum(means):.0%} |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, help="stop after about this many pages")
    parser.add_argument("--jobs", type=int, default=1, help="processes (times are best with 1)")
    parser.add_argument("--schemes", action="store_true", help="the other schemes that ship too")
    parser.add_argument("--plain", action="store_true", help="raw HTML, visible text too")
    parser.add_argument("--peers", action="store_true", help="other packages too, from PyPI")
    options = parser.parse_args()
    with corpus(options.folder) as folder, tempfile.TemporaryDirectory() as peers:
        installed = install_peers(PACKAGES.values(), Path(peers)) if options.peers else []
        wished = {"scheme": options.schemes, "plain": options.plain, "peer": options.peers}
        recipes = chosen([kind for kind, wish in wished.items() if wish], installed)
        pairs = read_pairs(folder)
        wanted: dict[str, None] = {}
        for pair in sorted(pairs, key=lambda pair: murmur3_64([pair.a + pair.b])[0]):
            if options.pages is None or len(wanted) < options.pages:
                wanted.update(dict.fromkeys((pair.a, pair.b)))
        pairs = [pair for pair in pairs if pair.a in wanted and pair.b in wanted]
        measured = measure_all(folder, list(wanted), options.jobs, recipes, Path(peers))
        report(measured, pairs)


if __name__ == "__main__":
    main()
