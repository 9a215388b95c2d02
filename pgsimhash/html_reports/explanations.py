"""Render an explanation as an HTML page: two pages, their bits, features and texts."""

from __future__ import annotations

from pgsimhash.analysis.explanation import Explanation
from pgsimhash.html_reports.render import render_page


def explanation_page(explanation: Explanation) -> str:
    """Return an explanation as one HTML page."""
    result = "near-duplicates" if explanation.matches else "no match"
    return render_page(
        "explanation",
        f"Two pages: {result}, {explanation.distance} bits apart",
        explanation=explanation,
    )
