"""Find near-duplicate web pages exactly, with simhashes in plain PostgreSQL.

Most users only need these names. Each is loaded when it is first used, so the import costs next to
nothing. The core is in the subpackages ``hashing``, ``search``, ``pages``, ``html``, ``schemes``,
``sources``, ``reading``, ``db``, ``schema`` and ``store``; ``analysis``, ``batch`` and others use
it.
"""

from typing import TYPE_CHECKING

from pgsimhash.runtime import loaded_later

if TYPE_CHECKING:
    from pgsimhash.errors import ArgumentError as ArgumentError
    from pgsimhash.errors import CollectionError as CollectionError
    from pgsimhash.errors import NoServerError as NoServerError
    from pgsimhash.errors import NotFoundError as NotFoundError
    from pgsimhash.errors import PageError as PageError
    from pgsimhash.errors import PgsimhashError as PgsimhashError
    from pgsimhash.errors import SchemaError as SchemaError
    from pgsimhash.errors import StoreError as StoreError
    from pgsimhash.hashing.bits import format_simhash as format_simhash
    from pgsimhash.hashing.bits import hamming_distance as hamming_distance
    from pgsimhash.hashing.bits import parse_simhash as parse_simhash
    from pgsimhash.hashing.votes import simhash as simhash
    from pgsimhash.pages.records import Match as Match
    from pgsimhash.pages.records import Verdict as Verdict
    from pgsimhash.runtime.version import __version__ as __version__
    from pgsimhash.schemes.registry import Fingerprint as Fingerprint
    from pgsimhash.schemes.registry import fingerprint as fingerprint
    from pgsimhash.search.pairs import find_pairs as find_pairs
    from pgsimhash.store import Store as Store
    from pgsimhash.store import connect as connect
    from pgsimhash.store.async_store import AsyncStore as AsyncStore
    from pgsimhash.store.async_store import connect_async as connect_async
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.errors": (
                "ArgumentError CollectionError NoServerError NotFoundError PageError "
                "PgsimhashError SchemaError StoreError"
            ),
            "pgsimhash.hashing.bits": "format_simhash hamming_distance parse_simhash",
            "pgsimhash.hashing.votes": "simhash",
            "pgsimhash.pages.records": "Match Verdict",
            "pgsimhash.runtime.version": "__version__",
            "pgsimhash.schemes.registry": "Fingerprint fingerprint",
            "pgsimhash.search.pairs": "find_pairs",
            "pgsimhash.store": "Store connect",
            "pgsimhash.store.async_store": "AsyncStore connect_async",
        },
    )
