"""Define the built-in schemes; tests/vectors/README.md describes each step.

A released recipe never changes. A scheme that reads pages differently becomes a new entry, with an
extraction that has the signature of ``read_article``.
"""

from __future__ import annotations

from typing import Final

from pgsimhash.hashing.hashes import jenkins_64, murmur3_32_32
from pgsimhash.hashing.tokens import Words
from pgsimhash.html import read_article
from pgsimhash.schemes import names
from pgsimhash.schemes.article_features import BlockWeights, murmur3_64_of_words
from pgsimhash.schemes.blog import read_blog
from pgsimhash.schemes.recipe import Scheme
from pgsimhash.schemes.references import read_with_references
from pgsimhash.schemes.short import ShortWeights, short_words
from pgsimhash.schemes.texts import CategoryWords, long_words, read_text, spaced_words
from pgsimhash.schemes.weightings import ShingleWeights

DEFAULT_SCHEME: Final = Scheme(
    names.ARTICLE, read_article, BlockWeights(), hash_features=murmur3_64_of_words, min_tokens=12
)

TEXT_SCHEME: Final = Scheme(
    names.TEXT,
    read_text,
    ShingleWeights((1, 2), "sqrt"),
    tokenize=Words(numbers=True),
    hash_features=murmur3_64_of_words,
)

SHORT_SCHEME: Final = Scheme(
    names.SHORT, read_text, ShortWeights(), tokenize=short_words, min_tokens=2, distance=6
)

BLOG_WORDS_SCHEME: Final = Scheme(
    names.BLOG_WORDS,
    read_blog,
    ShingleWeights((1,), "linear"),
    tokenize=long_words,
    hash_features=murmur3_32_32,
    min_tokens=1,
    distance=3,
)

BLOG_SHINGLES_SCHEME: Final = Scheme(
    names.BLOG_SHINGLES,
    read_blog,
    ShingleWeights((3,), "linear"),
    tokenize=spaced_words,
    hash_features=murmur3_32_32,
    min_tokens=1,
    distance=3,
)

INTEROP_SCHEME: Final = Scheme(
    names.INTEROP,
    read_with_references,
    ShingleWeights((1,), "linear"),
    tokenize=CategoryWords(),
    hash_features=jenkins_64,
    distance=3,
)

SHIPPED: Final = (
    DEFAULT_SCHEME,
    TEXT_SCHEME,
    SHORT_SCHEME,
    BLOG_WORDS_SCHEME,
    BLOG_SHINGLES_SCHEME,
    INTEROP_SCHEME,
)
