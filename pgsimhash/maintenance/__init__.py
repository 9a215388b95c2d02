"""What is done to a collection now and then, by functions that take a store.

Only :func:`delete_collection` takes a connection and a name: afterwards no store is left.
"""

from pgsimhash.maintenance.dropping import delete_collection
from pgsimhash.maintenance.marking import mark, marks, unmark
from pgsimhash.maintenance.policy_settings import policies, policy_for, remove_policy, set_policy
from pgsimhash.maintenance.reruns import refingerprint, rejudge, relayout, rename
from pgsimhash.maintenance.run_history import delete_run, runs, undo
from pgsimhash.maintenance.settings import change_settings

__all__ = [
    "change_settings",
    "delete_collection",
    "delete_run",
    "mark",
    "marks",
    "policies",
    "policy_for",
    "refingerprint",
    "rejudge",
    "relayout",
    "remove_policy",
    "rename",
    "runs",
    "set_policy",
    "undo",
    "unmark",
]
