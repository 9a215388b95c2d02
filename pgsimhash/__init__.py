"""Near-duplicate web pages, found exactly, with simhashes kept in PostgreSQL.

These names are what most users need; each is loaded when it is first asked for, so that the import
costs next to nothing. The rest is in modules of its own: ``bits``, ``errors``, ``policies``,
``records``, ``schemes`` and others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsimhash.later import loaded_later

if TYPE_CHECKING:
    from pgsimhash.bits import format_simhash, hamming_distance, parse_simhash
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
    from pgsimhash.pairs import find_pairs
    from pgsimhash.records import Match, Verdict
    from pgsimhash.schemes import Fingerprint, fingerprint
    from pgsimhash.store import Store, connect
    from pgsimhash.store.async_store import connect_async
    from pgsimhash.version import __version__ as __version__
    from pgsimhash.votes import simhash
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            ".bits": ["format_simhash", "hamming_distance", "parse_simhash"],
            ".errors": [
                "ArgumentError",
                "CollectionError",
                "NoServerError",
                "NotFoundError",
                "PageError",
                "PgsimhashError",
                "SchemaError",
                "StoreError",
            ],
            ".pairs": ["find_pairs"],
            ".records": ["Match", "Verdict"],
            ".schemes": ["Fingerprint", "fingerprint"],
            ".store": ["Store", "connect"],
            ".store.async_store": ["connect_async"],
            ".version": ["__version__"],
            ".votes": ["simhash"],
        },
    )

__all__ = [
    "ArgumentError",
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
