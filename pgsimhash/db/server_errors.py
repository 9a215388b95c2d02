"""Translate errors of PostgreSQL, psycopg, pools and SQLAlchemy to errors that name the fix.

Functions of the schema raise SQLSTATEs of class PS, which PostgreSQL does not use. So an error of
a trigger or constraint of yours is never mistaken for one of the package.
"""

import os
import re
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from pgsimhash.db.schema_names import SCHEMA, schema_of
from pgsimhash.errors import (
    ArgumentError,
    CollectionError,
    NoServerError,
    NotFoundError,
    PgsimhashError,
    SchemaError,
    StoreError,
)
from pgsimhash.log import WAITING


class MovedCollectionError(StoreError):
    """The name belongs to another collection now. The package repeats the call."""


RAISED: Final[dict[str, tuple[type[PgsimhashError], str]]] = {
    "PS001": (CollectionError, "unknown"),
    "PS002": (CollectionError, "being_rebuilt"),
    "PS003": (MovedCollectionError, "moved"),
    "PS004": (CollectionError, "taken"),
    "PS010": (ArgumentError, "invalid_argument"),
    "PS015": (ArgumentError, "contrary_mark"),
    "PS020": (NotFoundError, "unknown_page"),
    "PS021": (NotFoundError, "unknown_run"),
    "PS030": (StoreError, "unsuitable"),
    "PS032": (StoreError, "locked"),
    "PS035": (StoreError, "refused"),
    "PS040": (SchemaError, "other_owner"),
    "PS041": (SchemaError, "unversioned"),
}  # raised by functions of the schema; docs/sql-write.md lists them too


class Translation(NamedTuple):
    """The error for a problem of the server, and what to do about it."""

    reason: str
    problem: str
    advice: str
    error: type[StoreError] = StoreError

    def about(self, detail: object, schema: str = "") -> StoreError:
        """Return the error."""
        advice = self.advice.format(schema=schema)
        return self.error(self.reason, f"{self.problem}: {detail}; {advice}")


_AGAIN: Final = "committed work stays, run again to continue"
_GAVE_UP: Final = "the database gave up"

LOST: Final = Translation(
    "connection_lost", "the connection to the database was lost", _AGAIN, NoServerError
)
_UNFINISHED: Final = Translation("gave_up", _GAVE_UP, _AGAIN)
_UNPREPARED: Final = Translation(
    "unsuitable",
    "a pooler mixes up prepared statements",
    "let it pool sessions, or support prepared statements (PgBouncer: max_prepared_statements), "
    "or set prepare_threshold=None on your own connection",
)
_INVALID: Final = Translation(
    "refused",
    "the database cannot store a value",
    "use text in valid UTF-8 without NUL, and smaller numbers",
)
_OTHER: Final = Translation(
    "refused",
    "the database refuses a statement",
    "if a trigger or constraint of yours raised it, correct that; committed work stays",
)

BY_STATE: Final = {
    "55P03": Translation("locked", "the database gave up waiting", _AGAIN),
    "57014": Translation(
        "gave_up",
        _GAVE_UP,
        f"raise statement_timeout if that caused it, or use smaller batches; {_AGAIN}",
    ),
    "40P01": Translation(
        "gave_up",
        _GAVE_UP,
        f"in each transaction ingest first, before you write your own rows; {_AGAIN}",
    ),
    "42501": Translation(
        "not_permitted",
        "the database refuses",
        "grant the user one of the roles that `pgsimhash migrate --roles` creates for the schema "
        "{schema}: reader, writer, or owner, which alone can delete collections; or let the row "
        "security of the table admit the row",
    ),
    "25P02": Translation(
        "wrong_transaction",
        "the connection's transaction has failed",
        "end it first: connection.rollback(), or leave its transaction() block",
    ),
    "25006": Translation(
        "read_only",
        "the database is read-only",
        "connect to the primary server, or free space if its disk is full, or only read: lookups, "
        "decide, pairs, clusters, reports, check, status",
    ),
    # Timeouts of transactions end the connection.
    **dict.fromkeys(("25P03", "25P04"), LOST),
    **dict.fromkeys(("08P01", "26000", "42P05"), _UNPREPARED),
    **dict.fromkeys(("08", "40", "53", "54", "57", "58", "XX"), _UNFINISHED),
    "0A": Translation(
        "gave_up", _GAVE_UP, "if the connection is in a pipeline() block, leave that first"
    ),
    "22": _INVALID,
}  # PostgreSQL's errors by SQLSTATE or its class

