"""Translate psycopg's errors to this package's errors, which name the fix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from pgsimhash.db.schema_names import schema_of
from pgsimhash.errors import CollectionError, NoServerError, StoreError


@contextmanager
def translated_errors(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Translate the server's errors inside the block to this package's errors.

    Raises:
        NoServerError: the connection was lost.
        CollectionError: a collection has another name now, or is being built.
        StoreError: any other refusal, such as a timeout, a full disk, a missing permission, a
            failed transaction or a wrong isolation level.
    """
    try:
        yield
    except psycopg.errors.ObjectInUse as error:
        raise CollectionError("being_built", server_words(error)) from error
    except psycopg.errors.LockNotAvailable as error:
        raise StoreError(
            "locked",
            f"{server_words(error)}; committed work stays, run again to continue",
        ) from error
    except psycopg.errors.QueryCanceled as error:
        raise StoreError(
            "gave_up",
            f"the database gave up: {first_line(error)}; raise statement_timeout if that "
            "caused it, or use smaller batches; committed work stays, run again to continue",
        ) from error
    except psycopg.errors.DeadlockDetected as error:
        raise StoreError(
            "gave_up",
            f"the database gave up: {first_line(error)}; in each transaction ingest first, before "
            "you write your own rows; committed work stays, run again to continue",
        ) from error
    except psycopg.OperationalError as error:
        raise _unfinished(connection, str(error).strip()) from error
    except (
        psycopg.errors.IdleInTransactionSessionTimeout,
        psycopg.errors.TransactionTimeout,
    ) as error:
        raise NoServerError(
            "connection_lost",
            f"the connection to the database was lost: {first_line(error)}; committed work "
            "stays, run again to continue",
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            "not_permitted",
            f"the database refuses: {first_line(error)}; grant the user one of the roles that "
            f"`pgsimhash migrate --roles` creates for the schema {schema_of(connection)}: reader, "
            "writer, or owner, which alone can create the tables of other layouts",
        ) from error
    except psycopg.errors.InvalidRoleSpecification as error:
        raise StoreError("hidden_rows", server_words(error)) from error
    except psycopg.errors.UndefinedObject as error:
        raise CollectionError("unknown", server_words(error)) from error
    except psycopg.errors.InFailedSqlTransaction as error:
        raise StoreError(
            "failed_transaction",
            "the connection's transaction has failed; end it first: connection.rollback(), "
            "or leave its transaction() block",
        ) from error
    except (
        psycopg.errors.DuplicatePreparedStatement,
        psycopg.errors.InvalidSqlStatementName,
    ) as error:
        raise StoreError(
            "mixed_statements",
            f"a pooler mixes up prepared statements: {first_line(error)}; let it pool "
            "sessions, or support prepared statements (PgBouncer: max_prepared_statements), or "
            "use connect(prepare=False); set prepare_threshold=None on your own connection",
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
            f"the database is read-only: {first_line(error)}; connect to the primary server, "
            "or only read: lookups, decide, pairs, clusters, reports, check, status",
        ) from error
    except psycopg.InternalError as error:
        # psycopg raises it if a server crashes during a COMMIT, Citus if one of its nodes fails.
        raise _unfinished(connection, first_line(error)) from error
    except (UnicodeEncodeError, psycopg.DataError) as error:
        # The schema's functions raise this, and their callers translate it.
        if isinstance(error, psycopg.errors.InvalidParameterValue):
            raise
        raise StoreError(
            "invalid_value",
            f"the database cannot store a value: {first_line(error)}; use text in valid "
            "UTF-8 without NUL, and smaller numbers",
        ) from error


def _unfinished(connection: psycopg.Connection[Any], problem: str) -> StoreError:
    """Return the error for a statement that the server did not finish."""
    told = f"{problem}; committed work stays, run again to continue"
    if connection.closed:
        return NoServerError("connection_lost", f"the connection to the database was lost: {told}")
    return StoreError("gave_up", f"the database gave up: {told}")


def server_words(error: psycopg.Error) -> str:
    """Return the server's message, or that of a function of the schema, with the fix."""
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
    """Return the error for a failed connection, with the fix."""
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
