"""Report each batch and each lookup of a store to the caller, for metrics."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pgsimhash.errors import PgsimhashError
from pgsimhash.log import logger
from pgsimhash.pages.records import Matches, Verdict

if TYPE_CHECKING:
    from pgsimhash.store.session import Session


@dataclass(frozen=True, slots=True)
class Event:
    """One batch or one lookup of a store.

    Attributes:
        name: ``ingest`` for a stored batch, ``decide`` for one that was only decided, else the name
            of the lookup method, such as ``find``. ``find_together`` is one statement for the
            ``find`` of several asyncio tasks.
        collection: the name of the collection.
        run_id: the run of a stored batch.
        seconds: the duration, including retries and waiting for other writers.
        count: the number of pages of the batch, or of URLs or simhashes that were looked up.
        results: for a batch, the number of pages by verdict; for a lookup, the number of pages or
            simhashes as ``found``.
        error: the ``reason`` of the error that ended it, or the name of its class; else None.
    """

    name: str
    collection: str
    run_id: int | None
    seconds: float
    count: int
    results: Mapping[str, int]
    error: str | None = None


OnEvent = Callable[[Event], object]
"""A function that receives each event, in the calling thread, so it must be fast."""


class Observation:
    """A running batch or lookup; its end creates an event.

    Attributes:
        answer: the result, set by the block.
        run_id: the run it belongs to.
    """

    __slots__ = ("_count", "_name", "_session", "_started", "answer", "run_id")

    def __init__(self, session: Session, name: str, count: int) -> None:
        self._session, self._name, self._count = session, name, count
        self.answer: Any = None
        self.run_id: int | None = None

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        on_event = self._session.on_event
        if on_event is None or self._name.startswith("_"):
            return
        event = Event(
            self._name,
            self._session.collection.name,
            self.run_id,
            time.perf_counter() - self._started,
            self._count,
            {} if error is not None else _results(self.answer),
            None if error is None else _reason(error),
        )
        try:
            on_event(event)
        except Exception:
            # A failure of the metrics must not affect the data.
            logger.exception("on_event failed", extra={"collection": event.collection})


def _results(answer: Any) -> Mapping[str, int]:
    if isinstance(answer, list) and answer and isinstance(answer[0], Verdict):
        return dict(Counter(verdict.verdict for verdict in answer))
    return {"found": _found(answer)}


def _found(answer: Any) -> int:
    if isinstance(answer, Matches):
        return len(answer.queries)
    if isinstance(answer, list):
        return sum(len(part) if isinstance(part, list) else 1 for part in answer)
    # A page or None, or a bool.
    return int(bool(answer))


def _reason(error: BaseException) -> str:
    return error.reason if isinstance(error, PgsimhashError) else type(error).__name__
