"""Calls that are made again after a fault that passes: a lost connection, a deadlock, a restart."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar

from psycopg import errors

from pgsimhash.errors import ArgumentError, NoServerError, PgsimhashError, check_type
from pgsimhash.log import logger
from pgsimhash.store.collection import MovedCollectionError

if TYPE_CHECKING:
    from tenacity import RetryCallState

    from pgsimhash.store.session import Session
    from pgsimhash.store.store import Store

    _P = ParamSpec("_P")
    _T = TypeVar("_T")

RETRY_SECONDS: Final = 60.0
"""How long it is tried, unless told otherwise: a server that begins anew takes some of them."""

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0

_ABORTED: Final = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.TooManyConnections,
)
"""What the server says when a transaction came to nothing and the next one may do better."""


def passes(error: BaseException) -> bool:
    """Return whether a fault may be gone when the same is tried again."""
    if isinstance(error, NoServerError) and error.reason in {"connection_lost", "no_server"}:
        return True
    return isinstance(error.__cause__, _ABORTED)


def checked_retry_seconds(seconds: float | None) -> float:
    """Return how long to try, :data:`RETRY_SECONDS` for None.

    Raises:
        ArgumentError: it is negative, or no number.
    """
    if seconds is None:
        return RETRY_SECONDS
    check_type("retry_seconds", seconds, float, wanted="seconds, such as 60")
    if not 0 <= seconds <= 86_400:
        raise ArgumentError(
            "invalid_number",
            "retry_seconds is for how long to try again after a fault that passes, up to a day, "
            f"and 0 is not at all, not {seconds!r}",
        )
    return seconds


def _tell(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    logger.warning("trying again: %s", error)


def retried(
    method: Callable[Concatenate[Store, _P], _T],
) -> Callable[Concatenate[Store, _P], _T]:
    """Let a method that writes nothing be called again after a fault that passes.

    So is one whose collection was replaced under it, at once and over any connection.
    """

    def follow(store: Store, /, *arguments: _P.args, **options: _P.kwargs) -> _T:
        while True:
            try:
                return method(store, *arguments, **options)
            except MovedCollectionError as error:
                logger.info("%s", error)

    @wraps(method)
    def call(store: Store, /, *arguments: _P.args, **options: _P.kwargs) -> _T:
        try:
            return follow(store, *arguments, **options)
        except PgsimhashError as error:
            if not store.session.may_retry(error):
                raise
            return again(error, store.session, follow, store, *arguments, **options)

    return call


def again(
    error: PgsimhashError,
    session: Session,
    function: Callable[_P, _T],
    *arguments: _P.args,
    **options: _P.kwargs,
) -> _T:
    """Call a function, after a pause, until a fault has passed or it is no use any more.

    Pauses are drawn at random below a bound that doubles, so that writers that were cut off
    together do not come back together.
    """
    from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

    logger.warning("trying again: %s", error)
    pause = session.source.pause
    pause(_FIRST_PAUSE)
    attempts = Retrying(
        sleep=pause,
        retry=retry_if_exception(passes),
        stop=stop_after_delay(session.retry_seconds),
        wait=wait_random_exponential(_FIRST_PAUSE, _LONGEST_PAUSE),
        before_sleep=_tell,
        reraise=True,
    )
    made: _T = attempts(function, *arguments, **options)
    return made
