"""How well signatures separate near pairs from distinct ones, and the tables of the results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.labelled import SYNTHETIC, LabelledSet, Pair
    from bench.recipes import Signature, distance
else:  # A script finds its neighbours under their own names.
    from labelled import SYNTHETIC, LabelledSet, Pair
    from recipes import Signature, distance

DISTANCES = (3, 5, 8)
FAR = 999
"""The distance of a page without a signature from all others."""
Signatures = Mapping[str, Signature | None]


@dataclass
class Tally:
    """Pairs, and the numbers of them within each distance."""

    within: list[int] = field(default_factory=lambda: [0] * len(DISTANCES))
    pairs: int = 0

    def count(self, apart: int, cuts: Sequence[int]) -> None:
        self.pairs += 1
        for place, cut in enumerate(cuts):
            self.within[place] += apart <= cut

    def share(self, place: int) -> float:
        return self.within[place] / self.pairs if self.pairs else float("nan")


Tallies = dict[str, Tally]


def tally(
    signatures: Signatures,
    pairs: Iterable[Pair],
    groups: Callable[[Pair], Iterable[str]],
    cuts: Sequence[int] = DISTANCES,
) -> Tallies:
    """Count the pairs of each group."""
    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    for pair in pairs:
        a, b = signatures.get(pair.a), signatures.get(pair.b)
        apart = FAR if a is None or b is None else distance(a, b)
        for group in groups(pair):
            tallies[group].count(apart, cuts)
    return dict(tallies)


def by_family(pair: Pair) -> list[str]:
    return [pair.family]


def by_source(pair: Pair) -> list[str]:
    return [f"{pair.source}: {'copies' if pair.near else 'different'}"]


def by_kind(labelled: LabelledSet) -> Callable[[Pair], list[str]]:
    """Group by kind, near and different pairs separately."""

    def groups(pair: Pair) -> list[str]:
        suffix = ": different" if not pair.near else ": copies"
        if pair.kind in SYNTHETIC:
            suffix = ": edited copies"
        return [f"{group}{suffix}" for group in labelled.groups(pair)]

    return groups


def cell(found: Tally | None, *, counted: bool) -> str:
    """The cells of a table: shares of copies found, numbers of different pages matched."""
    if found is None or not found.pairs:
        return "-"
    if counted:
        return " ".join(map(str, found.within))
    return " ".join(f"{found.share(place):.3f}" for place in range(len(DISTANCES)))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table with columns of equal width."""
    texts = [[str(value) for value in row] for row in (head, *rows)]
    widths = [max(len(row[place]) for row in texts) for place in range(len(head))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in texts
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def overview(
    judged: Mapping[str, Tallies], more: Mapping[str, Sequence[object]], heads: Sequence[str]
) -> str:
    """Return a row for each recipe; ``more`` has the cells for the additional ``heads``."""
    rows = []
    for name, tallies in judged.items():
        synthetic = [tallies.get(kind, Tally()) for kind in SYNTHETIC]
        rows.append(
            (
                name,
                cell(tallies.get("organic"), counted=False),
                cell(tallies.get("different"), counted=True),
                *(
                    " ".join(f"{found.share(place):.3f}" for found in synthetic)
                    if any(found.pairs for found in synthetic)
                    else "-"
                    for place in (2, 0)
                ),
                *more.get(name, ["-"] * len(heads)),
            )
        )
    return table(
        (
            "text",
            "copies found at 3, 5, 8",
            "different matched",
            "light, medium, heavy at 8",
            "the same at 3",
            *heads,
        ),
        rows,
    )


def side_by_side(judged: Mapping[str, Tallies]) -> str:
    """Return a row for each group, with a column for each recipe."""
    groups = sorted({group for tallies in judged.values() for group in tallies})
    pairs = {group: tallies[group].pairs for tallies in judged.values() for group in tallies}
    return table(
        ("pairs at 3, 5, 8", "number", *judged),
        (
            (
                group,
                pairs[group],
                *(
                    cell(tallies.get(group), counted=group.endswith("different"))
                    for tallies in judged.values()
                ),
            )
            for group in groups
        ),
    )
