"""Measure how well a changed text is detected since a page's last version.

    python bench/updates.py FOLDER ...

FOLDER has pairs.csv (a, b, label, kind), pages/<id>.html and gt/<id>.txt, the labelled main text.
For each kind of pair, and by whether its main texts are equal, nearly equal or changed, a line
shows in how many per cent the simhash differs, and the digest of the text, which decides whether
``updated`` pages are worth keeping.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

from pgsimhash import PageError, fingerprint
from pgsimhash.hashing.tokens import tokenize
from pgsimhash.schemes import Fingerprint


def changed(folder: Path, pair: dict[str, str]) -> str:
    """Return how the labelled main texts of a pair differ."""
    texts = [(folder / "gt" / f"{pair[side]}.txt").read_text(encoding="utf-8") for side in "ab"]
    if tokenize(texts[0]) == tokenize(texts[1]):
        return "the same text"
    return "a few words" if pair["label"] == "near-dup" else "another text"


@cache
def read(path: Path) -> Fingerprint | None:
    """Return the fingerprint of a page, or None."""
    try:
        return fingerprint(path.read_bytes(), markdown=False)
    except PageError:
        return None


def measure(folder: Path) -> None:
    """Print the results of one folder."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    with (folder / "pairs.csv").open(encoding="utf-8", newline="") as lines:
        for pair in csv.DictReader(lines):
            if pair["label"] == "distinct" or "other-path" in pair["kind"]:
                continue
            a, b = (read(folder / "pages" / f"{pair[side]}.html") for side in "ab")
            if a is None or b is None:
                continue
            count = counts[pair["kind"], changed(folder, pair)]
            count[0] += 1
            count[1] += a.simhash != b.simhash
            count[2] += a.text_digest != b.text_digest
    print(f"{folder.name}: pairs; per cent with another simhash; with another digest")
    for (kind, text), (pairs, simhashes, digests) in sorted(counts.items()):
        print(f"{kind:20} {text:14} {pairs:6,} {simhashes / pairs:6.0%} {digests / pairs:6.0%}")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        measure(Path(name))
