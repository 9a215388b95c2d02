"""Pages for people: HTML files that need no network and run no script."""

from pgsimhash.pictures.drifts import drift_page
from pgsimhash.pictures.explanations import explanation_page

__all__ = ["drift_page", "explanation_page"]
