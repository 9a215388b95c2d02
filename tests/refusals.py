"""Checks of errors by their reasons."""

from collections.abc import Callable

import psycopg

from pgsimhash.errors import PgsimhashError


def because(reason: str) -> Callable[[PgsimhashError], bool]:
    """Return the check for pytest.raises."""
    return lambda error: error.reason == reason


def sqlstate(state: str) -> Callable[[psycopg.Error], bool]:
    """Return the check for pytest.raises, of errors in SQL."""
    return lambda error: error.sqlstate == state
