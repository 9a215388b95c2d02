"""The attempts and transactions of a store, over connections that it checks out."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial, wraps
from numbers import Real
from typing import Any, Final, ParamSpec, TypeVar, Unpack
from weakref import WeakSet

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from pgsimhash.db.connections import Connections, check_settings
from pgsimhash.db.schema_names import bound_to_schema, schema_of
from pgsimhash.db.server_errors import MovedCollectionError, translated_errors
from pgsimhash.db.statements import execute, is_idle, savepoint, transaction
from pgsimhash.errors import CollectionError, PgsimhashError, StoreError, check_number, check_type
from pgsimhash.log import log_warnings, logger
from pgsimhash.pages.records import Event, OnEvent
from pgsimhash.schema.deployed import check_schema
from pgsimhash.store.collection import CollectionSettings, follow, moved, open_collection
from pgsimhash.store.lookups import Calls

RETRY_SECONDS: Final = 60.0  # a restarting server takes some of these seconds
ROW_SECONDS: Final = 60.0  # how old the row of a collection may be when a page is read
_REPLACED_MAX: Final = 100  # a trigger of the caller may always say so
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0

# May succeed when the transaction is repeated.
_ABORTED: Final = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.TooManyConnections,
    # From a node of a Citus cluster.
    errors.ConnectionFailure,
)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Session:
    """The attempts and transactions of a store, each on a connection checked out for it.

    ``collection`` is its row as last read; at the next call, another one may have its name.
    """

    def __init__(
        self,
        connections: Connections,
        collection: str = "default",
        *,
        create: bool | None = None,
        schema: str | None = None,
        retry_seconds: float | None = None,
        on_event: OnEvent | None = None,
        **settings: Unpack[CollectionSettings],
    ) -> None:
        """Open ``collection``, or close the connections; see :func:`pgsimhash.connect`."""
        if retry_seconds is not None:
            check_number("retry_seconds", retry_seconds, 0, 86_400, Real)
        check_type(on_event, Callable | None, "on_event is a function that receives events")
        self.connections = connections
        self._schema = schema
        # Connections whose settings were checked, with the store's schema.
        self._known: WeakSet[psycopg.Connection[Any]] = WeakSet()
        self._retry_seconds = RETRY_SECONDS if retry_seconds is None else retry_seconds
        self._on_event = on_event
        try:
            with self.connection_in_transaction() as connection:
                check_schema(connection)
                self.collection = open_collection(
                    connection, collection, limited=connections.owned, create=create, **settings
                )
                self._read_at = time.monotonic()
        except BaseException:
            connections.close()
            raise

    def attempt(
        self,
        name: str,
        count: int,
        call: Callable[[], _T],
        results_of: Callable[[_T], Mapping[str, int]],
        run_id: Callable[[], int | None] = lambda: None,
    ) -> _T:
        """Return the result of a call, see :meth:`retry`, and report it as an event."""
        started = time.perf_counter()
        results: Mapping[str, int] = {}
        reason = None
        try:
            answer = self.retry(call)
            results = results_of(answer)
            return answer
        except BaseException as error:
            reason = error.reason if isinstance(error, PgsimhashError) else type(error).__name__
            raise
        finally:
            # A refused call has looked up nothing.
            if self._on_event is not None and reason != "invalid_argument":
                seconds, collection = time.perf_counter() - started, self.collection.name
                event = Event(name, collection, run_id(), seconds, count, results, reason)
                try:
                    self._on_event(event)
                except Exception:
                    # A failure of the metrics must not affect the data.
                    logger.exception("on_event failed", extra={"collection": collection})

    def retry(self, call: Callable[[], _T]) -> _T:
        """Repeat a call until it succeeds or fails permanently.

        If the collection was replaced meanwhile, the call is repeated immediately, over any
        connection, up to 100 times. After transient faults, pauses double, and are random, so that
        writers that lost their connections together do not return together.
        """
        latest, pause, replaced = None, _FIRST_PAUSE, 0
        while True:
            try:
                return call()
            except MovedCollectionError as error:
                if (replaced := replaced + 1) > _REPLACED_MAX:
                    raise
                logger.info("%s", error, extra={"collection": self.collection.name})
                continue
            except PgsimhashError as error:
                # Time spent before the fault, as for a lock, does not count.
                latest = time.monotonic() + self._retry_seconds if latest is None else latest
                # The store has logged in before: a refusal may end, as with too many connections.
                is_lost = error.reason in ("connection_lost", "no_server", "login_refused")
                may_pass = is_lost or isinstance(error.__cause__, _ABORTED)
                if not self.connections.owned or not may_pass or time.monotonic() >= latest:
                    raise
                collection = {"collection": self.collection.name}
                logger.warning("trying again: %s", error, extra=collection)
            self.connections.pause(random.uniform(pause / 2, pause))  # noqa: S311
            pause = min(2 * pause, _LONGEST_PAUSE)

    def is_in_callers_transaction(self) -> bool:
        """Return whether writes belong to a transaction that the caller ends."""
        if self.connections.owned:
            return False
        with self._connection() as connection:
            return not _is_alone(connection)

    @contextmanager
    def _connection(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """Check out a connection, bound to the schema, and translate its errors."""
        with self.connections.checked_out(loop=loop) as connection, ExitStack() as first_use:
            if connection not in self._known:
                check_settings(connection)
                log_warnings(connection)
                first_use.enter_context(bound_to_schema(connection, self._schema))
                self._schema = schema_of(connection)
            with translated_errors(connection):
                yield connection
            self._known.add(connection)

    @contextmanager
    def connection_to_read(self) -> Iterator[psycopg.Connection[Any]]:
        """Check out a connection for statements that read, outside a transaction of the store."""
        with (
            self._connection() as connection,
            nullcontext() if _is_alone(connection) else _block(connection),
        ):
            yield connection

    @contextmanager
    def connection_in_transaction(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """Run a block in a transaction, inside the caller's if there is one.

        It refuses to be inside an unfinished call on the caller's connection: rows that the body
        of a loop over ``clusters()`` wrote would be lost if it left the loop early.
        """
        with self._connection(loop=loop) as connection:
            # An interrupt may have left it there.
            if connection in _in_transaction and not is_idle(connection):
                raise StoreError(
                    "wrong_transaction",
                    "another call is not finished, and its rollback would undo this write: "
                    "a loop over clusters() is running, or a function that was passed "
                    "to a call; loop over list(store.clusters()), or open a store over a DSN or a "
                    "pool",
                )
            _in_transaction.add(connection)
            try:
                with _block(connection):
                    yield connection
            finally:
                _in_transaction.discard(connection)

    @contextmanager
    def calls_to_read(self, *, one_transaction: bool = False) -> Iterator[Calls]:
        """Read from the collection that has the name now."""
        in_transaction = partial(self.connection_in_transaction, loop=True)
        with (in_transaction if one_transaction else self.connection_to_read)() as connection:
            calls = self._follow(connection)
            yield calls
            # Under any name.
            if not calls.fetch("collection_names"):
                raise moved(calls.collection)

    @contextmanager
    def calls_by_name(self, distance: int | None) -> Iterator[Calls]:
        """Read by statements that name the collection and its scheme, so that they need no row."""
        self.collection.checked_distance(distance)
        try:
            with self.connection_to_read() as connection:
                yield Calls(connection, self.collection)
        except CollectionError:
            # Raises the reason.
            with self.calls_to_read():
                raise

    @contextmanager
    def calls_to_write(self) -> Iterator[Calls]:
        """Write to the collection that has the name now, in a transaction."""
        with self.connection_in_transaction() as connection:
            yield self._follow(connection, limited=self.connections.owned)

    def refresh(self) -> None:
        """Read the row of the collection again, if it was read a minute ago or before."""
        if time.monotonic() >= self._read_at + ROW_SECONDS:
            with self.connection_to_read() as connection:
                self._follow(connection)

    def _follow(self, connection: psycopg.Connection[Any], *, limited: bool = False) -> Calls:
        self.collection = follow(connection, self.collection, limited=limited)
        self._read_at = time.monotonic()
        return Calls(connection, self.collection)


def retried(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a method: the session of its object retries each call."""

    @wraps(method)
    def call(*arguments: _P.args, **options: _P.kwargs) -> _T:
        store: Any = arguments[0]
        session: Session = store._session
        return session.retry(partial(method, *arguments, **options))

    return call


def lookup(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a method of a store that looks up one page or simhash: each call is an attempt."""

    @wraps(method)
    def call(*arguments: _P.args, **options: _P.kwargs) -> _T:
        store: Any = arguments[0]
        session: Session = store._session
        look_up = partial(method, *arguments, **options)
        return session.attempt(method.__name__, 1, look_up, _found)

    return call


def _found(answer: object) -> dict[str, int]:
    return {"found": len(answer) if isinstance(answer, list) else int(bool(answer))}


@contextmanager
def _block(connection: psycopg.Connection[Any]) -> Iterator[None]:
    if connection.info.transaction_status == TransactionStatus.INERROR:
        # Raises the clear error; psycopg would complain about savepoints.
        execute(connection, "SELECT 1")
    begins = is_idle(connection) and not connection.autocommit
    with savepoint(connection) if begins else transaction(connection):
        yield


def _is_alone(connection: psycopg.Connection[Any]) -> bool:
    """Return whether each statement is its own transaction."""
    return connection.autocommit and is_idle(connection)


_in_transaction: WeakSet[psycopg.Connection[Any]] = WeakSet()
