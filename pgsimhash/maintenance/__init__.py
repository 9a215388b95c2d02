"""Functions that maintain a collection; they take a store.

Only :func:`delete_collection` takes a connection, because it leaves no store.

All functions raise ``StoreError`` if the database does not answer, and ``CollectionError`` if no
collection of the scheme has the store's name any more.
"""

from typing import TYPE_CHECKING

from pgsimhash.runtime import loaded_later

if TYPE_CHECKING:
    from pgsimhash.maintenance.collections import change_settings as change_settings
    from pgsimhash.maintenance.collections import check as check
    from pgsimhash.maintenance.collections import count_reread as count_reread
    from pgsimhash.maintenance.collections import delete_collection as delete_collection
    from pgsimhash.maintenance.collections import fill_addresses as fill_addresses
    from pgsimhash.maintenance.collections import mark as mark
    from pgsimhash.maintenance.collections import marks as marks
    from pgsimhash.maintenance.collections import policies as policies
    from pgsimhash.maintenance.collections import policy_for as policy_for
    from pgsimhash.maintenance.collections import remove_policy as remove_policy
    from pgsimhash.maintenance.collections import rename as rename
    from pgsimhash.maintenance.collections import runs as runs
    from pgsimhash.maintenance.collections import set_policy as set_policy
    from pgsimhash.maintenance.collections import status as status
    from pgsimhash.maintenance.collections import undo_run as undo_run
    from pgsimhash.maintenance.collections import unmark as unmark
    from pgsimhash.maintenance.rebuilding import rebuild as rebuild
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.maintenance.collections": (
                "change_settings check count_reread delete_collection fill_addresses mark marks "
                "policies policy_for remove_policy rename runs set_policy status undo_run unmark"
            ),
            "pgsimhash.maintenance.rebuilding": "rebuild",
        },
    )
