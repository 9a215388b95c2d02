"""Define, register and apply schemes: named recipes from a page to its simhash."""

from typing import TYPE_CHECKING, Final

from pgsimhash.runtime import loaded_later

if TYPE_CHECKING:
    from pgsimhash.schemes.features import *  # noqa: F403
    from pgsimhash.schemes.interop import *  # noqa: F403
    from pgsimhash.schemes.registry import *  # noqa: F403
    from pgsimhash.schemes.texts import *  # noqa: F403
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.schemes.features": "BlockWeights ShingleWeights read_text",
            "pgsimhash.schemes.interop": "CategoryWords",
            "pgsimhash.schemes.registry": (
                "BLOG_SHINGLES_SCHEME BLOG_WORDS_SCHEME DEFAULT_SCHEME INTEROP_SCHEME "
                "SHORT_SCHEME TEXT_SCHEME Fingerprint Scheme fingerprint get_scheme "
                "reads_texts register_scheme scheme_names"
            ),
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
