"""The maintenance of collections as functions, which take a store like the methods of these names.

Only two differ: :func:`status` is that of all collections (``Store.collections``), and
:func:`delete_collection` takes a connection, because it leaves no store.
"""

from typing import Any

import psycopg

from pgsimhash.store import connect
from pgsimhash.store.maintenance import Maintenance

__all__ = [
    "change_settings", "check", "count_reread", "delete_collection", "mark", "marks", "policies",
    "policy_for", "rebuild", "remove_policy", "rename", "runs", "set_policy", "status", "undo_run",
    "unmark",
]  # fmt: skip

change_settings = Maintenance.change_settings
check = Maintenance.check
count_reread = Maintenance.count_reread
mark = Maintenance.mark
marks = Maintenance.marks
policies = Maintenance.policies
policy_for = Maintenance.policy_for
rebuild = Maintenance.rebuild
remove_policy = Maintenance.remove_policy
rename = Maintenance.rename
runs = Maintenance.runs
set_policy = Maintenance.set_policy
undo_run = Maintenance.undo_run
unmark = Maintenance.unmark
status = Maintenance.collections


def delete_collection(connection: psycopg.Connection[Any], name: str) -> int:
    """Delete a collection and all its rows; return the number of versions of pages.

    Raises:
        CollectionError: the collection does not exist.
        StoreError: the database refuses it, as for rows of yours that refer to its pages.
    """
    with connect(connection, collection=name, create=False) as store:
        return store.delete_collection()
