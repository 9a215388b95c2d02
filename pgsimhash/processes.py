"""A process that answers messages; another takes its place when it ends or takes too long.

Each has a pipe of its own and no lock is shared, so that one that is killed, wherever it was, holds
up no other. That is what pools with queues cannot promise.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic, NamedTuple, TypeVar

from pgsimhash.errors import ArgumentError, check_type

_Message = TypeVar("_Message")
_Answer = TypeVar("_Answer")

_STEP_MIN, _STEP_MAX, _STEPS = 0.01, 1.0, 10
"""How exact a deadline is: a tenth of it, but no finer or coarser than these, in seconds."""

_NO_MEMORY = 77
"""What a process exits with that has too little memory for a message."""


def has_limits(page_seconds: float | None, page_memory: int | None) -> bool:
    """Return whether it is said what a page may take, so that a process has to read it.

    Raises:
        ArgumentError: one of them is not above 0.
    """
    check_type("page_seconds", page_seconds, float, None, wanted="seconds, such as 30")
    check_type("page_memory", page_memory, int, None, wanted="bytes, such as 500_000_000")
    if page_seconds is not None and not page_seconds > 0:
        raise ArgumentError(
            "invalid_number", f"page_seconds is a time in seconds, more than 0, not {page_seconds}"
        )
    if page_memory is not None and page_memory < 1:
        raise ArgumentError(
            "invalid_number", f"page_memory is a number of bytes, 1 or more, not {page_memory}"
        )
    return page_memory is not None or page_seconds not in (None, math.inf)


class EndedError(Exception):
    """The process ended without an answer.

    Attributes:
        reason: ``too_slow``, as its time was up, ``no_memory`` or, if nobody knows, ``crashed``.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the process ended: {reason}")
        self.reason = reason


class _Running(NamedTuple):
    process: BaseProcess
    pipe: Connection


class Worker(Generic[_Message, _Answer]):
    """A process that answers one message at a time, started by the first one.

    Args:
        begin: called with ``arguments`` in the process, returns what answers; a function of a
            module, that the process imports.
        arguments: pickled once for each process.
        modules: what the server that processes are forked from imports, once for all of them.
    """

    def __init__(
        self,
        begin: Callable[..., Callable[[_Message], _Answer]],
        arguments: tuple[Any, ...],
        modules: list[str],
    ) -> None:
        self._begin, self._arguments, self._modules = begin, arguments, modules
        self._running: _Running | None = None
        self._lock = threading.Lock()
        self._left = math.inf
        self._is_late = self._is_closed = False

    def ask(self, message: _Message, seconds: float = math.inf) -> _Answer:
        """Return the answer to ``message``.

        Args:
            message: anything that can be pickled.
            seconds: how long it may take, if :class:`Deadlines` watches over this one.

        Raises:
            EndedError: the process ended meanwhile, or had to be.
        """
        answered = False
        try:
            pipe = self._start().pipe
            self._count_down(seconds)
            pipe.send(message)
            answer: _Answer = pipe.recv()
            answered = True
        except (EOFError, OSError):
            raise EndedError("too_slow" if self._is_late else self._why()) from None
        finally:
            self._count_down(math.inf)
            if self._is_late or not answered:
                self._end()
        return answer

    def pass_time(self, seconds: float) -> None:
        """End the process if its time is up, now that so much of it passed."""
        with self._lock:
            self._left -= seconds
            if self._left < 0 and self._running is not None:
                self._is_late = True
                self._running.process.kill()

    def close(self) -> None:
        """End the process, for good; who waits for an answer hears of it."""
        with self._lock:
            self._is_closed = True
            if self._running is not None:
                self._running.process.kill()

    def release(self) -> None:
        """Give back what the process held, once it was closed and nobody asks any more."""
        self._end()

    def _count_down(self, seconds: float) -> None:
        with self._lock:
            self._left = seconds

    def _start(self) -> _Running:
        if self._running is not None:
            return self._running
        # A forked child would share the parent's database connection; these start clean.
        mac = sys.platform == "darwin"
        context = get_context("spawn") if mac else get_context("forkserver")
        context.set_forkserver_preload(self._modules)
        here, there = context.Pipe()
        process = context.Process(
            target=_serve, args=(there, self._begin, self._arguments), daemon=True
        )
        process.start()
        # Only the process has the other end now, so that the pipe ends with it.
        there.close()
        with self._lock:
            self._running = running = _Running(process, here)
            self._is_late = False
            if self._is_closed:
                process.kill()
        # What it takes to start is no part of a deadline.
        here.recv()
        return running

    def _why(self) -> str:
        if self._running is None:
            return "crashed"
        # Its end of the pipe is closed, so that it ends.
        process = self._running.process
        process.join(_STEP_MAX)
        return "no_memory" if process.exitcode == _NO_MEMORY else "crashed"

    def _end(self) -> None:
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running.process.kill()
            running.process.join()
            running.process.close()
            running.pipe.close()


class Deadlines:
    """Lets the time of some workers pass, and ends those whose time is up.

    A clock would also count the time for which all of them were stopped, as by Ctrl-Z.
    """

    def __init__(self, workers: Sequence[Worker[Any, Any]], seconds: float) -> None:
        self._workers = workers
        self._step = min(_STEP_MAX, max(_STEP_MIN, seconds / _STEPS))
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="page deadlines")
        if seconds < math.inf:
            self._thread.start()

    def close(self) -> None:
        """Let nobody's time pass any more."""
        self._is_over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(self._step):
            for worker in self._workers:
                worker.pass_time(self._step)


def _serve(
    pipe: Connection, begin: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...]
) -> None:
    # Ctrl-C reaches every process of the terminal; only the parent acts on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        answer = begin(*arguments)
        pipe.send(None)
        while True:
            pipe.send(answer(pipe.recv()))
    except (EOFError, OSError):
        # Who asked is gone.
        return
    except MemoryError:
        # Within a message, as a rule, and none can be read or sent after that.
        os._exit(_NO_MEMORY)
