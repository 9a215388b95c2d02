"""Explain, compare, report and measure, with or without a store.

Functions that take a store raise a ``StoreError`` if the database does not answer. The store does
not depend on this package. :mod:`pgsimhash.html_reports` renders the results as HTML pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsimhash.runtime.lazy_names import loaded_later

if TYPE_CHECKING:
    from pgsimhash.analysis.evaluation import AtDistance, Counts, Evaluation, Print, evaluate
    from pgsimhash.analysis.explanation import (
        Explanation,
        Side,
        explain,
        explain_sides,
        known_side,
        read_side,
    )
    from pgsimhash.analysis.history import Version, versions
    from pgsimhash.analysis.labels import LabelledPair, read_labels
    from pgsimhash.analysis.pairs import (
        NearSample,
        PagePair,
        PairedPage,
        Sample,
        Unlabelled,
        near_sample,
        page_pairs,
        sample,
        simhashes,
        unlabelled_csv,
    )
    from pgsimhash.analysis.reports import Report, report
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.analysis.evaluation": "AtDistance Counts Evaluation Print evaluate",
            "pgsimhash.analysis.explanation": (
                "Explanation Side explain explain_sides known_side read_side"
            ),
            "pgsimhash.analysis.history": "Version versions",
            "pgsimhash.analysis.labels": "LabelledPair read_labels",
            "pgsimhash.analysis.pairs": (
                "NearSample PagePair PairedPage Sample Unlabelled near_sample page_pairs sample "
                "simhashes unlabelled_csv"
            ),
            "pgsimhash.analysis.reports": "Report report",
        },
    )

__all__ = [
    "AtDistance",
    "Counts",
    "Evaluation",
    "Explanation",
    "LabelledPair",
    "NearSample",
    "PagePair",
    "PairedPage",
    "Print",
    "Report",
    "Sample",
    "Side",
    "Unlabelled",
    "Version",
    "evaluate",
    "explain",
    "explain_sides",
    "known_side",
    "near_sample",
    "page_pairs",
    "read_labels",
    "read_side",
    "report",
    "sample",
    "simhashes",
    "unlabelled_csv",
    "versions",
]
