"""From what psycopg raises to this package's errors, which name the fix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from pgsimhash.db.schema_names import schema_of
from pgsimhash.errors import CollectionError, NoServerError, StoreError


@contextmanager
def translated_errors(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Turn the server's refusals inside the block into this package's errors.

    Raises:
        NoServerError: the connection was lost.
        CollectionError: a collection is there no more by the name it had, or is being made.
        StoreError: the server gave up (a time-out, a cancelled query, no disk space), is read-only,
            cannot hold a value, forgets prepared statements, is in a transaction that failed or
            whose isolation level is not READ COMMITTED, or the user may not do this, or not see all
            rows that matter; or someone else held a lock for too long.
    """
    try:
        yield
    except psycopg.errors.ObjectInUse as error:
        raise CollectionError("being_made", server_words(error)) from error
    except psycopg.errors.LockNotAvailable as error:
        raise StoreError(
            "locked",
            f"{server_words(error)}; what was committed stays, run again to continue",
        ) from error
    except psycopg.errors.QueryCanceled as error:
        raise StoreError(
            "gave_up",
            f"the database gave up: {first_line(error)}; raise statement_timeout, if it was that, "
            "or take smaller batches; what was committed stays, run again to continue",
        ) from error
    except psycopg.errors.DeadlockDetected as error:
        raise StoreError(
            "gave_up",
            f"the database gave up: {first_line(error)}; in each transaction ingest first, before "
            "you write rows of your own; what was committed stays, run again to continue",
        ) from error
    except psycopg.OperationalError as error:
        told = f"{str(error).strip()}; what was committed stays, run again to continue"
        if connection.closed:
            raise NoServerError(
                "connection_lost", f"the connection to the database was lost: {told}"
            ) from error
        raise StoreError("gave_up", f"the database gave up: {told}") from error
    except (
        psycopg.errors.IdleInTransactionSessionTimeout,
        psycopg.errors.TransactionTimeout,
    ) as error:
        raise NoServerError(
            "connection_lost",
            f"the connection to the database was lost: {first_line(error)}; what was committed "
            "stays, run again to continue",
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            "not_permitted",
            f"the database refuses: {first_line(error)}; grant the user one of the roles that "
            f"`pgsimhash migrate --roles` makes for the schema {schema_of(connection)}: reader, "
            "writer, or owner, who alone creates the tables of other layouts",
        ) from error
    except psycopg.errors.InvalidRoleSpecification as error:
        raise StoreError("hidden_rows", server_words(error)) from error
    except psycopg.errors.UndefinedObject as error:
        raise CollectionError("unknown", server_words(error)) from error
    except psycopg.errors.InFailedSqlTransaction as error:
        raise StoreError(
            "failed_transaction",
            "the connection is in a transaction that failed; end it first: connection.rollback(), "
            "or leave its transaction() block",
        ) from error
    except (
        psycopg.errors.DuplicatePreparedStatement,
        psycopg.errors.InvalidSqlStatementName,
    ) as error:
        raise StoreError(
            "mixed_statements",
            f"a pooler mixes up the prepared statements of its clients: {first_line(error)}; let "
            "it pool sessions, or keep prepared statements (PgBouncer: max_prepared_statements), "
            "or say connect(prepare=False); a connection of your own takes prepare_threshold=None",
        ) from error
    except psycopg.NotSupportedError as error:
        raise StoreError(
            "gave_up",
            f"the database gave up: {first_line(error)}; if the connection is in a pipeline() "
            "block, leave that first",
        ) from error
    except psycopg.errors.InvalidTransactionState as error:
        raise StoreError("wrong_isolation", server_words(error)) from error
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise StoreError(
            "read_only",
            f"the database is read-only here: {first_line(error)}; connect to the primary server, "
            "or call what only reads: lookups, decide, pairs, clusters, reports, check, status",
        ) from error
    except (UnicodeEncodeError, psycopg.DataError) as error:
        # Functions of the schema complain with this one, and their callers know of what.
        if isinstance(error, psycopg.errors.InvalidParameterValue):
            raise
        raise StoreError(
            "invalid_value",
            f"the database cannot hold a value: {first_line(error)}; give text that is valid "
            "UTF-8 without NUL, and numbers that are not so large",
        ) from error


def server_words(error: psycopg.Error) -> str:
    """Return what the server, or a function of the schema, says when it refuses, with the fix."""
    said = error.diag
    hint = (said.message_hint or "").rstrip(".")
    if not hint.startswith("SELECT "):
        hint = hint[:1].lower() + hint[1:]
    detail = ", ".join((said.message_detail or "").splitlines())
    return "; ".join(part for part in (said.message_primary, detail, hint) if part)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its class."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def no_connection(error: BaseException) -> NoServerError:
    """Return the error of who cannot connect, with what to do about it."""
    problem = first_line(error)
    if "authentication failed" in problem or "no password" in problem:
        return NoServerError(
            "login_refused",
            f"the server refused the login: {problem}; check user and password in --dsn or "
            f"PGSIMHASH_DSN",
        )
    if "does not exist" in problem:
        return NoServerError(
            "no_database", f"{problem}; create it, or name another in --dsn or PGSIMHASH_DSN"
        )
    return NoServerError(
        "no_server",
        f"no PostgreSQL server answers: {problem}; start it, or correct --dsn or PGSIMHASH_DSN "
        "(without either, the embedded server is used)",
    )
