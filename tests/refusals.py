"""A check of errors by their reasons."""

from __future__ import annotations

from collections.abc import Callable

from pgsimhash.errors import PgsimhashError


def because(reason: str) -> Callable[[PgsimhashError], bool]:
    """Return the check for pytest.raises."""
    return lambda error: error.reason == reason
