"""Define, register and apply schemes: named recipes from a page to its simhash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsimhash.runtime.lazy_names import loaded_later

if TYPE_CHECKING:
    from pgsimhash.schemes.article_features import BlockWeights
    from pgsimhash.schemes.interop import CategoryWords
    from pgsimhash.schemes.recipe import Scheme
    from pgsimhash.schemes.registry import (
        BLOG_SHINGLES_SCHEME,
        BLOG_WORDS_SCHEME,
        DEFAULT_SCHEME,
        INTEROP_SCHEME,
        SHORT_SCHEME,
        TEXT_SCHEME,
        Fingerprint,
        fingerprint,
        get_scheme,
        register_scheme,
        scheme_names,
    )
    from pgsimhash.schemes.text_parts import ShingleWeights, read_text
    from pgsimhash.schemes.texts import scheme_for_texts, simhash_texts
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.schemes.article_features": "BlockWeights",
            "pgsimhash.schemes.interop": "CategoryWords",
            "pgsimhash.schemes.recipe": "Scheme",
            "pgsimhash.schemes.registry": (
                "BLOG_SHINGLES_SCHEME BLOG_WORDS_SCHEME DEFAULT_SCHEME INTEROP_SCHEME "
                "SHORT_SCHEME TEXT_SCHEME Fingerprint fingerprint get_scheme register_scheme "
                "scheme_names"
            ),
            "pgsimhash.schemes.text_parts": "ShingleWeights read_text",
            "pgsimhash.schemes.texts": "scheme_for_texts simhash_texts",
        },
    )

BUILT_IN: Final = (
    "pgsimhash-article-1",
    "pgsimhash-text-1",
    "pgsimhash-short-1",
    "pgsimhash-blog-words-1",
    "pgsimhash-blog-shingles-1",
    "pgsimhash-interop-1",
)
"""The names of the built-in schemes, which load nothing."""

DEFAULT_NAME: Final = BUILT_IN[0]

__all__ = [
    "BLOG_SHINGLES_SCHEME",
    "BLOG_WORDS_SCHEME",
    "BUILT_IN",
    "DEFAULT_NAME",
    "DEFAULT_SCHEME",
    "INTEROP_SCHEME",
    "SHORT_SCHEME",
    "TEXT_SCHEME",
    "BlockWeights",
    "CategoryWords",
    "Fingerprint",
    "Scheme",
    "ShingleWeights",
    "fingerprint",
    "get_scheme",
    "read_text",
    "register_scheme",
    "scheme_for_texts",
    "scheme_names",
    "simhash_texts",
]
