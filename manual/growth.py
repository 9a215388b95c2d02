"""Draw docs/growth.svg from the table of bench/README.md: python -m manual.growth."""

import math
import re
from typing import Final

from manual.picture import ROOT, STYLE

LINES: Final = {
    "scan with `bit_count`: lookup, 8 bits": ("scan", "only"),
    "pgvector HNSW: lookup, 8 bits": ("HNSW finds {:.0%}", "only"),
    "pgvector IVF: lookup, 8 bits": ("IVF finds {:.0%}", "only"),
    "`find`, 8 bits": ("find, 8 bits", "both"),
    "`find`, 3 bits": ("find, 3 bits", "both"),
}
"""The rows of the table that are drawn, with labels and classes of the style.

A label has the share of copies that an index finds among most pages.
"""
_STYLE: Final = """.line{fill:none;stroke-width:2.5;stroke:#0a5dc2}.line.only{stroke:#b04304}
.grid{stroke:#d5dbe1}@media (prefers-color-scheme:dark){.line{stroke:#6cb2ff}
.line.only{stroke:#ff9d5c}.grid{stroke:#30363d}}"""
_LEFT, _RIGHT, _TOP, _BOTTOM = 100, 700, 84, 400
_SPACING = 20  # between labels

Points = list[tuple[float, float]]


def read_table(text: str) -> tuple[list[int], dict[str, list[float | None]]]:
    """Return the sizes in the table "How cost grows", and each row's medians by its name."""
    section = text.partition("\n## How cost grows\n")[2].partition("\n## ")[0]
    head, _, *rows = (
        line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")
    )
    medians = {what: [_median(cell) for cell in cells] for what, *cells in rows}
    return [int(size.replace(",", "")) for size in head if size], medians


def _median(cell: str) -> float | None:
    return None if cell == "-" else float(re.split(", |; ", cell)[0].replace(",", ""))


def growth() -> str:
    """Return the picture as SVG; both axes are logarithmic."""
    sizes, table = read_table((ROOT / "bench" / "README.md").read_text(encoding="utf-8"))
    medians = [value for what in LINES for value in table[what] if value is not None]
    low, high = math.floor(math.log10(min(medians))), math.ceil(math.log10(max(medians)))

    def across(size: int) -> float:
        share = math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0])
        return round(_LEFT + share * (_RIGHT - _LEFT), 1)

    def up(value: float) -> float:
        share = (math.log10(value) - low) / (high - low)
        return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)

    parts = [
        f'<path class="grid" d="M{_LEFT} {up(10.0**power)}H{_RIGHT}"/><text class="q" '
        f'x="{_LEFT - 12}" y="{up(10.0**power) + 4}" text-anchor="end">{10.0**power:,g} ms</text>\n'
        for power in range(low, high + 1)
    ]
    parts += [
        f'<text class="q" x="{across(size)}" y="{_BOTTOM + 24}" text-anchor="middle">'
        f"{size:,} pages</text>\n"
        for size in sizes
    ]
    lines: list[tuple[Points, str, str]] = []
    for what, (label, kind) in LINES.items():
        pairs = zip(sizes, table[what], strict=True)
        points = [(across(size), up(value)) for size, value in pairs if value is not None]
        found = table.get(what.replace("lookup, 8 bits", "found"), [])
        lines.append((points, label.format(*found[-1:]), kind))
    last = -math.inf
    for points, label, kind in sorted(lines, key=lambda line: line[0][-1][1]):
        x, y = points[-1]
        path = "L".join(f"{at} {height}" for at, height in points)
        parts.append(f'<path class="line {kind}" d="M{path}"/>')
        parts += [f'<circle class="{kind}" cx="{at}" cy="{y}" r="4"/>' for at, y in points]
        if x == _RIGHT:
            last = y = max(y, last + _SPACING)
        parts.append(f'<text class="h {kind}" x="{x + 12}" y="{y + 5}">{label}</text>\n')
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 444" width="880" height="444" '
        'role="img" aria-label="CPU milliseconds of a lookup by the number of pages">'
        f"<style>{STYLE}\n{_STYLE}</style>\n"
        '<rect class="paper" width="880" height="444" rx="10"/>\n'
        '<text class="h" x="24" y="36">One lookup</text><text class="q" x="24" y="56">'
        "CPU time of client and server by the number of stored pages; both axes are logarithmic. "
        f"HNSW and IVF are pgvector's</text>\n{''.join(parts)}</svg>\n"
    )


if __name__ == "__main__":
    (ROOT / "docs" / "growth.svg").write_text(growth(), encoding="utf-8")
