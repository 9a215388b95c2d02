"""Labelled pairs of pages, and how well signatures tell the near from the distinct ones."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.recipes import Signature, distance
else:  # A script finds its neighbours under their own names.
    from recipes import Signature, distance

KINDS = ("synthetic-light", "synthetic-medium", "synthetic-heavy")
PRECISION = 0.995
LARGEST = 16
FAR = 999
"""The distance of a page without a signature from all others."""


@dataclass
class Pair:
    """Two pages and whether they should match."""

    a: str
    b: str
    near: bool
    kind: str


def read_pairs(folder: Path) -> list[Pair]:
    """Read the labelled pairs, without those that are neither near nor distinct."""
    with (folder / "pairs.csv").open(encoding="utf-8", newline="") as file:
        return [
            Pair(row["a"], row["b"], row["label"] == "near-dup", row["kind"])
            for row in csv.DictReader(file)
            if row["label"] in ("near-dup", "distinct")
        ]


class Judge:
    """The distances of all pairs under one recipe."""

    def __init__(
        self, signatures: dict[str, Signature | None], pairs: Iterable[Pair], cuts: tuple[int, ...]
    ) -> None:
        self.cuts = cuts
        self.near: dict[str, list[int]] = {"organic": [], **{kind: [] for kind in KINDS}}
        self.distinct: list[int] = []
        for pair in pairs:
            a, b = signatures.get(pair.a), signatures.get(pair.b)
            apart = FAR if a is None or b is None else distance(a, b)
            if not pair.near:
                self.distinct.append(apart)
            else:
                self.near[pair.kind if pair.kind in KINDS else "organic"].append(apart)

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
