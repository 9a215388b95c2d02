"""Translate errors of pools and SQLAlchemy to errors of this package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from pgsimhash.db.translation import no_connection
from pgsimhash.errors import NoServerError, StoreError


@contextmanager
def refusals_of_alchemy() -> Iterator[None]:
    """Translate SQLAlchemy's errors about a connection to errors of this package.

    Raises:
        StoreError: the connection or session is closed, its transaction failed or ended, or the
            pool is exhausted or gave a connection in a transaction.
        NoServerError: the connection was lost, or no server answers.
    """
    from sqlalchemy import exc

    try:
        yield
    except exc.ResourceClosedError:
        raise closed("connection") from None
    except exc.TimeoutError as error:
        raise pool_exhausted(error) from error
    except exc.PendingRollbackError as error:
        raise StoreError(
            "failed_transaction",
            "the session's transaction has failed; end it first: session.rollback()",
        ) from error
    except exc.OperationalError as error:
        if not error.connection_invalidated:
            raise no_connection(error.orig or error) from error
        raise NoServerError(
            "connection_lost", f"the connection to the database was lost: {error.orig}"
        ) from error
    except exc.InvalidRequestError as error:
        if "permanently closed" in str(error):
            raise closed("session") from error
        raise StoreError(
            "no_transaction",
            f"SQLAlchemy has no transaction for the store: {error}; first leave the block "
            "or the hook in which it ended",
        ) from error
    except psycopg.ProgrammingError as error:
        # Raised by set_autocommit.
        raise StoreError(
            "needs_autocommit",
            f"the engine gave a connection that is in a transaction: {error}; end that first, or "
            "give an engine with a pool instead of a single connection",
        ) from error


def refusal_of_pool(pool: Any, error: psycopg.OperationalError) -> StoreError:
    """Return the error for a psycopg pool that gave no connection.

    The pool does not say whether all connections are in use or the server is down, so try to
    connect.
    """
    from psycopg_pool import PoolTimeout, TooManyRequests

    if not isinstance(error, PoolTimeout | TooManyRequests):
        return no_connection(error)
    conninfo, kwargs = pool.conninfo, pool.kwargs or {}
    if not (callable(conninfo) or callable(kwargs)):
        try:
            psycopg.connect(conninfo, **{**kwargs, "connect_timeout": 2}).close()
        except psycopg.OperationalError as refused:
            return no_connection(refused)
    return pool_exhausted(error)


def pool_exhausted(error: Exception) -> StoreError:
    """Return the error for an exhausted pool."""
    return StoreError(
        "pool_exhausted",
        f"all connections of the pool are in use: {error}; allow it more connections "
        "or a longer wait, or finish loops over clusters() and pairs() sooner",
    )


def wrong_driver(name: str) -> StoreError:
    """Return the error for an engine that uses another driver than psycopg 3."""
    return StoreError(
        "wrong_driver",
        f"the store needs psycopg 3, and this engine uses {name}; create it with "
        "create_engine('postgresql+psycopg://...')",
    )


def closed(what: str) -> StoreError:
    """Return the error for a connection, pool or store that is closed."""
    return StoreError("closed", f"the {what} is closed; give one that is open")
