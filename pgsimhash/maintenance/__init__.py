"""Functions that maintain a collection; they take a store.

Only :func:`delete_collection` takes a connection, because it leaves no store.

All functions raise ``StoreError`` if the database does not answer, and ``CollectionError`` if no
collection of the scheme has the store's name any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsimhash.runtime.lazy_names import loaded_later

if TYPE_CHECKING:
    from pgsimhash.maintenance.checking import Violation, check
    from pgsimhash.maintenance.collections import (
        change_settings,
        delete_collection,
        delete_run,
        mark,
        marks,
        policies,
        policy_for,
        remove_policy,
        rename,
        runs,
        set_policy,
        undo,
        unmark,
    )
    from pgsimhash.maintenance.rebuilding import rebuild
    from pgsimhash.maintenance.source_files import ingest_files
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.maintenance.checking": "Violation check",
            "pgsimhash.maintenance.rebuilding": "rebuild",
            "pgsimhash.maintenance.collections": (
                "change_settings delete_collection delete_run mark marks policies policy_for "
                "remove_policy rename runs set_policy undo unmark"
            ),
            "pgsimhash.maintenance.source_files": "ingest_files",
        },
    )

__all__ = [
    "Violation",
    "change_settings",
    "check",
    "delete_collection",
    "delete_run",
    "ingest_files",
    "mark",
    "marks",
    "policies",
    "policy_for",
    "rebuild",
    "remove_policy",
    "rename",
    "runs",
    "set_policy",
    "undo",
    "unmark",
]
