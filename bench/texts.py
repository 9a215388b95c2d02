"""Compare what marks near-duplicates among plain texts: pgsimhash, datasketch and rensa.

    python bench/texts.py [--rows N] [--words N] [--tool NAME ...] [--pairs N]

The texts are made: words by Zipf's law, each with favourite successors; a tenth of the originals
fill a template, of which they have 30% to 95%. Three tenths are copies of originals with one kind
of edit each. A copy is found if its original is in its cluster; a cluster with two originals is
mixed. Each tool runs in its own process. The peers are to be installed: datasketch by shingles of
three words at .7, rensa by 16 bands. ``--pairs`` prints instead, at each distance, which share of
pairs matches: of copies by kind, and of different texts that fill the same template, verified and
not. The texts have 20 to 2,000 words.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from pgsimhash.analysis import evaluate
from pgsimhash.analysis.pairs import LabelledPair

Words = NDArray[np.int64]
Clusters = Sequence[int]

VOCABULARY = 30_000
TEMPLATES = 500
FOOTERS = 50
EDITS = {"one word": 0.0, "2%": 0.02, "5%": 0.05, "10%": 0.1, "footer": 0.0, "cut by 10%": 0.0}


class Text(NamedTuple):
    """A text, the number of its original, and how it was edited."""

    text: str
    original: int
    edit: str


class Maker:
    """Makes texts, the same ones for a seed."""

    def __init__(self, words: int, seed: int = 1) -> None:
        self._rng = np.random.default_rng(seed)
        self._median = words
        weights = 1 / np.arange(3, VOCABULARY + 3)
        self._ranks = np.cumsum(weights / weights.sum())
        letters = np.array(list("etaoinsrhldcumfpgwybvk"))
        sizes = self._rng.integers(2, 11, VOCABULARY)
        spelled = self._rng.choice(letters, (VOCABULARY, 10))
        self._spelling = ["".join(row[:size]) for row, size in zip(spelled, sizes, strict=True)]
        self._following = self._words(VOCABULARY * 8).reshape(VOCABULARY, 8)
        self._templates = [self._prose(self._length()) for _ in range(TEMPLATES)]
        self._footers = [self._prose(15) for _ in range(FOOTERS)]

    def texts(self, rows: int) -> Iterator[Text]:
        """Yield originals, each perhaps with a copy after it, until there are this many."""
        edits = cycle(EDITS)
        made = number = 0
        while made < rows:
            if number % 10 == 0:
                words = self._template(int(self._rng.integers(TEMPLATES)))
            else:
                words = self._prose(self._length())
            yield Text(self._written(words), number, "")
            made += 1
            if number % 7 < 3 and made < rows:
                edit = next(edits)
                yield Text(self._written(self._edited(words, edit)), number, edit)
                made += 1
            number += 1

    def pairs(self, count: int) -> Iterator[LabelledPair]:
        """Yield this many copies, and as many pairs of texts of one template."""
        edits = cycle(EDITS)
        for _ in range(count):
            words, edit = self._prose(max(self._length(), 20)), next(edits)
            copy = self._edited(words, edit)
            yield LabelledPair(self._written(words), self._written(copy), "copy", edit)
            number = int(self._rng.integers(TEMPLATES))
            one, other = (self._written(self._template(number)) for _ in range(2))
            if one != other:
                yield LabelledPair(one, other, "distinct", "template")

    def _length(self) -> int:
        return int(np.clip(self._rng.lognormal(np.log(self._median), 0.9), 5, 2000))

    def _words(self, count: int) -> Words:
        return np.searchsorted(self._ranks, self._rng.random(count)).astype(np.int64)

    def _prose(self, count: int) -> Words:
        """Half of the words are favourite successors of the one before."""
        words = self._words(count)
        follows, choice = self._rng.random(count) < 0.5, self._rng.integers(0, 8, count)
        for place in np.flatnonzero(follows[1:]) + 1:
            words[place] = self._following[words[place - 1], choice[place]]
        return words

    def _template(self, number: int) -> Words:
        """A template with runs of its words replaced."""
        words = self._templates[number].copy()
        left = (1 - self._rng.uniform(0.3, 0.95)) * len(words)
        while left > 0:
            start = int(self._rng.integers(len(words)))
            run = words[start : start + min(int(self._rng.integers(1, 12)), int(left) + 1)]
            run[:] = self._words(len(run))
            left -= len(run)
        return words

    def _edited(self, words: Words, edit: str) -> Words:
        if edit == "footer":
            return np.concatenate([words, self._footers[self._rng.integers(FOOTERS)]])
        if edit == "cut by 10%":
            return words[: -max(len(words) // 10, 1)]
        edited = words.copy()
        count = max(round(EDITS[edit] * len(words)), 1)
        edited[self._rng.choice(len(words), count, replace=False)] = self._words(count)
        return edited

    def _written(self, words: Words) -> str:
        spelled = [self._spelling[word] for word in words]
        for start in range(0, len(spelled), 12):
            spelled[start] = spelled[start].capitalize()
            spelled[start - 1] += "."
        return " ".join(spelled)


def by_pgsimhash(texts: Sequence[str]) -> Clusters:
    import pyarrow as pa

    from pgsimhash.batch.frames import mark_duplicates

    marked = mark_duplicates(pa.table({"text": texts}), "text")
    clusters: list[int] = marked.column("cluster").to_pylist()
    return clusters


def shingles_of(text: str) -> list[str]:
    words = text.lower().split()
    return [" ".join(words[start : start + 3]) for start in range(max(len(words) - 2, 1))]


def components(matches: Iterator[tuple[int, int]], count: int) -> Clusters:
    """Return the smallest row of the cluster of each."""
    parent = list(range(count))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    for a, b in matches:
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    return [root(row) for row in range(count)]


def by_datasketch(texts: Sequence[str]) -> Clusters:
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=0.7, num_perm=128)

    def matches() -> Iterator[tuple[int, int]]:
        for row, text in enumerate(texts):
            minhash = MinHash(num_perm=128)
            minhash.update_batch([shingle.encode() for shingle in shingles_of(text)])
            for other in index.query(minhash):
                yield row, other
            index.insert(row, minhash)

    return components(matches(), len(texts))


def by_rensa(texts: Sequence[str]) -> Clusters:
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=0.7, num_perm=128, num_bands=16)

    def matches() -> Iterator[tuple[int, int]]:
        for row, text in enumerate(texts):
            minhash = RMinHash(num_perm=128, seed=42)
            minhash.update(shingles_of(text))
            for other in index.query(minhash):
                yield row, other
            index.insert(row, minhash)

    return components(matches(), len(texts))


TOOLS: dict[str, Callable[[Sequence[str]], Clusters]] = {
    "pgsimhash": by_pgsimhash,
    "datasketch": by_datasketch,
    "rensa": by_rensa,
}


def measured(tool: str, rows: int, words: int) -> dict[str, float]:
    """The CPU seconds, megabytes, recall by edit, and mixed clusters of a tool."""
    texts = list(Maker(words).texts(rows))
    plain = [text.text for text in texts]
    TOOLS[tool](plain[:100])  # imports
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clusters = TOOLS[tool](plain)
    figures = {
        "CPU s": time.process_time() - start,
        "MB": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }
    originals: defaultdict[int, set[int]] = defaultdict(set)
    found: defaultdict[str, list[bool]] = defaultdict(list)
    place: dict[int, int] = {}
    for row, text in enumerate(texts):
        originals[clusters[row]].add(text.original)
        place.setdefault(text.original, row)
        if text.edit:
            found[text.edit].append(clusters[row] == clusters[place[text.original]])
    figures |= {edit: sum(found[edit]) / max(len(found[edit]), 1) for edit in EDITS}
    return figures | {"mixed": sum(len(numbers) > 1 for numbers in originals.values())}


@click.command()
@click.option("--rows", default=200_000, show_default=True)
@click.option("--words", default=167, show_default=True, help="The median of a text.")
@click.option("--tool", "tools", multiple=True, default=list(TOOLS), help="By default all.")
@click.option("--pairs", type=int, help="Evaluate this many labelled pairs at each distance.")
@click.option("--one", hidden=True)
def main(rows: int, words: int, tools: tuple[str, ...], pairs: int | None, one: str | None) -> None:
    """Compare tools on the same texts, each in its own process."""
    if pairs is not None:
        for at in evaluate(list(Maker(words).pairs(pairs)), scheme="pgsimhash-text-1").curve[:13]:
            shares = {kind: at.kinds[kind].recall for kind in EDITS}
            false = [each.false_matches / each.distinct for each in (at.counts, at.unverified)]
            print(at.distance, *(f"{kind} {share:.3f}" for kind, share in shares.items()), end=", ")
            print("templates {:.4f}, unverified {:.4f}".format(*false))
        return
    if one is not None:
        print(json.dumps(measured(one, rows, words)))
        return
    for tool in tools:
        command = [sys.executable, __file__, "--one", tool, f"--rows={rows}", f"--words={words}"]
        figures = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        print(tool, *(f"{name} {value:.4g}" for name, value in figures.items()), sep=", ")


if __name__ == "__main__":
    main()
