"""Report each batch and each lookup of a store to the caller, for metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

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


def results_of(answer: Any) -> Mapping[str, int]:
    """Return the numbers of an answer by verdict, or of the pages or simhashes found."""
    if isinstance(answer, list) and answer and isinstance(answer[0], Verdict):
        return dict(Counter(verdict.verdict for verdict in answer))
    if isinstance(answer, Matches):
        return {"found": len(answer.queries)}
    if isinstance(answer, list):
        return {"found": sum(len(part) if isinstance(part, list) else 1 for part in answer)}
    # A page or None, or a bool.
    return {"found": int(bool(answer))}
