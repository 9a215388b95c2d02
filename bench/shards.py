"""Prefixes over several servers: how even the load is, what a hot one does, what a lost one costs.

    python bench/shards.py [--rows 5000000] [--nodes 16 ...] [--layout 22+21+21] [--distance 3]

Simhashes are drawn at random, with a share of them crowded around few, as templates and boilerplate
crowd pages. Each permutation's prefixes are spread over the nodes by a hash, in so many shards that
whole ones move where a node is lost. Printed are the rows and the probes of each node against the
mean, and after a loss what cannot be found until it is replaced, and what the others take over.
"""

from __future__ import annotations

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from pgsimhash.hashes import murmur3_mix
from pgsimhash.layout import Layout, get_layout
from pgsimhash.permutation import Permutation

Numbers = NDArray[np.uint64]

CROWDS = 20
"""So many simhashes have crowds around them, each half as large as the one before."""

SHARDS_A_NODE = 16
QUERIES = 20_000


def crowded(rows: int, share: float, rng: np.random.Generator) -> Numbers:
    """Return simhashes in random order, of which a share lies within 8 bits of a few."""
    values = rng.integers(0, 2**64, rows, dtype=np.uint64)
    centres = rng.integers(0, 2**64, CROWDS, dtype=np.uint64)
    weights = 0.5 ** np.arange(1, CROWDS + 1)
    crowd = rng.choice(centres, int(rows * share), p=weights / weights.sum())
    for _ in range(8):
        crowd ^= np.uint64(1) << rng.integers(0, 64, len(crowd), dtype=np.uint64)
    values[: len(crowd)] = crowd
    return rng.permutation(np.unique(values))


def prefixes(permutation: Permutation, simhashes: Numbers) -> Numbers:
    return permutation.permute(simhashes) >> np.uint64(64 - permutation.width)


def shards(permutation: Permutation, keys: Numbers, count: int) -> Numbers:
    """Return the shard of each prefix of a permutation."""
    salt = np.uint64(permutation.number << 48)
    return murmur3_mix(keys ^ salt) % np.uint64(count)


def simulate(
    layout: Layout, distance: int, known: Numbers, queries: Numbers, nodes: int
) -> list[str]:
    """Return what one table row says of it."""
    count = nodes * SHARDS_A_NODE
    rows = np.zeros(count)
    probes = np.zeros(count)
    asked = np.zeros((len(queries), nodes), dtype=bool)
    hottest = 0
    for permutation, radius in zip(layout.permutations, layout.radii(distance), strict=True):
        keys, sizes = np.unique(prefixes(permutation, known), return_counts=True)
        hottest = max(hottest, int(sizes.max()))
        rows += np.bincount(shards(permutation, keys, count).astype(int), sizes, count)
        own = prefixes(permutation, queries)
        for flip in permutation.flips(radius):
            there = shards(permutation, own ^ np.uint64(flip), count).astype(int)
            probes += np.bincount(there, minlength=count)
            asked[np.arange(len(queries)), there % nodes] = True
    owner = np.arange(count) % nodes
    load = np.bincount(owner, rows)
    work = np.bincount(owner, probes)
    lost = int(load.argmax())
    # Its shards go to the others in turn, from their replicas.
    rest = [node for node in range(nodes) if node != lost]
    after = load.copy()
    for turn, shard in enumerate(np.flatnonzero(owner == lost)):
        after[rest[turn % len(rest)]] += rows[shard]
    return [
        f"{load.max() / load.mean():.2f}",
        f"{work.max() / work.mean():.2f}",
        f"{hottest:,}",
        f"{asked.sum(axis=1).mean():.1f}",
        f"{asked[:, lost].mean():.1%}",
        f"{after[rest].max() / load.mean():.2f}",
    ]


@click.command()
@click.option("--rows", default=5_000_000, show_default=True)
@click.option("--distance", default=3, show_default=True)
@click.option("--layout", default="22+21+21", show_default=True)
@click.option("--nodes", default=[4, 16, 64], multiple=True, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(rows: int, distance: int, layout: str, nodes: tuple[int, ...], seed: int) -> None:
    """Draw, spread, and print."""
    rng = np.random.default_rng(seed)
    table = Table(
        "crowded",
        "nodes",
        "rows, most by mean",
        "probes, most by mean",
        "hottest prefix, rows",
        "nodes asked",
        "lookups that ask a lost node",
        "rows after, most by mean before",
        title=f"{rows:,} simhashes, {layout}, distance {distance}, {SHARDS_A_NODE} shards a node",
    )
    for share in (0.0, 0.2):
        drawn = crowded(rows + QUERIES, share, rng)
        known, queries = drawn[QUERIES:], drawn[:QUERIES]
        for count in nodes:
            found = simulate(get_layout(layout), distance, known, queries, count)
            table.add_row(f"{share:.0%}", str(count), *found)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
