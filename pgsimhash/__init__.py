"""Near-duplicate web pages, found exactly, with simhashes kept in PostgreSQL."""

from pgsimhash.bits import (
    band,
    format_simhash,
    from_bigint,
    hamming_distance,
    parse_simhash,
    similarity,
    to_bigint,
)
from pgsimhash.errors import (
    CollectionError,
    EmbeddedServerError,
    InvalidDistanceError,
    InvalidSimhashError,
    InvalidUrlError,
    InvalidWeightError,
    MissingExtraError,
    NoServerError,
    NotHtmlError,
    PageError,
    PgsimhashError,
    SchemaError,
    StoreError,
    TooLargeError,
    TooShortError,
    UnreadableError,
)
from pgsimhash.pairs import Pairs, find_pairs
from pgsimhash.records import CollectionStatus, Match, Matches, StoredPage, Verdict
from pgsimhash.schemes import Fingerprint, fingerprint
from pgsimhash.store import Store, connect
from pgsimhash.votes import simhash

__all__ = [
    "CollectionError",
    "CollectionStatus",
    "EmbeddedServerError",
    "Fingerprint",
    "InvalidDistanceError",
    "InvalidSimhashError",
    "InvalidUrlError",
    "InvalidWeightError",
    "Match",
    "Matches",
    "MissingExtraError",
    "NoServerError",
    "NotHtmlError",
    "PageError",
    "Pairs",
    "PgsimhashError",
    "SchemaError",
    "Store",
    "StoreError",
    "StoredPage",
    "TooLargeError",
    "TooShortError",
    "UnreadableError",
    "Verdict",
    "band",
    "connect",
    "find_pairs",
    "fingerprint",
    "format_simhash",
    "from_bigint",
    "hamming_distance",
    "parse_simhash",
    "simhash",
    "similarity",
    "to_bigint",
]
