"""Errors told apart by their reasons."""

from __future__ import annotations

from collections.abc import Callable

from pgsimhash.errors import PgsimhashError


def because(reason: str) -> Callable[[PgsimhashError], bool]:
    """Return what pytest.raises takes as its check."""
    return lambda error: error.reason == reason
