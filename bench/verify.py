"""Measure the verification of matches, on labelled pages.

``python bench/verify.py FOLDER`` takes the folder of bench/quality.py. Pairs within k bits by their
simhash are verified by the signature, by half of it, and by a second simhash of the same size, with
other features and hashes. For each it prints the thresholds, in differing bits, that reach all
three targets with each of six seeds of the hashes; the wider the range, the safer a choice in it.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pgsimhash import PageError
from pgsimhash.hashing.bits import NEAR_MAX
from pgsimhash.hashing.features import shingles, weigh
from pgsimhash.hashing.hashes import murmur3_64
from pgsimhash.hashing.signature import SAME_BITS_MAX, signature_hashes
from pgsimhash.hashing.tokens import tokenize
from pgsimhash.hashing.votes import vote
from pgsimhash.html import read_article
from pgsimhash.schemes import DEFAULT_SCHEME

if TYPE_CHECKING:
    from bench.labelled import Pair, corpus, read_pairs
else:  # A script finds its neighbours under their own names.
    from labelled import Pair, corpus, read_pairs

DISTANCES = (8, 10, 12, 14)
ORGANIC, HEAVY, PRECISION = 0.998, 0.95, 0.9995
SEEDS = range(6)
TAKEN = "signature of words and 2-shingles, 16 bytes"

Look = Callable[[list[str], int], int]


def hashed(features: Iterable[str], seed: int) -> NDArray[np.uint64]:
    """Hashes of features; seed 0 is the package's own."""
    return murmur3_64([f"{seed} {feature}" if seed else feature for feature in features])


def second_simhash(size: int, count: int) -> Look:
    def look(tokens: list[str], seed: int) -> int:
        features = weigh(tokens, (size,))
        weights = np.array(list(features.values()))
        return sum(
            vote(hashed(features, 1 + count * seed + place), weights) << 64 * place
            for place in range(count)
        )

    return look


def signature_of(*sizes: int, bits: int = 128) -> Look:
    def look(tokens: list[str], seed: int) -> int:
        features = dict.fromkeys(f for size in sizes for f in shingles(tokens, size))
        return signature_hashes(hashed(features, seed)) % (1 << bits)

    return look


LOOKS: dict[str, Look] = {
    "simhash of 2-shingles, 8 bytes": second_simhash(2, 1),
    "simhash of 3-shingles, 8 bytes": second_simhash(3, 1),
    "half a signature of words and 2-shingles, 8 bytes": signature_of(1, 2, bits=64),
    "half a signature of 2-shingles, 8 bytes": signature_of(2, bits=64),
    "half a signature of 3-shingles, 8 bytes": signature_of(3, bits=64),
    "simhash of 2-shingles, 16 bytes": second_simhash(2, 2),
    "simhash of 3-shingles, 16 bytes": second_simhash(3, 2),
    TAKEN: signature_of(1, 2),
    "signature of 2-shingles, 16 bytes": signature_of(2),
    "signature of 3-shingles, 16 bytes": signature_of(3),
}


def read_tokens(folder: Path, names: set[str]) -> dict[str, list[str]]:
    """The tokens of each page with enough of them for a simhash."""
    tokens = {}
    for name in sorted(names):
        try:
            text = read_article((folder / "pages" / f"{name}.html").read_bytes()).text
        except PageError:
            continue
        words = tokenize(text)
        if len(words) >= DEFAULT_SCHEME.min_tokens:
            tokens[name] = words
    return tokens


class Judge:
    """The targets for the verified pairs."""

    def __init__(self, pairs: list[Pair]) -> None:
        kinds = np.array([pair.kind for pair in pairs])
        near = np.array([pair.near for pair in pairs])
        self._organic = near & ~np.char.startswith(kinds, "synthetic")
        self._heavy = near & (kinds == "synthetic-heavy")
        self._distinct = ~near

    def figures(self, matches: NDArray[np.bool_]) -> tuple[float, float, int, float]:
        """Organic recall, heavy recall, false matches, and precision over organic pairs."""
        organic = int((matches & self._organic).sum())
        false = int((matches & self._distinct).sum())
        return (
            organic / max(int(self._organic.sum()), 1),
            int((matches & self._heavy).sum()) / max(int(self._heavy.sum()), 1),
            false,
            organic / max(organic + false, 1),
        )

    def reached(self, matches: NDArray[np.bool_]) -> bool:
        organic, heavy, _, precision = self.figures(matches)
        return organic >= ORGANIC and heavy >= HEAVY and precision >= PRECISION


def apart(pairs: list[Pair], values: dict[str, int]) -> NDArray[np.int64]:
    """The number of differing bits of each pair; 999 if a page has no value."""
    return np.array(
        [
            (values[pair.a] ^ values[pair.b]).bit_count()
            if pair.a in values and pair.b in values
            else 999
            for pair in pairs
        ]
    )


def rows(pairs: list[Pair], tokens: dict[str, list[str]]) -> Iterator[str]:
    def simhash(words: list[str]) -> int:
        features = weigh(words)
        return vote(murmur3_64(features), np.array(list(features.values())))

    judge = Judge(pairs)
    distances = apart(pairs, {name: simhash(words) for name, words in tokens.items()})
    yield "| matches | k | organic | heavy | false | precision |"
    yield "|---|---|---|---|---|---|"

    def row(name: str, k: int, matches: NDArray[np.bool_]) -> str:
        organic, heavy, false, precision = judge.figures(matches)
        return f"| {name} | {k} | {organic:.4f} | {heavy:.4f} | {false} | {precision:.4f} |"

    bits = apart(pairs, {page: LOOKS[TAKEN](words, 0) for page, words in tokens.items()})
    for k in DISTANCES:
        yield row("by the simhash alone", k, distances <= k)
    for k in DISTANCES:
        verified = (distances <= NEAR_MAX) | (distances <= k) & (bits <= SAME_BITS_MAX)
        yield row("beyond 8 bits with a second look", k, verified)
    yield ""
    yield f"| second look | {' | '.join(f'k={k}' for k in DISTANCES)} | us a page |"
    yield f"|---|{'---|' * len(DISTANCES)}---|"
    for name, look in LOOKS.items():
        good = {k: set(range(65)) for k in DISTANCES}
        seconds = 0.0
        for seed in SEEDS:
            start = time.process_time()
            values = {page: look(words, seed) for page, words in tokens.items()}
            seconds += time.process_time() - start
            bits = apart(pairs, values)
            for k, thresholds in good.items():
                thresholds &= {
                    bit for bit in thresholds if judge.reached((distances <= k) & (bits <= bit))
                }
        cost = seconds / len(tokens) / len(SEEDS) * 1e6
        shown = [f"{min(ok)} to {max(ok)}" if ok else "none" for ok in good.values()]
        yield f"| {name} | {' | '.join(shown)} | {cost:.0f} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # readability tells of every page it finds little on
    with corpus(options.folder) as folder:
        pairs = read_pairs(folder)
        tokens = read_tokens(folder, {name for pair in pairs for name in (pair.a, pair.b)})
        for line in rows(pairs, tokens):
            print(line, flush=True)


if __name__ == "__main__":
    main()
