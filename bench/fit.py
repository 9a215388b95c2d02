"""Fit the coefficients of block weights, and estimate their quality on other sites.

``python bench/fit.py FOLDER ...`` takes the sets of bench/quality.py. Sources are divided into
folds; the pages of a fold are evaluated with coefficients fitted without any page of its sources.
Then all are fitted together, and the coefficients are printed as ``COEFFICIENTS`` of
``pgsimhash/html/weights.py`` (``--write`` writes them there). In addition to the labelled pages
there are generated ones (bench/made_pages.py) with a small weight: they represent index pages with
a footer of prose, of which the sets have few.

The fit maximizes the expected share of copies that a store finds, less the expected false matches
(bench/fitting.py). Signatures are those of the package's coefficients; all generated pairs of
different pages count up to 8 bits. Sources count by the root of their pairs. Coefficients are held
near those of the package, and the weights of occurrences are not fitted.

``--simhashes FILE`` writes the left-out simhashes for ``bench/quality.py --left-out``. It needs
scipy, and 4 GB for two sets of 5,000 pages; ``--jobs`` folds run at a time.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from pgsimhash.analysis import evaluate
from pgsimhash.analysis.evaluation import Evaluation, Print
from pgsimhash.analysis.pairs import LabelledPair
from pgsimhash.hashing.bits import NEAR_MAX
from pgsimhash.hashing.signature import verified
from pgsimhash.html import weights
from pgsimhash.html.weights import COEFFICIENTS
from pgsimhash.schemes.features import OCCURRENCES

sys.path.append(str(Path(__file__).parents[1]))

from bench.fitting import (
    KINDS,
    NAMES,
    Floats,
    Observed,
    PolicySettings,
    Problem,
    observe,
    vote_by,
    worths,
)
from bench.made_pages import Real, make
from bench.quality import (
    DISTANCES,
    LabelledSet,
    Pair,
    sets_in,
    table,
)

FOLDS = 4
MANY = 1200
"""A source with more pairs counts like one with this many when folds are filled."""
HARDLY = 0.3
"""Different pages whose bits differ with a higher probability for any coefficients are ignored."""

START = np.array(
    [COEFFICIENTS[name] for name in NAMES] + [np.log(OCCURRENCES[kind]) for kind in KINDS[1:]]
)

CHOSEN = PolicySettings()
Pages = dict[str, Observed | None]


def read_source(labelled: LabelledSet, source: str) -> tuple[Pages, list[Pair]]:
    """Return the pages of a source, with the generated ones, and all their pairs.

    The name of a page begins with the name of its set.
    """
    ids = [page for page, row in labelled.rows.items() if row.get("repo", "") == source]
    name = f"{labelled.name}/{{}}".format
    pages: Pages = {}
    reals = []
    for page in ids:
        html = labelled.html(page)
        pages[name(page)] = observe(html)
        row = labelled.rows[page]
        if not row.get("family", "").startswith("syn:") or not page.startswith("s"):
            xpath = row.get("gt_source", "")
            reals.append(Real(name(page), source, html, labelled.text(page), xpath))
    known = {real.page for real in reals}
    own = [
        (name(pair.a), name(pair.b), pair.near)
        for pair in labelled.pairs
        if name(pair.a) in known and name(pair.b) in known
    ]
    made = make(reals, own, crc32(source.encode()))
    pages.update((page.page, observe(page.html)) for page in made.pages)
    return pages, [Pair(pair.a, pair.b, pair.near, pair.kind, source) for pair in made.pairs]


def read_all(sets: Sequence[LabelledSet], jobs: int) -> tuple[Pages, list[Pair]]:
    """Read the pages of all sets, and generate more."""
    pages: Pages = {}
    pairs = [
        replace(pair, a=f"{labelled.name}/{pair.a}", b=f"{labelled.name}/{pair.b}")
        for labelled in sets
        for pair in labelled.pairs
    ]
    with ProcessPoolExecutor(jobs) as pool:
        for labelled in sets:
            sources = sorted({row.get("repo", "") for row in labelled.rows.values()})
            for read, made in pool.map(read_source, [labelled] * len(sources), sources):
                pages.update(read)
                pairs += made
    return pages, [pair for pair in pairs if pages.get(pair.a) and pages.get(pair.b)]


def deal(pairs: Sequence[Pair]) -> dict[str, int]:
    """Assign each source to a fold, so that folds have similar numbers of pairs."""
    counts = Counter(pair.source for pair in pairs)
    filled = [0] * FOLDS
    folds = {}
    for source, count in counts.most_common():
        folds[source] = filled.index(min(filled))
        filled[folds[source]] += min(count, MANY)
    return folds


def fit_without(
    pages: Mapping[str, Observed], pairs: Sequence[Pair], settings: PolicySettings
) -> Floats:
    """Return coefficients fitted to these pairs."""
    worth = worths(pairs, settings)
    counted = [pair for pair, value in zip(pairs, worth, strict=True) if value > 0]
    limits = limits_of(pages, counted, settings)
    return Problem(pages, counted, limits).fit(START, worth[worth > 0], settings)


def limits_of(
    pages: Mapping[str, Observed], pairs: Sequence[Pair], settings: PolicySettings
) -> NDArray[np.int64]:
    """Return the largest distance at which the signatures of each pair confirm a match, or -1."""
    names = {name for pair in pairs for name in (pair.a, pair.b)}
    signed = {name: vote_by(pages[name], START, settings)[1] for name in names}

    def limit(pair: Pair) -> int:
        if pair.kind.startswith("made") and not pair.near:
            return NEAR_MAX
        a, b = signed[pair.a], signed[pair.b]
        return max((bits for bits in range(NEAR_MAX + 1) if verified(bits, a, b)), default=-1)

    return np.array([limit(pair) for pair in pairs])


class Fitter:
    """The pages and pairs of a run, and the folds of their sources."""

    def __init__(
        self,
        pages: Mapping[str, Observed],
        pairs: list[Pair],
        sources: Mapping[str, str],
        jobs: int,
    ) -> None:
        self.pages, self.jobs = pages, jobs
        settings = CHOSEN
        apart = Problem(pages, pairs, np.zeros(len(pairs), np.int64)).apart(START, settings)
        self.pairs = [pair for pair, p in zip(pairs, apart, strict=True) if pair.near or p < HARDLY]
        self.folds = deal(pairs)
        self._sources = dict(sources)

    def fold_of(self, page: str, pair: Pair) -> int:
        """The fold of a page of a pair; the two pages of a pair may have different sources."""
        return self.folds.get(self._sources.get(page, pair.source), 0)

    def _without(self, fold: int, settings: PolicySettings) -> Floats:
        left = [
            pair
            for pair in self.pairs
            if fold not in (self.fold_of(pair.a, pair), self.fold_of(pair.b, pair))
        ]
        return fit_without(self.pages, left, settings)

    def left_out(self, settings: PolicySettings) -> list[Floats]:
        """Return the coefficients fitted without each fold."""
        global _fitter
        _fitter = self  # Processes that are forked have it without it being sent.
        with ProcessPoolExecutor(self.jobs) as pool:
            return list(pool.map(_fit_fold, range(FOLDS), [settings] * FOLDS))


_fitter: Fitter


def _fit_fold(fold: int, settings: PolicySettings) -> Floats:
    return _fitter._without(fold, settings)


def evaluated(
    prints: Mapping[str, Print],
    pairs: Sequence[Pair],
    group: Callable[[Pair], str],
    *,
    verify: bool,
) -> Evaluation:
    """Evaluate pairs by group, with or without their signatures."""
    labelled = [
        LabelledPair(pair.a, pair.b, "copy" if pair.near else "distinct", group(pair))
        for pair in pairs
    ]
    return evaluate(
        labelled, prints if verify else {page: Print(made.simhash) for page, made in prints.items()}
    )


def kinds_table(prints: Mapping[str, Print], pairs: Sequence[Pair]) -> str:
    """Return the recall at 3, 5 and 8 bits by kind, and at 8 bits with verification."""

    def group(pair: Pair) -> str:
        return f"{'copies' if pair.near else 'different'}, {pair.kind}"

    bare, signed = (evaluated(prints, pairs, group, verify=verify) for verify in (False, True))
    points = [*(bare.curve[k] for k in DISTANCES), signed.curve[DISTANCES[-1]]]
    rows = []
    for kind, counts in bare.curve[0].kinds.items():
        found = [point.kinds[kind] for point in points]
        cells = (
            [f"{one.recall:.3f}" for one in found]
            if counts.copies
            else [str(one.false_matches) for one in found]
        )
        rows.append((kind, str(counts.copies + counts.distinct), *cells))
    return table(("pairs", "number", *map(str, DISTANCES), "signatures agree"), rows)


def print_coefficients(fitted: Mapping[str, float], write: bool) -> None:
    """Print the table of coefficients, or write it to the package."""
    if not write:
        print("\n".join(f'    "{name}": {value:.4g},' for name, value in fitted.items()))
        return
    path = Path(str(weights.__file__))
    source = path.read_text(encoding="utf-8")
    for name, value in fitted.items():
        source, times = re.subn(
            rf'^(    "{name}": )-?[\d.]+,$', rf"\g<1>{value:.4g},", source, flags=re.MULTILINE
        )
        assert times == 1, f"{path} has {name} {times} times"
    path.write_text(source, encoding="utf-8")


def main() -> None:
    """Fit, evaluate with sources left out, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=1, help="folds at a time")
    parser.add_argument("--write", action="store_true", help="put the coefficients into place")
    parser.add_argument("--simhashes", type=Path, help="write the left-out simhashes here")
    options = parser.parse_args()
    with sets_in(options.folders) as sets:
        read, pairs = read_all(sets, options.jobs)
    pages = {name: page for name, page in read.items() if page is not None}
    sources = {
        f"{labelled.name}/{page}": row.get("repo", "")
        for labelled in sets
        for page, row in labelled.rows.items()
    }
    fitter = Fitter(pages, pairs, sources, options.jobs)
    fitted = fitter.left_out(CHOSEN)
    folds = {
        name: fitter.fold_of(name, pair)
        for pair in pairs
        for name in (pair.a, pair.b)
        if name in sources
    }
    votes = {name: vote_by(pages[name], fitted[fold], CHOSEN) for name, fold in folds.items()}
    prints = {name: Print(simhash, signature) for name, (simhash, signature) in votes.items()}
    for labelled in sets:
        own = [pair for pair in pairs if pair.a.startswith(f"{labelled.name}/")]
        own = [pair for pair in own if not pair.kind.startswith("made")]
        print(f"\n{labelled.name}, sources left out:\n\n{kinds_table(prints, own)}")
    if options.simhashes:
        options.simhashes.write_text(
            json.dumps({page: made.simhash for page, made in prints.items()})
        )
    coefficients = fit_without(pages, fitter.pairs, CHOSEN)
    rounded = dict(zip(NAMES, coefficients[: len(NAMES)].tolist(), strict=True))
    print()
    print_coefficients(rounded, options.write)


if __name__ == "__main__":
    main()
