"""Retry calls after transient faults: a lost connection, a deadlock, a restart."""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar

from psycopg import errors

from pgsimhash.db.refusals import MovedCollectionError
from pgsimhash.errors import ArgumentError, NoServerError, PgsimhashError
from pgsimhash.log import logger
from pgsimhash.store.events import Observation

if TYPE_CHECKING:
    from pgsimhash.store.session import Session
    from pgsimhash.store.store import Store

    _P = ParamSpec("_P")
    _T = TypeVar("_T")

RETRY_SECONDS: Final = 60.0
"""How long to retry by default: a restarting server takes some of these seconds."""

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0

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
"""Errors of an aborted transaction that may succeed when it is repeated."""


def passes(error: BaseException) -> bool:
    """Return whether a fault is transient."""
    if isinstance(error, NoServerError) and error.reason in {"connection_lost", "no_server"}:
        return True
    return isinstance(error.__cause__, _ABORTED)


def checked_retry_seconds(seconds: float | None) -> float:
    """Return how long to retry, :data:`RETRY_SECONDS` for None."""
    if seconds is None:
        return RETRY_SECONDS
    if not 0 <= seconds <= 86_400:
        raise ArgumentError(
            "invalid_argument",
            f"retry_seconds must be between 0 (no retries) and a day, not {seconds!r}",
        )
    return seconds


def _tell(session: Session, error: BaseException | None) -> None:
    logger.warning("trying again: %s", error, extra={"collection": session.collection.name})


def retried(
    method: Callable[Concatenate[Store, _P], _T],
) -> Callable[Concatenate[Store, _P], _T]:
    """Decorate a lookup: retry it after transient faults, and report it as an event.

    A function whose name begins with an underscore reports no event. If the collection was replaced
    meanwhile, the call is repeated immediately, over any connection.
    """

    def follow(store: Store, /, *arguments: _P.args, **options: _P.kwargs) -> _T:
        while True:
            try:
                return method(store, *arguments, **options)
            except MovedCollectionError as error:
                logger.info("%s", error, extra={"collection": store.collection})

    @wraps(method)
    def call(store: Store, /, *arguments: _P.args, **options: _P.kwargs) -> _T:
        count = _count(next(iter((*arguments, *options.values())), None))
        with Observation(store.session, method.__name__, count) as observation:
            try:
                answer = follow(store, *arguments, **options)
            except PgsimhashError as error:
                if not store.session.may_retry(error):
                    raise
                answer = again(error, store.session, follow, store, *arguments, **options)
            observation.answer = answer
        return answer

    return call


def _count(queries: object) -> int:
    """Return how many simhashes or URLs a lookup has."""
    return len(queries) if isinstance(queries, Sized) and not isinstance(queries, str) else 1


def again(
    error: PgsimhashError,
    session: Session,
    function: Callable[_P, _T],
    *arguments: _P.args,
    **options: _P.kwargs,
) -> _T:
    """Repeat a call with pauses until it succeeds or fails permanently.

    Each pause is random below a bound that doubles, so that writers that lost their connections
    together do not return together.
    """
    from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

    _tell(session, error)
    pause = session.source.pause
    pause(_FIRST_PAUSE)
    attempts = Retrying(
        sleep=pause,
        retry=retry_if_exception(passes),
        stop=stop_after_delay(session.retry_seconds),
        wait=wait_random_exponential(_FIRST_PAUSE, _LONGEST_PAUSE),
        before_sleep=lambda state: _tell(
            session, state.outcome.exception() if state.outcome else None
        ),
        reraise=True,
    )
    result: _T = attempts(function, *arguments, **options)
    return result
