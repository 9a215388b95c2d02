"""Measure how fast text becomes a simhash, alongside peers from PyPI with the same shingles.

    python bench/text.py [--words N] [--texts N] [--rounds N]

The texts consist of invented words with realistic frequencies; half have a few characters outside
ASCII. Peers are installed into a temporary folder. All alternate in one process, and each ratio is
the median over the rounds of the ratio within a round.
"""

from __future__ import annotations

import random
import statistics
import string
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from pgsimhash.hashing.features import shingles
from pgsimhash.hashing.tokens import tokenize
from pgsimhash.schemes import TEXT_SCHEME, Scheme, ShingleWeights, simhash_texts

if TYPE_CHECKING:
    from bench.installed import install_peers, make_importable
else:  # A script finds its neighbours under their own names.
    from installed import install_peers, make_importable

PEERS = ("gaoya", "simhash", "datasketch")
SHINGLES = ((1, 2), (1,), (2,), (3,))
REFERENCE = "gaoya"

Run = Callable[[list[str]], object]


def make_texts(count: int, words: int, chance: random.Random) -> list[str]:
    """Return texts with this many words, capitals and punctuation."""
    vocabulary = [
        "".join(chance.choices(string.ascii_lowercase, k=chance.randint(2, 10)))
        for _ in range(20_000)
    ]
    frequencies = [1 / (rank + 3) for rank in range(len(vocabulary))]
    texts = []
    for number in range(count):
        drawn = chance.choices(vocabulary, frequencies, k=words)
        for start in range(0, words, 12):
            drawn[start] = drawn[start].capitalize()
            end = min(start + 11, words - 1)
            drawn[end] += "."
        if number % 2:
            drawn[5], drawn[40 % words] = f"\u201c{drawn[5]}\u201d", "caf\u00e9"
        texts.append(" ".join(drawn))
    return texts


def contestants(sizes: tuple[int, ...], peers: list[str]) -> dict[str, Run]:
    """Return the functions from texts to simhashes or signatures of shingles of these sizes."""
    scheme = Scheme("bench", TEXT_SCHEME.extract, ShingleWeights(sizes))
    found: dict[str, Run] = {
        "simhash_texts": lambda texts: list(simhash_texts(texts, scheme)),
        "Scheme.simhash": lambda texts: [scheme.simhash(text) for text in texts],
    }

    def features(text: str) -> list[str]:
        tokens = tokenize(text)
        return [feature for size in sizes for feature in shingles(tokens, size)]

    if "gaoya" in peers:
        from gaoya.simhash import SimHashStringIndex

        index = SimHashStringIndex(lowercase=True, ngram_range=(sizes[0], sizes[-1])).index
        found["gaoya"] = lambda texts: [index.tokenize_and_simhash(text) for text in texts]
    if "simhash" in peers:
        from simhash import Simhash

        found["leonsim simhash"] = lambda texts: [Simhash(features(text)).value for text in texts]
    if "datasketch" in peers:
        from datasketch import MinHash

        def minhash(text: str) -> object:
            signature = MinHash(num_perm=128)
            signature.update_batch([feature.encode() for feature in features(text)])
            return signature

        found["datasketch MinHash 128"] = lambda texts: [minhash(text) for text in texts]
    return found


def measure(runs: dict[str, Run], texts: list[str], rounds: int) -> dict[str, list[float]]:
    """Return, for each, the microseconds per text in each round, after a warm-up."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run(texts[:4])
    for _ in range(rounds):
        for name, run in runs.items():
            started = time.process_time()
            run(texts)
            times[name].append((time.process_time() - started) / len(texts) * 1e6)
    return times


@click.command(help=__doc__)
@click.option("--words", default=600, show_default=True)
@click.option("--texts", "count", default=200, show_default=True)
@click.option("--rounds", default=9, show_default=True)
def main(words: int, count: int, rounds: int) -> None:
    """Measure and print."""
    texts = make_texts(count, words, random.Random(1))
    with tempfile.TemporaryDirectory() as folder:
        peers = install_peers(PEERS, Path(folder))
        make_importable(Path(folder))
        table = Table("shingles", "", "\u00b5s a text", f"times the speed of {REFERENCE}")
        for sizes in SHINGLES:
            times = measure(contestants(sizes, peers), texts, rounds)
            for name, took in times.items():
                pairs = zip(times.get(REFERENCE, []), took, strict=False)
                ratio = statistics.median([a / b for a, b in pairs]) if REFERENCE in times else 0.0
                label = "+".join(map(str, sizes)) if name == next(iter(times)) else ""
                table.add_row(label, name, f"{statistics.median(took):.0f}", f"{ratio:.2f}")
            table.add_section()
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
