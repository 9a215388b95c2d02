"""What pools and SQLAlchemy say when they give no connection, as errors of this package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from pgsimhash.connection import no_connection
from pgsimhash.errors import NoServerError, StoreError


@contextmanager
def refusals_of_alchemy() -> Iterator[None]:
    """Turn what SQLAlchemy says of a connection or session of the caller's into our errors.

    Raises:
        StoreError: it is closed, or in a transaction that failed or ended; or its pool gave none.
        NoServerError: the connection was lost.
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
            "the session is in a transaction that failed; end it first: session.rollback()",
        ) from error
    except exc.OperationalError as error:
        raise NoServerError(
            "connection_lost", f"the connection to the database was lost: {error.orig}"
        ) from error
    except exc.InvalidRequestError as error:
        if "permanently closed" in str(error):
            raise closed("session") from error
        raise StoreError(
            "no_transaction",
            f"SQLAlchemy has no transaction that the store could work in: {error}; leave the block "
            "or the hook first, in which it ended",
        ) from error


@contextmanager
def refusals_of_engine() -> Iterator[None]:
    """Turn what SQLAlchemy says when an engine gives no connection into our errors.

    Raises:
        StoreError: its pool gave none in time, or one that is in a transaction.
        NoServerError: no server answers.
    """
    from sqlalchemy import exc

    try:
        yield
    except exc.TimeoutError as error:
        raise pool_exhausted(error) from error
    except exc.OperationalError as error:
        raise no_connection(error.orig or error) from error
    except psycopg.ProgrammingError as error:
        # Of set_autocommit, which SQLAlchemy passes on as it is.
        raise StoreError(
            "needs_autocommit",
            f"the engine gave a connection on which somebody is in a transaction: {error}; end "
            "that first, or give an engine with a pool, where this one has a single connection",
        ) from error


def refusal_of_pool(pool: Any, error: psycopg.OperationalError, *, again: bool) -> StoreError:
    """Return the error of who got no connection from a pool of psycopg's.

    It says the same whether all are in use or it cannot connect, so that is tried. Where
    connections were lost, it takes a while to have others: with ``again`` it is one that passes.
    """
    from psycopg_pool import PoolTimeout, TooManyRequests

    if again or not isinstance(error, PoolTimeout | TooManyRequests):
        return no_connection(error)
    conninfo, kwargs = pool.conninfo, pool.kwargs or {}
    if not (callable(conninfo) or callable(kwargs)):
        try:
            psycopg.connect(conninfo, **{**kwargs, "connect_timeout": 2}).close()
        except psycopg.OperationalError as refused:
            return no_connection(refused)
    return pool_exhausted(error)


def pool_exhausted(error: Exception) -> StoreError:
    """Return the error of who got no connection, for others have them all."""
    return StoreError(
        "pool_exhausted",
        f"the pool gave no connection, for all are in use: {error}; let it have more of them, or "
        "wait longer for one, or close stores that are done",
    )


def wrong_driver(name: str) -> StoreError:
    """Return the error of who stands on a driver of another name."""
    return StoreError(
        "wrong_driver",
        f"the store speaks to PostgreSQL by psycopg 3, and this engine by {name}; make it with "
        "create_engine('postgresql+psycopg://...')",
    )


def closed(what: str) -> StoreError:
    """Return the error of who gives something that is closed."""
    return StoreError("closed", f"the {what} is closed; give one that is open")
