"""How two crawls and the history of a page are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsimhash.analysis.wording import shortened

if TYPE_CHECKING:
    from pgsimhash.analysis.changes import WithWords

MEANINGS: Final = {
    "changed": "changed",
    "moved": "moved to another address",
    "new": "new",
    "gone": "gone (404 or 410)",
    "missing": "missing: the crawl ended without them",
    "not_visited": "not visited: the crawl omitted more of the host",
    "unchanged": "unchanged",
}
"""What became of pages, and what it means."""

VERSIONS: Final = 50
"""How many versions of a page are shown."""

_PLACES: Final = 3  # of a change that are shown
_RUNS: Final = 20  # of a place
_CHARS: Final = 300  # characters of a run of words


def first_places(change: WithWords) -> tuple[list[list[tuple[str, str]]], int]:
    """Return the first places that changed, shortened, and the number of the others."""
    places = change.words or []
    shown = [
        [(shortened(text, _CHARS), kind) for text, kind in place[:_RUNS]]
        for place in places[:_PLACES]
    ]
    return shown, len(places) - len(shown)
