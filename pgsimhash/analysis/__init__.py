"""Explain, compare, report and measure, with or without a store.

Functions that take a store raise a ``StoreError`` if the database does not answer. The store does
not depend on this package. :mod:`pgsimhash.html_reports` renders the results as HTML pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsimhash.runtime import loaded_later

if TYPE_CHECKING:
    from pgsimhash.analysis.changes import Version as Version
    from pgsimhash.analysis.changes import versions as versions
    from pgsimhash.analysis.evaluation import AtDistance as AtDistance
    from pgsimhash.analysis.evaluation import Counts as Counts
    from pgsimhash.analysis.evaluation import Evaluation as Evaluation
    from pgsimhash.analysis.evaluation import Print as Print
    from pgsimhash.analysis.evaluation import evaluate as evaluate
    from pgsimhash.analysis.explanation import Explanation as Explanation
    from pgsimhash.analysis.explanation import Side as Side
    from pgsimhash.analysis.explanation import explain as explain
    from pgsimhash.analysis.explanation import explain_sides as explain_sides
    from pgsimhash.analysis.explanation import known_side as known_side
    from pgsimhash.analysis.explanation import read_side as read_side
    from pgsimhash.analysis.pairs import LabelledPair as LabelledPair
    from pgsimhash.analysis.pairs import NearSample as NearSample
    from pgsimhash.analysis.pairs import PagePair as PagePair
    from pgsimhash.analysis.pairs import PairedPage as PairedPage
    from pgsimhash.analysis.pairs import Sample as Sample
    from pgsimhash.analysis.pairs import Unlabelled as Unlabelled
    from pgsimhash.analysis.pairs import near_sample as near_sample
    from pgsimhash.analysis.pairs import page_pairs as page_pairs
    from pgsimhash.analysis.pairs import read_labels as read_labels
    from pgsimhash.analysis.pairs import sample as sample
    from pgsimhash.analysis.pairs import simhashes as simhashes
    from pgsimhash.analysis.pairs import unlabelled_csv as unlabelled_csv
    from pgsimhash.analysis.reports import Report as Report
    from pgsimhash.analysis.reports import report as report
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.analysis.changes": "Version versions",
            "pgsimhash.analysis.evaluation": "AtDistance Counts Evaluation Print evaluate",
            "pgsimhash.analysis.explanation": (
                "Explanation Side explain explain_sides known_side read_side"
            ),
            "pgsimhash.analysis.pairs": (
                "LabelledPair NearSample PagePair PairedPage Sample Unlabelled near_sample "
                "page_pairs read_labels sample simhashes unlabelled_csv"
            ),
            "pgsimhash.analysis.reports": "Report report",
        },
    )
