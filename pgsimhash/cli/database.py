"""The database modules that commands use, in one lazy import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsimhash.runtime.lazy_names import loaded_later

if TYPE_CHECKING:
    from pgsimhash.db.connection import describe, open_connection, schema_revision
    from pgsimhash.db.dsn import (
        DSN_VARIABLE,
        EMBEDDED,
        checked_connection,
        configured_dsn,
        resolve_dsn,
    )
    from pgsimhash.db.server_errors import translated_errors
    from pgsimhash.store.collection import (
        Collection,
        collection_names,
        create_collection,
        find_collection,
        open_collection,
    )
    from pgsimhash.store.lookups import read_status
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.db.connection": "describe open_connection schema_revision",
            "pgsimhash.db.dsn": (
                "DSN_VARIABLE EMBEDDED checked_connection configured_dsn resolve_dsn"
            ),
            "pgsimhash.db.server_errors": "translated_errors",
            "pgsimhash.store.collection": (
                "Collection collection_names create_collection find_collection open_collection"
            ),
            "pgsimhash.store.lookups": "read_status",
        },
    )
