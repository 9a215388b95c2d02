"""The package's one logger, ``pgsimhash``: quiet unless its user gives it a handler."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psycopg

logger: Final = logging.getLogger("pgsimhash")
logger.addHandler(logging.NullHandler())


def tell_of_waits(connection: psycopg.BaseConnection[Any]) -> None:
    """Let the logger say for whom a connection waits, as the schema's functions warn of it."""
    # Of several stores over one connection only one is to say it.
    with suppress(ValueError):
        connection.remove_notice_handler(_tell)
    connection.add_notice_handler(_tell)


def _tell(notice: psycopg.errors.Diagnostic) -> None:
    # Only they warn with the code of an error: lock_not_available.
    if notice.sqlstate == "55P03":
        logger.warning("%s", notice.message_primary)
