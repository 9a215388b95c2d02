"""Combine the calls of several asyncio tasks into one statement."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

_BATCH: Final = 64
"""Calls per statement: this bounds how long the first waits for the last."""

_V = TypeVar("_V")
_O = TypeVar("_O")
_A = TypeVar("_A")


class _Call(NamedTuple, Generic[_V, _O, _A]):
    """The call of one task, and the future that the task awaits."""

    value: _V
    options: _O
    answer: asyncio.Future[_A]


class TaskBatcher(Generic[_V, _O, _A]):
    """Calls that arrive during a statement are combined into the next one, if options are equal.

    A single call is sent immediately. A call whose task is cancelled may still have an effect.
    """

    def __init__(
        self,
        answer_all: Callable[[Sequence[_V], _O], Awaitable[Sequence[_A]]],
        *,
        statements: int = 1,
    ) -> None:
        """Use a function that returns the answers to several calls, in order.

        ``statements`` is how many may run at once.
        """
        self._answer_all = answer_all
        self._statements = statements
        self._waiting: deque[_Call[_V, _O, _A]] = deque()
        self._workers: set[asyncio.Task[Any] | None] = set()

    async def call(self, value: _V, options: _O) -> _A:
        """Return the answer to a call."""
        call = _Call(value, options, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        if len(self._workers) < self._statements:
            self._workers.add(asyncio.create_task(self._work()))
        answer: _A = await call.answer
        return answer

    async def _work(self) -> None:
        try:
            while batch := self._next():
                await self._answer(batch)
        finally:
            # Not in a callback: a call that arrives before it runs would have no worker.
            self._workers.remove(asyncio.current_task())

    async def _answer(self, batch: list[_Call[_V, _O, _A]]) -> None:
        try:
            answers = await self._answer_all([call.value for call in batch], batch[0].options)
        except Exception as error:
            for call in batch:
                if not call.answer.done():
                    call.answer.set_exception(error)
        except BaseException:
            for call in batch:
                call.answer.cancel()
            raise
        else:
            for call, answer in zip(batch, answers, strict=True):
                if not call.answer.done():
                    call.answer.set_result(answer)

    def _next(self) -> list[_Call[_V, _O, _A]]:
        """Take the calls for the next statement, without those of cancelled tasks."""
        batch: list[_Call[_V, _O, _A]] = []
        others: list[_Call[_V, _O, _A]] = []
        while self._waiting and len(batch) < _BATCH:
            call = self._waiting.popleft()
            if call.answer.done():
                continue
            same = not batch or call.options == batch[0].options
            (batch if same else others).append(call)
        self._waiting.extendleft(reversed(others))
        return batch