# SQLSTATEs, or their classes, for the errors that psycopg raises itself.
_STATES: Final[tuple[tuple[Any, str], ...]] = (
    (psycopg.NotSupportedError, "0A"),
    (psycopg.DataError, "22"),
    # Lost connections; and psycopg raises InternalError if a server crashes during a COMMIT.
    ((psycopg.OperationalError, psycopg.InternalError), "08"),
)

_POOL: Final = Translation(
    "pool_exhausted",
    "all connections of the pool are in use",
    "allow it more connections or a longer wait, or finish loops over clusters() and pairs() "
    "sooner",
)

# Errors about a connection, by the name of their class.
_OF_SQLALCHEMY: Final = {
    "TimeoutError": _POOL,
    "PendingRollbackError": Translation(
        "wrong_transaction",
        "the session's transaction has failed",
        "end it first: session.rollback()",
    ),
    "InvalidRequestError": Translation(
        "wrong_transaction",
        "SQLAlchemy has no transaction for the store",
        "first leave the block or the hook in which it ended",
    ),
}


@contextmanager
def translated_errors(connection: psycopg.BaseConnection[Any]) -> Iterator[None]:
    """Translate errors of the server and of psycopg inside the block to this package's errors."""
    try:
        yield
    except psycopg.Error as error:
        if connection.closed and error.sqlstate not in RAISED:
            raise LOST.about(first_line(error)) from error
        raise _translated(error, schema_of(connection)) from error
    except UnicodeEncodeError as error:
        raise _INVALID.about(first_line(error)) from error


def raised_by_schema(state: str, words: str) -> PgsimhashError | None:
    """Return the error for a SQLSTATE that functions of the schema raise, None for others."""
    if state not in RAISED:
        return None
    kind, code = RAISED[state]
    return kind(code, f"{words}; {_AGAIN}" if state == WAITING else words)


def _translated(error: psycopg.Error, schema: str) -> PgsimhashError:
    state, words = error.sqlstate or "", server_words(error)
    if own := raised_by_schema(state, words):
        return own
    code = state or next((code for kind, code in _STATES if isinstance(error, kind)), "")
    if translation := BY_STATE.get(code) or BY_STATE.get(code[:2]):
        return translation.about(first_line(error), schema)
    words = words or first_line(error)
    place = (error.diag.context or "").partition("\n")[0]
    where = ", ".join(filter(None, (state and f"SQLSTATE {state}", place)))
    return _OTHER.about(f"{words} ({where})" if where else words)


def server_words(error: psycopg.Error) -> str:
    """Return the server's message with its details and the fix, if it has one."""
    report = error.diag
    hint = (report.message_hint or "").rstrip(".")
    if not hint.startswith("SELECT "):
        hint = hint[:1].lower() + hint[1:]
    detail = ", ".join((report.message_detail or "").splitlines())
    return "; ".join(part for part in (report.message_primary, detail, hint) if part)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its class."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


_BUSY: Final = re.compile(
    "starting up|shutting down|recovery mode|too many|connection slots|no more connections|"
    "query_wait_timeout|cannot connect to server|login has been failing"
)
_REFUSED: Final = re.compile("FATAL|does not support SSL")


