"""Explain, compare, report and measure, with or without a store.

Functions that take a store raise a ``StoreError`` if the database does not answer. The store does
not depend on this package. :mod:`pgsimhash.html_reports` renders the results as HTML pages.
"""

from typing import TYPE_CHECKING

from pgsimhash.runtime import loaded_later

if TYPE_CHECKING:
    from pgsimhash.analysis.changes import *  # noqa: F403
    from pgsimhash.analysis.evaluation import *  # noqa: F403
    from pgsimhash.analysis.explanation import *  # noqa: F403
    from pgsimhash.analysis.pairs import *  # noqa: F403
    from pgsimhash.analysis.reports import *  # noqa: F403
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.analysis.changes": "Version versions",
            "pgsimhash.analysis.evaluation": "AtDistance Counts Evaluation Print evaluate",
            "pgsimhash.analysis.explanation": (
                "Explanation Side explain explain_sides known_side read_side"
            ),
            "pgsimhash.analysis.pairs": "LabelledPair PagePair PairedPage page_pairs read_labels",
            "pgsimhash.analysis.reports": "Report report",
        },
    )
