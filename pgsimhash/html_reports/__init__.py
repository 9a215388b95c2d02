"""Pages for people: HTML files that need no network and run no script."""

from pgsimhash.html_reports.evaluations import evaluation_page, near_pairs_page
from pgsimhash.html_reports.explanations import explanation_page
from pgsimhash.html_reports.histories import history_page
from pgsimhash.html_reports.reports import report_page

__all__ = [
    "evaluation_page",
    "explanation_page",
    "history_page",
    "near_pairs_page",
    "report_page",
]
