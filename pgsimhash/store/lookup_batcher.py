"""Combine the lookups of several asyncio tasks into one statement."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from pgsimhash.pages.records import Match

_STATEMENTS: Final = 2
"""Concurrent statements: the next is sent while the server answers the first."""

_BATCH: Final = 64
"""Lookups per statement: this bounds how long the first waits for the last."""


class Lookup(NamedTuple):
    """The lookup of one task, and the future that the task awaits."""

    simhash: int
    distance: int | None
    answer: asyncio.Future[list[Match]]


FindEach = Callable[[Sequence[int], int | None], Awaitable[Sequence[list[Match]]]]
"""Look up simhashes at one distance, and return the matches of each."""


class LookupBatcher:
    """Lookups that arrive during a statement are combined into the next one.

    A single lookup is sent immediately.
    """

    def __init__(self, find_each: FindEach) -> None:
        self._find_each = find_each
        self._waiting: deque[Lookup] = deque()
        self._workers: set[asyncio.Task[Any] | None] = set()

    async def find(self, simhash: int, distance: int | None) -> list[Match]:
        """Return the matches of a simhash."""
        lookup = Lookup(simhash, distance, asyncio.get_running_loop().create_future())
        self._waiting.append(lookup)
        if len(self._workers) < _STATEMENTS:
            self._workers.add(asyncio.create_task(self._work()))
        return await lookup.answer

    async def _work(self) -> None:
        try:
            while batch := self._next():
                await self._answer(batch)
        finally:
            # Not in a callback: a lookup that arrives before it runs would have no worker.
            self._workers.remove(asyncio.current_task())

    async def _answer(self, batch: list[Lookup]) -> None:
        try:
            simhashes = [lookup.simhash for lookup in batch]
            answers = await self._find_each(simhashes, batch[0].distance)
        except Exception as error:
            for lookup in batch:
                if not lookup.answer.done():
                    lookup.answer.set_exception(error)
        except BaseException:
            for lookup in batch:
                lookup.answer.cancel()
            raise
        else:
            for lookup, matches in zip(batch, answers, strict=True):
                if not lookup.answer.done():
                    lookup.answer.set_result(matches)

    def _next(self) -> list[Lookup]:
        """Take the lookups for the next statement, without those of cancelled tasks."""
        batch: list[Lookup] = []
        others: list[Lookup] = []
        while self._waiting and len(batch) < _BATCH:
            lookup = self._waiting.popleft()
            if lookup.answer.done():
                continue
            same = not batch or lookup.distance == batch[0].distance
            (batch if same else others).append(lookup)
        self._waiting.extendleft(reversed(others))
        return batch
