"""Near-duplicate web pages, found exactly, with simhashes kept in PostgreSQL.

These names are what most users need; each is loaded when it is first asked for, so that the import
costs next to nothing. The rest is in modules of its own: ``bits``, ``errors``, ``policies``,
``records``, ``schemes`` and others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

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
    from pgsimhash.votes import simhash

    __version__: str

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

_HOMES: Final = {
    "ArgumentError": "errors",
    "CollectionError": "errors",
    "Fingerprint": "schemes",
    "Match": "records",
    "NoServerError": "errors",
    "NotFoundError": "errors",
    "PageError": "errors",
    "PgsimhashError": "errors",
    "SchemaError": "errors",
    "Store": "store",
    "StoreError": "errors",
    "Verdict": "records",
    "connect": "store",
    "connect_async": "store.async_store",
    "find_pairs": "pairs",
    "fingerprint": "schemes",
    "format_simhash": "bits",
    "hamming_distance": "bits",
    "parse_simhash": "bits",
    "simhash": "votes",
}


def __getattr__(name: str) -> object:
    found: object
    if name == "__version__":
        # It stands in pyproject.toml, and so in what the package was installed with.
        found = import_module("importlib.metadata").version(__name__)
    elif name in _HOMES:
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Asked for once: from now on it is found without coming here.
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
