"""Define, register and apply schemes: named recipes from a page to its simhash."""

from typing import TYPE_CHECKING, Final

from pgsimhash.runtime import loaded_later

if TYPE_CHECKING:
    from pgsimhash.schemes.features import ShingleWeights as ShingleWeights
    from pgsimhash.schemes.features import read_text as read_text
    from pgsimhash.schemes.registry import Scheme as Scheme
    from pgsimhash.schemes.registry import get_scheme as get_scheme
    from pgsimhash.schemes.registry import register_scheme as register_scheme
    from pgsimhash.schemes.texts import scheme_for_texts as scheme_for_texts
    from pgsimhash.schemes.texts import simhash_texts as simhash_texts
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.schemes.features": "ShingleWeights read_text",
            "pgsimhash.schemes.registry": "Scheme get_scheme register_scheme",
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
