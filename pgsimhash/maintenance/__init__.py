"""Functions that maintain a collection; they take a store.

Only :func:`delete_collection` takes a connection, because it leaves no store.

All functions raise ``StoreError`` if the database does not answer, and ``CollectionError`` if no
collection of the scheme has the store's name any more.
"""

from typing import TYPE_CHECKING

from pgsimhash.runtime import loaded_later

if TYPE_CHECKING:
    from pgsimhash.maintenance.collections import *  # noqa: F403
    from pgsimhash.maintenance.rebuilding import rebuild as rebuild
    from pgsimhash.maintenance.source_files import ingest_files as ingest_files
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.maintenance.collections": (
                "Violation change_settings check delete_collection mark marks policies policy_for "
                "remove_policy rename runs set_policy undo_run unmark"
            ),
            "pgsimhash.maintenance.rebuilding": "rebuild",
            "pgsimhash.maintenance.source_files": "ingest_files",
        },
    )
