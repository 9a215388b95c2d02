"""How two crawls and the history of a page are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pgsimhash.analysis import wording
from pgsimhash.html_reports.report import CHANGES as CHANGES
from pgsimhash.html_reports.report import cut as cut

if TYPE_CHECKING:
    from pgsimhash.pages.records import RunRecord

MEANINGS: Final = {
    "changed": "changed",
    "moved": "moved to another address",
    "new": "new",
    "gone": "gone (404 or 410)",
    "missing": "missing: the crawl ended without them",
    "not_visited": "not visited: the crawl left out more of the host",
    "unchanged": "unchanged",
}
"""What became of pages, and what it means."""

VERSIONS: Final = 50
"""How many versions of a page are shown."""

_PLACE: Final = 300  # characters of a run of words


def crawl(runs: Sequence[RunRecord]) -> str:
    """Return the number and the day of a crawl's last run."""
    return f"run {runs[0].run_id}, {runs[0].started_at:%Y-%m-%d}"


def stacked(outcomes: Mapping[str, tuple[int, Any]]) -> Iterator[tuple[str, float, float]]:
    """Yield the name, left and width of the parts of a bar, in per cent of all pages."""
    whole = sum(count for count, _ in outcomes.values()) or 1
    at = 0.0
    for name, (count, _) in outcomes.items():
        width = 100 * count / whole
        yield name, at, max(width - 0.2, 0.2)
        at += width


def shortened(place: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the runs of a place without the end of long ones."""
    return [(wording.shortened(text, _PLACE), kind) for text, kind in place[:20]]
