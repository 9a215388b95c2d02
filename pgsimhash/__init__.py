"""Find near-duplicate web pages exactly, with simhashes in plain PostgreSQL.

Most users only need these names. Each is loaded when it is first used, so the import costs next to
nothing. The core is in the subpackages ``hashing``, ``search``, ``pages``, ``html``, ``schemes``,
``sources``, ``reading``, ``db`` and ``store``; ``analysis``, ``maintenance``, ``batch`` and others
use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsimhash.runtime import loaded_later

if TYPE_CHECKING:
    from pgsimhash.errors import (
        ArgumentError,
        CollectionError,
        NoServerError,
        NotFoundError,
        PageError,
        PgsimhashError,
        SchemaError,
        StoreError,
    )
    from pgsimhash.hashing.bits import format_simhash, hamming_distance, parse_simhash
    from pgsimhash.hashing.votes import simhash
    from pgsimhash.pages.records import Match, Verdict
    from pgsimhash.runtime.version import __version__ as __version__
    from pgsimhash.schemes import Fingerprint, fingerprint
    from pgsimhash.search.pairs import find_pairs
    from pgsimhash.store import Store, connect
    from pgsimhash.store.async_store import AsyncStore, connect_async
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
            "pgsimhash.schemes": "Fingerprint fingerprint",
            "pgsimhash.search.pairs": "find_pairs",
            "pgsimhash.store": "Store connect",
            "pgsimhash.store.async_store": "AsyncStore connect_async",
        },
    )

__all__ = [
    "ArgumentError",
    "AsyncStore",
    "CollectionError",
    "Fingerprint",
    "Match",
    "NoServerError",
    "NotFoundError",
    "PageError",
    "PgsimhashError",
    "SchemaError",
    "Store",
    "StoreError",
    "Verdict",
    "connect",
    "connect_async",
    "find_pairs",
    "fingerprint",
    "format_simhash",
    "hamming_distance",
    "parse_simhash",
    "simhash",
]
