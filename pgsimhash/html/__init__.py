"""Read the main content of a page from its bytes."""

from pgsimhash.html.article import Article, article_of_tree, read_article
from pgsimhash.html.native import implementation
from pgsimhash.html.page_words import WeightedWords

__all__ = ["Article", "WeightedWords", "article_of_tree", "implementation", "read_article"]
