"""What is done to a collection now and then, by functions that take a store.

Only :func:`delete_collection` and :func:`check_all` take a connection: after the one no store is
left, and the other is about all collections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsimhash.later import loaded_later

if TYPE_CHECKING:
    from pgsimhash.maintenance.checking import check, check_all
    from pgsimhash.maintenance.dropping import delete_collection
    from pgsimhash.maintenance.marking import mark, marks, unmark
    from pgsimhash.maintenance.policy_settings import (
        policies,
        policy_for,
        remove_policy,
        set_policy,
    )
    from pgsimhash.maintenance.rebuilding import Then, rebuild
    from pgsimhash.maintenance.run_history import delete_run, runs, undo
    from pgsimhash.maintenance.settings import change_settings, rename
    from pgsimhash.maintenance.violations import Violation
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            ".checking": ["check", "check_all"],
            ".dropping": ["delete_collection"],
            ".marking": ["mark", "marks", "unmark"],
            ".policy_settings": ["policies", "policy_for", "remove_policy", "set_policy"],
            ".rebuilding": ["Then", "rebuild"],
            ".run_history": ["delete_run", "runs", "undo"],
            ".settings": ["change_settings", "rename"],
            ".violations": ["Violation"],
        },
    )

__all__ = [
    "Then",
    "Violation",
    "change_settings",
    "check",
    "check_all",
    "delete_collection",
    "delete_run",
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
