"""Draw the tables of a schema, their columns and their foreign keys as an SVG picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Final

WIDTH: Final = 230
GAP: Final = 90
LINE: Final = 19
COLUMNS: Final = 3

STYLE: Final = """
text { font: 13px system-ui, "Noto Sans", Arial, sans-serif; fill: #1f2328; }
.name { font-weight: 600; fill: #fff; }
.kind { fill: #59636e; font-size: 11px; text-anchor: end; }
.key { font-weight: 600; }
.head { fill: #0969da; }
.box { fill: #fff; stroke: #818b98; }
.line { fill: none; stroke: #8250df; stroke-width: 1.5; }
"""


@dataclass
class Table:
    """A table: its columns are (name, type, meaning, whether it is in the primary key)."""

    name: str
    comment: str
    columns: list[tuple[str, str, str, bool]] = field(default_factory=list)

    @property
    def height(self) -> int:
        """The height of its box."""
        return LINE * (len(self.columns) + 1) + 12


def entity_diagram(tables: list[Table], references: list[tuple[str, str]]) -> str:
    """Return an SVG picture. Each reference is the referencing and the referenced table."""
    places = _places(tables, references)
    height = max(y + table.height for table in tables for _, y in [places[table.name]]) + 20
    width = COLUMNS * (WIDTH + GAP) - GAP + 40
    shapes = [_line(places, one, other) for one, other in references if one != other]
    shapes += [_box(table, *places[table.name]) for table in tables]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<title>Tables and their foreign keys</title><style>{STYLE}</style>"
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="#8250df"/></marker></defs>'
        + "".join(shapes)
        + "</svg>"
    )


def _places(tables: list[Table], references: list[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """Return the corner of each table.

    The table with most references is in the middle, with those that reference no other, and the
    rest on both sides: so no line crosses a box.
    """
    referenced = [other for _, other in references]
    centre = max(set(referenced), key=referenced.count)
    sides = {one for one, other in references if other == centre} - {centre}
    bottoms = [20] * COLUMNS
    places = {}
    for table in sorted(tables, key=lambda each: (each.name != centre, -each.height)):
        column = min(0, 2, key=bottoms.__getitem__) if table.name in sides else 1
        places[table.name] = (20 + column * (WIDTH + GAP), bottoms[column])
        bottoms[column] += table.height + 30
    return places


def _box(table: Table, x: int, y: int) -> str:
    parts = [
        f'<rect class="box" x="{x}" y="{y}" width="{WIDTH}" height="{table.height}" rx="4"/>',
        f'<rect class="head" x="{x}" y="{y}" width="{WIDTH}" height="{LINE + 5}" rx="4"/>',
        f'<text class="name" x="{x + 8}" y="{y + 17}">{escape(table.name)}</text>',
    ]
    for number, (name, kind, _, key) in enumerate(table.columns, 1):
        bottom = y + 18 + number * LINE
        parts.append(f'<text class="{"key" if key else ""}" x="{x + 8}" y="{bottom}">{name}</text>')
        short = kind.replace("timestamp with time zone", "timestamptz")
        parts.append(f'<text class="kind" x="{x + WIDTH - 8}" y="{bottom}">{escape(short)}</text>')
    return "".join(parts)


def _line(places: dict[str, tuple[int, int]], one: str, other: str) -> str:
    """Return a curve between the heads of two tables, through the gaps between columns."""
    (x1, y1), (x2, y2) = places[one], places[other]
    # The shift separates lines in one gap.
    start, end = y1 + 12, y2 + 12
    if x1 == x2:
        bend = x1 - 18
        path = f"M{x1} {start} C{bend} {start} {bend} {end} {x2} {end}"
    elif x1 < x2:
        path = f"M{x1 + WIDTH} {start} C{x1 + WIDTH + GAP} {start} {x2 - GAP} {end} {x2} {end}"
    else:
        right = x2 + WIDTH
        path = f"M{x1} {start} C{x1 - GAP} {start} {right + GAP} {end} {right} {end}"
    return f'<path class="line" d="{path}" marker-end="url(#arrow)"/>'
