"""Explain, compare, report and measure, with or without a store.

Functions that take a store raise a ``StoreError`` if the database does not answer. The store does
not depend on this package. :mod:`pgsimhash.html_reports` renders the results as HTML pages.
"""

from typing import TYPE_CHECKING

from pgsimhash.runtime import loaded_later

if TYPE_CHECKING:
    from pgsimhash.analysis.addresses import parameters as parameters
    from pgsimhash.analysis.changes import versions as versions
    from pgsimhash.analysis.comparison import compare_pages as compare_pages
    from pgsimhash.analysis.crawls import compare_crawls as compare_crawls
    from pgsimhash.analysis.evaluation import evaluate as evaluate
    from pgsimhash.analysis.pairs import page_pairs as page_pairs
    from pgsimhash.analysis.pairs import read_labels as read_labels
    from pgsimhash.analysis.reports import report as report
    from pgsimhash.analysis.template import selector_effects as selector_effects
    from pgsimhash.analysis.template import template_parts as template_parts
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.analysis.changes": "versions",
            "pgsimhash.analysis.crawls": "compare_crawls",
            "pgsimhash.analysis.evaluation": "evaluate",
            "pgsimhash.analysis.comparison": "compare_pages",
            "pgsimhash.analysis.pairs": "page_pairs read_labels",
            "pgsimhash.analysis.addresses": "parameters",
            "pgsimhash.analysis.reports": "report",
            "pgsimhash.analysis.template": "selector_effects template_parts",
        },
    )
