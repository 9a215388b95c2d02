"""Provide the package's logger, ``pgsimhash``; it is silent until you add a handler.

Its records have the attributes ``collection`` and ``run_id``, which may be None.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psycopg

WAITING: Final = "PS032"
"""The SQLSTATE of the schema's errors and warnings about a wait for a lock."""


def _with_fields(record: logging.LogRecord) -> bool:
    # A format with these fields then works for every record.
    record.__dict__.setdefault("collection", None)
    record.__dict__.setdefault("run_id", None)
    return True


logger: Final = logging.getLogger("pgsimhash")
logger.addHandler(logging.NullHandler())
logger.addFilter(_with_fields)


def log_warnings(connection: psycopg.BaseConnection[Any]) -> None:
    """Log the schema's warnings: what a connection waits for, and grants to other roles."""
    # Several stores on one connection log a warning once.
    with suppress(ValueError):
        connection.remove_notice_handler(_log_warning)
    connection.add_notice_handler(_log_warning)


def _log_warning(notice: psycopg.errors.Diagnostic) -> None:
    if (notice.sqlstate or "").startswith("PS"):
        logger.warning("%s", notice.message_primary)
