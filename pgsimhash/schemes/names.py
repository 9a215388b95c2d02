"""Define the names of the built-in schemes, without loading their parts."""

from __future__ import annotations

from typing import Final

ARTICLE: Final = "pgsimhash-article-1"
TEXT: Final = "pgsimhash-text-1"
SHORT: Final = "pgsimhash-short-1"
BLOG_WORDS: Final = "pgsimhash-blog-words-1"
BLOG_SHINGLES: Final = "pgsimhash-blog-shingles-1"
INTEROP: Final = "pgsimhash-interop-1"

DEFAULT_NAME: Final = ARTICLE

SHIPPED_NAMES: Final = (ARTICLE, TEXT, SHORT, BLOG_WORDS, BLOG_SHINGLES, INTEROP)
