"""Lookups of several tasks in one statement, for asyncio."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from pgsimhash.records import Match

_STATEMENTS: Final = 2
"""How many statements are under way at once: one is answered while the next is being sent."""

_TOGETHER: Final = 64
"""How many lookups go into one statement: it bounds how long the first waits for the last."""


class Asked(NamedTuple):
    """What one task looks up, and what waits for the answer."""

    simhash: int
    distance: int | None
    answer: asyncio.Future[list[Match]]


Ask = Callable[[Sequence[int], int | None], Awaitable[Sequence[list[Match]]]]
"""What looks up some simhashes at one distance, and returns the matches of each."""


class Together:
    """Lookups that come while others are being answered wait for those, and go together.

    A lookup that comes alone goes at once.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._waiting: deque[Asked] = deque()
        self._at_work: set[asyncio.Task[Any] | None] = set()

    async def find(self, simhash: int, distance: int | None) -> list[Match]:
        """Return the matches of a simhash, once it was its turn."""
        asked = Asked(simhash, distance, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if len(self._at_work) < _STATEMENTS:
            self._at_work.add(asyncio.create_task(self._work()))
        return await asked.answer

    async def _work(self) -> None:
        try:
            while batch := self._next():
                await self._answer(batch)
        finally:
            # Not by a callback: who asks before it ran would be waited for by nobody.
            self._at_work.remove(asyncio.current_task())

    async def _answer(self, batch: list[Asked]) -> None:
        try:
            found = await self._ask([one.simhash for one in batch], batch[0].distance)
        except Exception as error:
            for one in batch:
                if not one.answer.done():
                    one.answer.set_exception(error)
        except BaseException:
            for one in batch:
                one.answer.cancel()
            raise
        else:
            for one, matches in zip(batch, found, strict=True):
                if not one.answer.done():
                    one.answer.set_result(matches)

    def _next(self) -> list[Asked]:
        """Take what waits and goes into one statement, but for those who wait no longer."""
        batch: list[Asked] = []
        others: list[Asked] = []
        while self._waiting and len(batch) < _TOGETHER:
            one = self._waiting.popleft()
            if one.answer.done():
                continue
            if batch and one.distance != batch[0].distance:
                others.append(one)
            else:
                batch.append(one)
        self._waiting.extendleft(reversed(others))
        return batch
