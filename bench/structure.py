"""Measure how well the simhash of a page's structure separates templates, on dated pages.

``python bench/structure.py FOLDER`` takes the folder of bench/quality.py, whose ``pages.csv`` has
``id``, ``repo``, ``family`` (equal for versions of one page) and ``date``. Consecutive versions of
a page mostly have one template, else there was a redesign. Two pages of one site and day mostly
have one template; pages of two sites do not.
"""

from __future__ import annotations

import argparse
import csv
import logging
import random
import time
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pgsimhash import PageError, fingerprint, hamming_distance
from pgsimhash.html.charset import decode
from pgsimhash.html.parse import parse
from pgsimhash.html.structure import structure_of

if TYPE_CHECKING:
    from bench.labelled import corpus
else:  # A script finds its neighbours under their own names.
    from labelled import corpus

MANY_SITES = "scrapinghub/"
THRESHOLDS = (4, 8, 12, 16)
SAMPLE = 3000
TIMED = 300

Page = dict[str, str]
PagePairs = list[tuple[str, str]]


def choose(pages: list[Page]) -> dict[str, PagePairs]:
    """The kinds of pairs."""
    rng = random.Random(1)
    synthetic = [page for page in pages if page["family"].startswith("syn:")]
    news = [page for page in pages if page["repo"].startswith(MANY_SITES)]
    news = [page for page in news if page not in synthetic]
    dated = [page for page in pages if not page["repo"].startswith(MANY_SITES)]
    sites, days, versions = defaultdict(list), defaultdict(list), defaultdict(list)
    for page in sorted(dated, key=lambda page: page["date"]):
        sites[page["repo"]].append(page["id"])
        days[page["repo"], page["date"][:10]].append(page["id"])
        versions[page["repo"], page["family"]].append(page["id"])
    kinds: dict[str, PagePairs] = {}
    for site in sites:
        following = [family for (repo, _), family in versions.items() if repo == site]
        kinds[f"versions that follow, {site}"] = [
            pair for family in following for pair in pairwise(family)
        ]
    kinds["synthetic edits and their original"] = [
        (page["id"], page["family"].removeprefix("syn:")) for page in synthetic
    ]
    kinds["two pages of one site and day"] = [
        (a, b)
        for ids in days.values()
        if len(ids) > 1
        for a, b in (rng.sample(ids, 2) for _ in range(min(40, 2 * len(ids))))
    ]
    kinds["two news sites"] = [
        (a["id"], b["id"]) for a, b in (rng.sample(news, 2) for _ in range(SAMPLE))
    ]
    kinds["two of the other sites"] = [
        (rng.choice(one), rng.choice(other))
        for one, other in combinations(sites.values(), 2)
        for _ in range(SAMPLE // len(sites))
    ]
    return kinds


def read(folder: Path, names: Iterable[str]) -> dict[str, int]:
    """The structure of each page that has one."""
    shapes = {}
    for name in names:
        root = parse(decode((folder / "pages" / f"{name}.html").read_bytes()))
        if root is not None:
            shapes[name] = structure_of(root)
    return shapes


def cost(folder: Path, names: list[str]) -> tuple[float, float]:
    """CPU seconds for the structure and for the whole fingerprint of a page."""
    shape = whole = 0.0
    for name in names:
        html = (folder / "pages" / f"{name}.html").read_bytes()
        root = parse(decode(html))
        start = time.process_time()
        if root is not None:
            structure_of(root)
        middle = time.process_time()
        try:
            fingerprint(html)
        except PageError:
            continue
        shape += middle - start
        whole += time.process_time() - middle
    return shape / len(names), whole / len(names)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # readability tells of every page it finds little on
    with corpus(options.folder) as folder:
        with (folder / "pages.csv").open(encoding="utf-8", newline="") as file:
            pages = list(csv.DictReader(file))
        kinds = choose(pages)
        shapes = read(folder, (page["id"] for page in pages))
        print(f"| pairs | number | median | 95% | {' | '.join(f'<= {t}' for t in THRESHOLDS)} |")
        print(f"|---|---|---|---|{'---|' * len(THRESHOLDS)}")
        for kind, pairs in kinds.items():
            bits = np.array(
                [
                    hamming_distance(shapes[a], shapes[b])
                    for a, b in pairs
                    if a in shapes and b in shapes
                ]
            )
            shares = " | ".join(f"{np.mean(bits <= threshold):.3f}" for threshold in THRESHOLDS)
            middle, high = np.percentile(bits, (50, 95))
            print(f"| {kind} | {len(bits)} | {middle:.0f} | {high:.0f} | {shares} |")
        names = [page["id"] for page in pages]
        random.Random(1).shuffle(names)
        shape, whole = cost(folder, names[:TIMED])
        print(
            f"\n{shape * 1e3:.2f} ms of the {whole * 1e3:.2f} ms that a page takes: "
            f"{shape / whole:.0%}"
        )


if __name__ == "__main__":
    main()
