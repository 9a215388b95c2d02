"""What commands need of a database beside a store; --help asks none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsimhash.later import loaded_later

if TYPE_CHECKING:
    from pgsimhash.connection import (
        DSN_VARIABLE,
        EMBEDDED,
        checked_connection,
        configured_dsn,
        describe,
        open_connection,
        resolve_dsn,
        schema_revision,
        translated_errors,
    )
    from pgsimhash.pinned import pinned
    from pgsimhash.store.collection import (
        Collection,
        collection_names,
        create_collection,
        find_collection,
        open_collection,
    )
    from pgsimhash.store.layouts import set_default_layout
    from pgsimhash.store.status import read_status
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.connection": [
                "DSN_VARIABLE",
                "EMBEDDED",
                "checked_connection",
                "configured_dsn",
                "describe",
                "open_connection",
                "resolve_dsn",
                "schema_revision",
                "translated_errors",
            ],
            "pgsimhash.pinned": ["pinned"],
            "pgsimhash.store.collection": [
                "Collection",
                "collection_names",
                "create_collection",
                "find_collection",
                "open_collection",
            ],
            "pgsimhash.store.layouts": ["set_default_layout"],
            "pgsimhash.store.status": ["read_status"],
        },
    )

__all__ = [
    "DSN_VARIABLE",
    "EMBEDDED",
    "Collection",
    "checked_connection",
    "collection_names",
    "configured_dsn",
    "create_collection",
    "describe",
    "find_collection",
    "open_collection",
    "open_connection",
    "pinned",
    "read_status",
    "resolve_dsn",
    "schema_revision",
    "set_default_layout",
    "translated_errors",
]