def no_connection(error: BaseException) -> StoreError:
    """Return the error for a failed connection, with the fix."""
    problem = first_line(error)
    if unsupported := re.search(r"unsupported startup parameter(?: in options)?: (\w+)", problem):
        return StoreError(
            "unsuitable",
            f"the pooler refuses the startup parameter {unsupported[1]}: {problem}; add it to "
            "ignore_startup_parameters of PgBouncer, or remove it from the DSN and PGOPTIONS",
        )
    login = getattr(error, "pgconn", None)
    trace = _login_trace(login) if login else b""
    # The server starts or stops, has too many connections or too little memory, or lets it in now.
    is_busy = re.search(rb'ErrorResponse\t.*? C "(57P0[123]|53...)"|\tReadyForQuery\t', trace)
    # A pooler has one SQLSTATE, and before libpq 18 a trace has no login: English words decide.
    is_vague = b'C "08P01"' in trace or b"ErrorResponse" not in trace
    if is_busy or (is_vague and _BUSY.search(problem)):
        message = "the server accepts no connection now: {}; try again later"
    elif re.search(rb"^B\t", trace, re.MULTILINE) or _REFUSED.search(problem):
        return NoServerError(
            "login_refused",
            f"the server refuses the login: {problem}; correct user, password, database or sslmode "
            "in the DSN or PGSIMHASH_DSN, or let the server admit it (CREATE DATABASE, GRANT "
            "CONNECT, pg_hba.conf)",
        )
    else:
        message = (
            "no PostgreSQL server answers: {}; start it, or correct the DSN or PGSIMHASH_DSN "
            "(docs/settings.md lists what applies without either)"
        )
    return NoServerError("no_server", message.format(problem))


def _login_trace(login: Any) -> bytes:
    """Repeat a login that failed, and return its trace; lines of the server begin with B.

    Only the trace of libpq has the SQLSTATE of a refused login, and only on Linux; the message may
    be in any language. With too many connections, a server may refuse after it has the password.
    """
    given = {option.keyword.decode(): option.val.decode() for option in login.info if option.val}
    with (
        suppress(AttributeError, OSError, ValueError, psycopg.Error),
        # In memory, because it has the password.
        os.fdopen(os.memfd_create("trace"), "w+b") as trace,
    ):
        again = pq.PGconn.connect_start(make_conninfo(**given).encode())
        again.trace(trace.fileno())
        again.set_trace_flags(pq.Trace.SUPPRESS_TIMESTAMPS)
        reading, writing = pq.PollingStatus.READING, pq.PollingStatus.WRITING
        step: int = writing
        latest = time.monotonic() + 2
        while step in (reading, writing) and time.monotonic() < latest:
            ready = select.poll()
            ready.register(again.socket, select.POLLIN if step == reading else select.POLLOUT)
            step = again.connect_poll() if ready.poll(100) else step
        again.untrace()
        again.finish()
        trace.seek(0)
        return trace.read()
    return b""


def is_cut(state: str | None) -> bool:
    """Return whether this SQLSTATE, or none, is of a connection that the server ended."""
    return not state or state.startswith("57P")


@contextmanager
def translated_sqlalchemy_errors() -> Iterator[None]:
    """Translate SQLAlchemy's errors about a connection inside the block to this package's."""
    from sqlalchemy import exc

    try:
        yield
    except exc.DBAPIError as error:
        original: Any = error.orig
        if error.connection_invalidated:
            raise LOST.about(original) from error
        # SQLAlchemy's own first statements can fail too.
        if is_cut(original.sqlstate):
            raise no_connection(original) from error
        raise _translated(original, SCHEMA) from original
    except exc.ResourceClosedError:
        raise closed("connection") from None
    except (exc.InvalidRequestError, exc.TimeoutError) as error:
        if "permanently closed" in str(error):
            raise closed("session") from error
        kinds = (kind.__name__ for kind in type(error).__mro__)
        name = next(kind for kind in kinds if kind in _OF_SQLALCHEMY)
        raise _OF_SQLALCHEMY[name].about(error) from error


def no_connection_of_pool(pool: Any, error: psycopg.OperationalError) -> StoreError:
    """Return the error for a psycopg pool that gave no connection."""
    from psycopg_pool import PoolTimeout, TooManyRequests

    if not isinstance(error, PoolTimeout | TooManyRequests):
        return no_connection(error)
    # The pool does not say whether all connections are in use or the server is down.
    conninfo, kwargs = pool.conninfo, pool.kwargs or {}
    if not (callable(conninfo) or callable(kwargs)):
        try:
            psycopg.connect(conninfo, **{**kwargs, "connect_timeout": 2}).close()
        except psycopg.OperationalError as refused:
            return no_connection(refused)
    return _POOL.about(error)


def closed(what: str) -> StoreError:
    """Return the error for a connection, pool or store that is closed."""
    return StoreError("closed", f"the {what} is closed; give one that is open")
