"""Pages for people: HTML files that need no network and run no script."""

from pgsimhash.pictures.explanations import explanation_page

__all__ = ["explanation_page"]
