"""Measure how well and how fast pages become simhashes, on labelled pages.

``python bench/quality.py FOLDER ...`` takes sets of pages, see bench/labelled.py. For each it
prints how many copies are found and how many different pages are matched at 3, 5 and 8 bits, in
total, by kind and by source; how many pages have no fingerprint although their main text has 25
words; and the milliseconds per page. The ceiling accompanies the default scheme: its features,
unweighted, of the true main text. ``--schemes`` adds the other built-in schemes, ``--plain``
recipes without main content (the literal one is slow). ``--peers`` adds other packages, installed
into a temporary folder: extractors with the default's features of their text, and other hashes of
pgsimhash's text. All read the same pages, one recipe after the other, so times are comparable.

The default's coefficients are fitted to such sets. ``--left-out FILE`` adds its simhashes by
coefficients fitted without a page's source, as bench/fit.py writes them: the expectation for other
pages.

A page without a fingerprint matches nothing; the literal recipe gives every page a simhash. MinHash
has three Jaccard similarities instead of distances: .9, .8 and .7.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from pgsimhash.hashing.hashes import murmur3_64

if TYPE_CHECKING:
    from bench.installed import install_peers, make_importable
    from bench.judging import (
        DISTANCES,
        Tallies,
        by_family,
        by_kind,
        by_source,
        overview,
        side_by_side,
        tally,
    )
    from bench.labelled import LabelledSet, corpora, corpus
    from bench.recipes import (
        CEILING,
        MINHASH_CUTS,
        OURS,
        PACKAGES,
        RECIPES,
        Page,
        Signature,
        chosen,
    )
else:  # A script finds its neighbours under their own names.
    from installed import install_peers, make_importable
    from judging import (
        DISTANCES,
        Tallies,
        by_family,
        by_kind,
        by_source,
        overview,
        side_by_side,
        tally,
    )
    from labelled import LabelledSet, corpora, corpus
    from recipes import CEILING, MINHASH_CUTS, OURS, PACKAGES, RECIPES, Page, Signature, chosen

__all__ = ["corpus", "main"]

ENOUGH_WORDS = 25
LEFT_OUT = f"{OURS}, sources left out"


@dataclass
class Measured:
    """The results of one page: signatures (None: no fingerprint) and seconds, by recipe."""

    page: str
    signatures: dict[str, Signature | None] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def measure(labelled: LabelledSet, recipes: Sequence[str], page: str) -> Measured:
    """Run the recipes on one page."""
    read = Page(labelled.html(page), labelled.text(page))
    measured = Measured(page)
    for name in recipes:
        if "simhash" in PACKAGES.get(name, ""):
            assert read.article  # Those that hash our text have it beforehand.
        start = perf_counter()
        measured.signatures[name] = RECIPES[name][1](read)
        measured.seconds[name] = perf_counter() - start
    return measured


def measure_all(
    labelled: LabelledSet, recipes: Sequence[str], jobs: int, peers: Path | None
) -> list[Measured]:
    """Measure the pages of all pairs, with progress on a terminal."""
    pages = list(dict.fromkeys(name for pair in labelled.pairs for name in (pair.a, pair.b)))
    done: list[Measured] = []
    run = partial(measure, labelled, recipes)
    warm = (peers, recipes)
    with ProcessPoolExecutor(jobs, initializer=prepare, initargs=warm) as pool:
        for result in pool.map(run, pages, chunksize=4):
            done.append(result)
            if sys.stderr.isatty():
                print(f"\r{labelled.name}: {len(done)} of {len(pages)}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return done


def prepare(peers: Path | None, recipes: Sequence[str]) -> None:
    """Load the peers and the libraries of recipes, and silence verbose loggers."""
    make_importable(peers)
    logging.disable(logging.CRITICAL)
    for name in recipes:
        RECIPES[name][1](Page(f"<p>{'boats and goats ' * 20}".encode(), "boats and goats " * 20))


@dataclass
class Report:
    """The results of one set, by recipe."""

    name: str
    pages: int
    families: dict[str, Tallies]
    kinds: dict[str, Tallies]
    sources: dict[str, Tallies]
    without: dict[str, int]
    """The number of pages without a fingerprint but with enough main text."""
    milliseconds: dict[str, float]

    def text(self) -> str:
        more = {
            name: (self.without[name], f"{self.milliseconds[name]:.2f}")
            if name in self.milliseconds
            else (self.without[name], "-")
            for name in self.families
        }
        families = self.families[CEILING]
        heads = (f"none, of {ENOUGH_WORDS}+ words", "ms")
        parts = [
            f"# {self.name}: {self.pages} pages, "
            + ", ".join(f"{found.pairs} {family}" for family, found in sorted(families.items())),
            overview(self.families, more, heads),
            "Copies: shares found. Different pages: how many matched.",
            side_by_side(self.kinds),
        ]
        if len(self.sources[CEILING]) > 1:
            parts.append(side_by_side(self.sources))
        return "\n\n".join(parts)


def report(
    labelled: LabelledSet,
    measured: Sequence[Measured],
    left_out: Mapping[str, int | None] | None,
    beside: Sequence[str],
) -> Report:
    """Evaluate all recipes; those in ``beside`` by kind and source as well."""
    by_recipe: dict[str, dict[str, Signature | None]] = {}
    if left_out is not None:
        by_recipe[LEFT_OUT] = {
            page.page: left_out.get(f"{labelled.name}/{page.page}") for page in measured
        }
    for name in measured[0].signatures:
        by_recipe[name] = {page.page: page.signatures[name] for page in measured}
    cuts = {name: MINHASH_CUTS if "MinHash" in name else DISTANCES for name in by_recipe}
    enough = [page.page for page in measured if labelled.words[page.page] >= ENOUGH_WORDS]
    detailed = {name: by_recipe[name] for name in by_recipe if name in beside}
    return Report(
        labelled.name,
        len(measured),
        {
            name: tally(signatures, labelled.pairs, by_family, cuts[name])
            for name, signatures in by_recipe.items()
        },
        {
            name: tally(signatures, labelled.pairs, by_kind(labelled), cuts[name])
            for name, signatures in detailed.items()
        },
        {
            name: tally(signatures, labelled.pairs, by_source, cuts[name])
            for name, signatures in detailed.items()
        },
        {
            name: sum(signatures[page] is None for page in enough)
            for name, signatures in by_recipe.items()
        },
        {
            name: statistics.median(page.seconds[name] for page in measured) * 1e3
            for name in measured[0].seconds
        },
    )


def first_pairs(labelled: LabelledSet, pages: int) -> None:
    """Sample pairs of about this many pages, reproducibly."""
    wanted: dict[str, None] = {}
    for pair in sorted(labelled.pairs, key=lambda pair: murmur3_64([pair.a + pair.b])[0]):
        if len(wanted) < pages:
            wanted.update(dict.fromkeys((pair.a, pair.b)))
    labelled.pairs = [pair for pair in labelled.pairs if pair.a in wanted and pair.b in wanted]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--pages", type=int, help="stop after about this many pages of each set")
    parser.add_argument("--jobs", type=int, default=1, help="processes (times are best with 1)")
    parser.add_argument("--schemes", action="store_true", help="the other schemes that ship too")
    parser.add_argument("--plain", action="store_true", help="raw HTML, visible text too")
    parser.add_argument("--peers", action="store_true", help="other packages too, from PyPI")
    parser.add_argument("--all-beside", action="store_true", help="by kind and source for all")
    parser.add_argument("--left-out", type=Path, help="simhashes written by bench/fit.py")
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    options = parser.parse_args()
    left_out = json.loads(options.left_out.read_text()) if options.left_out else None
    with corpora(options.folders) as sets, tempfile.TemporaryDirectory() as peers:
        installed = install_peers(PACKAGES.values(), Path(peers)) if options.peers else []
        wished = {"scheme": options.schemes, "plain": options.plain, "peer": options.peers}
        recipes = chosen([kind for kind, wish in wished.items() if wish], installed)
        beside = [*recipes, LEFT_OUT] if options.all_beside else [LEFT_OUT, OURS, CEILING]
        reports = []
        for labelled in sets:
            if options.pages is not None:
                first_pairs(labelled, options.pages)
            measured = measure_all(labelled, recipes, options.jobs, Path(peers))
            reports.append(report(labelled, measured, left_out, beside))
            if not options.json:
                print(reports[-1].text() + "\n", flush=True)
        if options.json:
            print(json.dumps([asdict(one) for one in reports], indent=1))


if __name__ == "__main__":
    main()
