"""Evaluations as HTML pages: of labelled pairs, and of pages without labels."""

from __future__ import annotations

from collections.abc import Sequence

from pgsimhash.analysis.measures import NO_MATCH, AtDistance, Measured, Score, recommendation
from pgsimhash.analysis.near_pairs import NearSample
from pgsimhash.html_reports.charts import curve_chart, curve_floor, histogram_chart
from pgsimhash.html_reports.render import render_page
from pgsimhash.records import PageFailure


def evaluation_page(
    source: str,
    scores: Sequence[Score],
    precision: float,
    too_short: Sequence[str],
    failures: Sequence[PageFailure],
) -> str:
    """Return the scores of labelled pairs as one HTML page.

    Args:
        source: what the pairs are called.
        scores: a score for each scheme.
        precision: what the recommended distance had to reach.
        too_short: the names of pages with too little text.
        failures: the pages that have no fingerprint for another reason.
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

    Args:
        source: what the pages are called.
        samples: a scheme's name and its sample, for each scheme.
        distance: the one in question.
        too_short: the names of pages with too little text.
        failures: the pages that have no fingerprint for another reason.
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
