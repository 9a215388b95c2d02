"""Render explanations and reports as HTML pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from pgsimhash.analysis.explanation import Explanation
from pgsimhash.analysis.reports import Report
from pgsimhash.html_reports.render import render_page

WIDTH: Final = 400
HEIGHT: Final = 170
LEFT: Final = 4
BASE: Final = 130
_TALLEST: Final = 108
_FEWEST: Final = 9


def explanation_page(explanation: Explanation) -> str:
    """Return an explanation as one HTML page."""
    result = "near-duplicates" if explanation.matches else "no match"
    return render_page(
        "explanation",
        f"Two pages: {result}, {explanation.distance} bits apart",
        explanation=explanation,
    )


def report_page(report: Report) -> str:
    """Return a report as one HTML page that needs no network and runs no script.

    The arguments of :func:`pgsimhash.analysis.report` bound its size.
    """
    return render_page(
        "report",
        f"Near-duplicates in {report.status.collection}",
        report=report,
        status=report.status,
        bars=bars(report.distances),
        most=max((host.duplicates for host in report.hosts), default=0) or 1,
        size=_size,
    )


class Bar(NamedTuple):
    """A bar of the histogram: its place and size, its number of bits, and its number of pages."""

    x: float
    y: float
    width: float
    height: float
    bits: int
    pages: int
    label: str

    @property
    def middle(self) -> float:
        """The horizontal centre, for its labels."""
        return round(self.x + self.width / 2, 1)


def bars(distances: Mapping[int, int]) -> list[Bar]:
    """Return a bar for each number of bits from 0 on, with proportional heights.

    Args:
        distances: the number of pages by number of bits.
    """
    places = max(_FEWEST, *(bits + 1 for bits in distances)) if distances else _FEWEST
    step = (WIDTH - 2 * LEFT) / places
    highest = max(distances.values(), default=0) or 1
    histogram = []
    for bits in range(places):
        pages = distances.get(bits, 0)
        height = max(_TALLEST * pages / highest, 2.0) if pages else 0.0
        histogram.append(
            Bar(
                round(LEFT + bits * step + 1, 1),
                round(BASE - height, 1),
                round(step - 2, 1),
                round(height, 1),
                bits,
                pages,
                _short(pages) if pages else "",
            )
        )
    return histogram


def _short(count: int) -> str:
    """Return a number in at most four characters."""
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= unit:
            return f"{count / unit:.{0 if count >= 10 * unit else 1}f}{name}"
    return str(count)


def _size(count: int) -> str:
    """Return a number of bytes with a unit."""
    amount = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} TB"
