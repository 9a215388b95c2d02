"""Define, register and apply schemes: named recipes from a page to its simhash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsimhash.runtime.lazy_names import loaded_later

if TYPE_CHECKING:
    from pgsimhash.schemes.article_features import BlockWeights
    from pgsimhash.schemes.batch import scheme_for_texts, simhash_texts
    from pgsimhash.schemes.fingerprints import Fingerprint, fingerprint
    from pgsimhash.schemes.recipe import Scheme
    from pgsimhash.schemes.registry import get_scheme, register_scheme, scheme_names
    from pgsimhash.schemes.shipped import (
        BLOG_SHINGLES_SCHEME,
        BLOG_WORDS_SCHEME,
        DEFAULT_SCHEME,
        INTEROP_SCHEME,
        SHORT_SCHEME,
        TEXT_SCHEME,
    )
    from pgsimhash.schemes.texts import CategoryWords, read_text
    from pgsimhash.schemes.weightings import ShingleWeights
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.schemes.article_features": "BlockWeights",
            "pgsimhash.schemes.batch": "scheme_for_texts simhash_texts",
            "pgsimhash.schemes.fingerprints": "Fingerprint fingerprint",
            "pgsimhash.schemes.recipe": "Scheme",
            "pgsimhash.schemes.registry": "get_scheme register_scheme scheme_names",
            "pgsimhash.schemes.shipped": (
                "BLOG_SHINGLES_SCHEME BLOG_WORDS_SCHEME DEFAULT_SCHEME INTEROP_SCHEME "
                "SHORT_SCHEME TEXT_SCHEME"
            ),
            "pgsimhash.schemes.texts": "CategoryWords read_text",
            "pgsimhash.schemes.weightings": "ShingleWeights",
        },
    )

__all__ = [
    "BLOG_SHINGLES_SCHEME",
    "BLOG_WORDS_SCHEME",
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
