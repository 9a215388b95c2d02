"""Pages for people: HTML files that need no network and run no script."""

from pgsimhash.pictures.drifts import drift_page
from pgsimhash.pictures.explanations import explanation_page
from pgsimhash.pictures.reports import report_page

__all__ = ["drift_page", "explanation_page", "report_page"]
