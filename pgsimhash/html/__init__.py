"""Read the main content of a page from its bytes."""

from pgsimhash.html.article import Article, read_article
from pgsimhash.html.native import implementation

__all__ = ["Article", "implementation", "read_article"]
