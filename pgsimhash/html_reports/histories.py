"""Render the versions of a page as an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from pgsimhash.analysis.differences import Difference, side_by_side
from pgsimhash.analysis.history import CHANGES, Version
from pgsimhash.html_reports.render import render_page
from pgsimhash.html_reports.timelines import SHOWN, timeline
from pgsimhash.pages.recrawl import RecrawlHint

_TEXTS: Final = 20
"""How many of the newest changes show a comparison of texts."""

_ROWS: Final = 200


def history_page(versions: Sequence[Version], hint: RecrawlHint) -> str:
    """Return the versions of one page as one HTML page.

    Args:
        versions: one or more, from :func:`pgsimhash.analysis.versions`; only the newest are shown.
        hint: their hint, from :func:`pgsimhash.pages.recrawl.recrawl_hint`.
    """
    return render_page(
        "history",
        f"Versions of {versions[-1].title or versions[-1].url}",
        versions=versions[-SHOWN:][::-1],
        count=len(versions),
        hint=hint,
        changes=CHANGES,
        drawn=timeline(versions),
        differences=_differences(versions),
    )


def _differences(versions: Sequence[Version]) -> dict[int, Difference]:
    """Return, by version number, the difference from the text of the version before."""
    return {
        now.number: side_by_side(before.markdown, now.markdown, rows=_ROWS)
        for before, now in pairwise(versions[-_TEXTS - 1 :])
        if before.markdown is not None and now.markdown is not None
    }
