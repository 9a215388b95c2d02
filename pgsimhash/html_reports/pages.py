"""Render explanations, histories, reports and evaluations as HTML pages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from pgsimhash.analysis.differences import Difference, side_by_side
from pgsimhash.analysis.explanation import Explanation
from pgsimhash.analysis.history import CHANGES, Version
from pgsimhash.analysis.measures import NO_MATCH, AtDistance, Measured, Score, recommendation
from pgsimhash.analysis.near_pairs import NearSample
from pgsimhash.analysis.reports import Report
from pgsimhash.html_reports.charts import curve_chart, curve_floor, histogram_chart
from pgsimhash.html_reports.histograms import bars
from pgsimhash.html_reports.render import render_page
from pgsimhash.html_reports.timelines import SHOWN, timeline
from pgsimhash.pages.records import PageFailure
from pgsimhash.pages.recrawl import RecrawlHint


def explanation_page(explanation: Explanation) -> str:
    """Return an explanation as one HTML page."""
    result = "near-duplicates" if explanation.matches else "no match"
    return render_page(
        "explanation",
        f"Two pages: {result}, {explanation.distance} bits apart",
        explanation=explanation,
    )


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


def report_page(report: Report) -> str:
    """Return a report as one HTML page that needs no network and runs no script.

    ``report.limits`` bound its size, and the page states them.
    """
    return render_page(
        "report",
        f"Near-duplicates in {report.status.collection}",
        report=report,
        status=report.status,
        limits=report.limits,
        bars=bars(report.distances),
        drawn=[(page, timeline(page.versions)) for page in report.histories],
        changes=CHANGES,
        most=max((host.duplicates for host in report.hosts), default=0) or 1,
        size=_size,
    )


def _size(count: int) -> str:
    """Return a number of bytes with a unit."""
    amount = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} TB"


def evaluation_page(
    source: str,
    scores: Sequence[Score],
    precision: float,
    too_short: Sequence[str],
    failures: Sequence[PageFailure],
) -> str:
    """Return the scores of labelled pairs, one for each scheme, as one HTML page.

    ``source`` is the name of the set of pairs, ``precision`` that required of the recommended
    distance, ``too_short`` the names of pages with too little text.
    """
    return render_page(
        "evaluation",
        f"Evaluation of {source}",
        scores=scores,
        precision=precision,
        floor=curve_floor([score.curve for score in scores]),
        recommendation=recommendation,
        histogram=_histogram,
        curve_chart=curve_chart,
        too_short=too_short,
        failures=failures,
    )


def near_pairs_page(
    source: str,
    samples: Sequence[tuple[str, NearSample]],
    distance: int,
    too_short: Sequence[str],
    failures: Sequence[PageFailure],
) -> str:
    """Return the near pairs among unlabelled pages as one HTML page.

    ``samples`` has the name and the sample of each scheme, ``distance`` is the distance to judge.
    The other arguments are those of :func:`evaluation_page`.
    """
    return render_page(
        "near_pairs",
        f"Near pairs in {source}",
        samples=samples,
        distance=distance,
        histogram_chart=histogram_chart,
        too_short=too_short,
        failures=failures,
    )


def _histogram(measured: Measured, best: AtDistance | None) -> str:
    return histogram_chart(
        ("copies", measured.copies[:NO_MATCH]),
        ("others", measured.distinct[:NO_MATCH]),
        None if best is None else best.distance,
    )
