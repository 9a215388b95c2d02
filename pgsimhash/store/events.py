"""Report each batch and each lookup of a store to the caller, for metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from typing import Any

from pgsimhash.errors import PgsimhashError
from pgsimhash.log import logger
from pgsimhash.pages.records import Matches, Verdict


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


def report(on_event: OnEvent, event: Event) -> None:
    """Pass an event to the caller's function."""
    try:
        on_event(event)
    except Exception:
        # A failure of the metrics must not affect the data.
        logger.exception("on_event failed", extra={"collection": event.collection})


def count_of(queries: object) -> int:
    """Return how many simhashes or URLs a lookup has."""
    return len(queries) if isinstance(queries, Sized) and not isinstance(queries, str) else 1


def results_of(answer: Any) -> Mapping[str, int]:
    """Return the numbers of an answer by verdict, or of the pages or simhashes found."""
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


def reason_of(error: BaseException) -> str:
    """Return the code of an error, or the name of its class."""
    return error.reason if isinstance(error, PgsimhashError) else type(error).__name__
