"""Draw charts as inline SVG, from numbers only; the page defines the colours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from pgsimhash.analysis.measures import AtDistance, Histogram

# Narrow, so that phones hardly shrink the text.
_WIDTH: Final = 400
_LEFT: Final = 40
_RIGHT: Final = 390
_TOP: Final = 16
_HALF: Final = 80
_CURVE: Final = 180
_TICKS: Final = 8


def histogram_chart(
    above: tuple[str, Histogram], below: tuple[str, Histogram] | None, distance: int | None
) -> str:
    """Return a histogram with a bar per distance, for one set of pairs or two mirrored sets.

    Heights are logarithmic, so that one false match is visible next to ten thousand pairs.

    Args:
        above: the name, which is also the class of the bars, and the counts; shape (n,).
        below: the same for the bars below the axis, if any.
        distance: the distance to mark.
    """
    places = len(above[1])
    step = (_RIGHT - _LEFT) / places
    base = _TOP + _HALF
    bottom = base + (_HALF if below else 0)
    parts = [*_bars(*above, base, -1, step), *(_bars(*below, base, 1, step) if below else ())]
    parts.append(f'<path class="axis" d="M{_LEFT} {base}H{_RIGHT}"/>')
    for bits in range(0, places, 8 if places > 32 else 2):
        x = _LEFT + (bits + 0.5) * step
        parts.append(f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{bits}</text>')
    parts.append(_words(_RIGHT, bottom + 30, "differing bits", "end"))
    if distance is not None:
        x = _LEFT + (distance + 1) * step
        parts.append(f'<path class="mark" d="M{x:.1f} {_TOP - 8}V{bottom}"/>')
        parts.append(_words(x + 4, _TOP - 4, f"distance {distance}"))
    return _svg(bottom + 36, "Pairs by distance in bits", parts)


def curve_chart(curve: Sequence[AtDistance], best: AtDistance | None, floor: float) -> str:
    """Return a chart of recall and precision by distance.

    Args:
        curve: the points, by ascending distance.
        best: the point to mark.
        floor: the lowest value of the axis, below 1.
    """
    step = (_RIGHT - _LEFT) / max(len(curve) - 1, 1)
    bottom = _TOP + _CURVE

    def height(value: float) -> float:
        return bottom - _CURVE * max(value - floor, 0) / (1 - floor)

    parts = []
    for tick in range(5):
        value = floor + (1 - floor) * tick / 4
        y = height(value)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_RIGHT}"/>')
        parts.append(_words(_LEFT - 4, y + 4, f"{value:.3f}".rstrip("0").rstrip("."), "end"))
    for at in curve:
        if at.distance % 2 == 0:
            x = _LEFT + at.distance * step
            parts.append(_words(x, bottom + 15, str(at.distance), "middle"))
    parts.append(_words(_RIGHT, bottom + 30, "distance, in bits", "end"))
    for name in ("recall", "precision"):
        measures = [(at.distance, getattr(at, name)) for at in curve]
        values = [(bits, value) for bits, value in measures if value is not None]
        points = [(_LEFT + bits * step, height(value)) for bits, value in values]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline class="{name}" points="{line}"/>')
        for (bits, value), (x, y) in zip(values, points, strict=True):
            title = f"<title>{name} {value:.4f} at distance {bits}</title>"
            parts.append(f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="3">{title}</circle>')
    if best is not None:
        x = _LEFT + best.distance * step
        parts.append(f'<path class="mark" d="M{x:.1f} {_TOP - 8}V{bottom}"/>')
        end = best.distance > len(curve) / 2
        anchor = "end" if end else "start"
        label = f"distance {best.distance}"
        parts.append(_words(x + (-4 if end else 4), _TOP - 4, label, anchor))
    return _svg(bottom + 36, "Recall and precision by distance", parts)


def curve_floor(curves: Sequence[Sequence[AtDistance]]) -> float:
    """Return the start of the axis: a round number below every recall and precision."""
    values = [at.precision for curve in curves for at in curve]
    values += [at.recall for curve in curves for at in curve if at.recall is not None]
    lowest = min(values, default=0.0)
    return next((floor for floor in (0.99, 0.96, 0.9, 0.8, 0.6) if lowest >= floor), 0.0)


def _bars(name: str, counts: Histogram, base: float, direction: int, step: float) -> Iterator[str]:
    highest = math.log1p(int(counts.max(initial=0))) or 1.0
    for bits, count in enumerate(counts.tolist()):
        if count:
            tall = max((_HALF - 4) * math.log1p(count) / highest, 2.0)
            y = base - tall if direction < 0 else base
            box = f'x="{_LEFT + bits * step + 0.3:.1f}" y="{y:.1f}"'
            size = f'width="{max(step - 0.6, 1):.1f}" height="{tall:.1f}"'
            title = f"<title>{count:,} {name} at {bits} bits</title>"
            yield f'<rect class="{name}" {box} {size}>{title}</rect>'


def _words(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _svg(height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img"><title>{title}</title>'
        + "".join(parts)
        + "</svg>"
    )
