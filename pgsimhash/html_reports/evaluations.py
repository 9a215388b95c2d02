"""Render evaluations as HTML pages, with or without labelled pairs."""

from __future__ import annotations

from collections.abc import Sequence

from pgsimhash.analysis.measures import NO_MATCH, AtDistance, Measured, Score, recommendation
from pgsimhash.analysis.near_pairs import NearSample
from pgsimhash.html_reports.charts import curve_chart, curve_floor, histogram_chart
from pgsimhash.html_reports.render import render_page
from pgsimhash.pages.records import PageFailure


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
