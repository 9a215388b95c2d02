"""Combine the calls of several asyncio tasks into one statement."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from pgsimhash.store import batches

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
        size_of: Callable[[_V], int] = lambda _: 0,
    ) -> None:
        """Use a function that returns the answers to several calls, in order.

        ``statements`` is how many may run at once. ``size_of`` returns the bytes of a call; no call
        is added to a statement that has :data:`~pgsimhash.store.batches.BATCH_BYTES`.
        """
        self._answer_all = answer_all
        self._statements, self._size_of = statements, size_of
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: deque[_Call[_V, _O, _A]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    async def call(self, value: _V, options: _O) -> _A:
        """Return the answer to a call."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # The tasks of a closed loop never end.
            self._loop, self._waiting, self._tasks = loop, deque(), set()
        call = _Call(value, options, loop.create_future())
        self._waiting.append(call)
        self._start()
        answer: _A = await call.answer
        return answer

    def _start(self) -> None:
        if self._waiting and len(self._tasks) < self._statements:
            task = asyncio.create_task(self._answer())
            self._tasks.add(task)
            # A callback, because a task that is cancelled before its first step runs no line.
            task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._start()

    async def _answer(self) -> None:
        batch = self._next()
        if not batch:
            return
        try:
            answers = await self._answer_all([call.value for call in batch], batch[0].options)
            for call, answer in zip(batch, answers, strict=True):
                if not call.answer.done():
                    call.answer.set_result(answer)
        except Exception as error:
            for call in batch:
                if not call.answer.done():
                    call.answer.set_exception(error)
        except asyncio.CancelledError:
            for call in batch:
                call.answer.cancel()
            raise

    def _next(self) -> list[_Call[_V, _O, _A]]:
        """Take the calls for the next statement, without those of cancelled tasks."""
        batch: list[_Call[_V, _O, _A]] = []
        others: list[_Call[_V, _O, _A]] = []
        size = 0
        while self._waiting and len(batch) < _BATCH and size < batches.BATCH_BYTES:
            call = self._waiting.popleft()
            if call.answer.done():
                continue
            if batch and call.options != batch[0].options:
                others.append(call)
                continue
            batch.append(call)
            size += self._size_of(call.value)
        self._waiting.extendleft(reversed(others))
        return batch
