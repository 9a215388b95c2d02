"""Explain, compare, report and measure, with or without a store.

Functions that take a store raise a ``StoreError`` if the database does not answer. The store does
not depend on this package. :mod:`pgsimhash.html_reports` renders the results as HTML pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsimhash.runtime.lazy_names import loaded_later

if TYPE_CHECKING:
    from pgsimhash.analysis.explanation import Explanation, explain, explain_sides
    from pgsimhash.analysis.history import Version, advise_fetch, versions
    from pgsimhash.analysis.labels import LabelledPair, Labels, read_labels
    from pgsimhash.analysis.limits import Limits
    from pgsimhash.analysis.measures import AtDistance, Measured, Score, measure, recommend
    from pgsimhash.analysis.near_pairs import NearSample, Unlabelled, sample_near_pairs
    from pgsimhash.analysis.paired_pages import PagePair, PairedPage, page_pairs
    from pgsimhash.analysis.reports import Report, report
    from pgsimhash.analysis.sampling import Sample, known_simhashes, sample, simhashes
    from pgsimhash.analysis.sides import Side, known_side, read_side
    from pgsimhash.analysis.tables import save_clusters, save_pairs
else:
    __getattr__, __dir__ = loaded_later(__name__)

__all__ = [
    "AtDistance",
    "Explanation",
    "LabelledPair",
    "Labels",
    "Limits",
    "Measured",
    "NearSample",
    "PagePair",
    "PairedPage",
    "Report",
    "Sample",
    "Score",
    "Side",
    "Unlabelled",
    "Version",
    "advise_fetch",
    "explain",
    "explain_sides",
    "known_side",
    "known_simhashes",
    "measure",
    "page_pairs",
    "read_labels",
    "read_side",
    "recommend",
    "report",
    "sample",
    "sample_near_pairs",
    "save_clusters",
    "save_pairs",
    "simhashes",
    "versions",
]
