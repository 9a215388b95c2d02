"""Run a process that answers messages, and replace it if it ends or takes too long.

Each process has its own pipe and no lock is shared. So a process that is killed at any point does
not block others, unlike in pools with queues.
"""

import math
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import cache
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from pgsimhash.errors import ArgumentError

START_SECONDS = 60  # then a process will not start any more, as one that was stopped
_SECONDS_MAX = 1e6  # what a pipe accepts
_NO_MEMORY = 77  # the exit code of a process with too little memory for a message
_KILLED = -9  # that of a process that was killed from outside


class EndedError(Exception):
    """The process ended without an answer: ``too_slow``, ``no_memory`` or ``crashed``."""


class _Running(NamedTuple):
    process: BaseProcess
    pipe: Connection


class Worker:
    """A process that answers one message at a time; the first message starts it.

    There, ``begin`` returns the function that answers messages; its ``arguments`` are pickled.
    """

    def __init__(
        self, begin: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...]
    ) -> None:
        self._begin, self._arguments = begin, arguments
        self._running: _Running | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def ask(self, message: object, seconds: float = math.inf) -> Any:
        """Return the answer to ``message``; the process is killed if it takes more ``seconds``.

        A process that ended without an answer is an EndedError, one that cannot start an
        ArgumentError.
        """
        try:
            pipe = self._start().pipe
            pipe.send(message)
            if pipe.poll(min(seconds, _SECONDS_MAX)):
                return pipe.recv()
            reason = "too_slow"
        except (EOFError, OSError):
            reason = self._why()
        except BaseException:
            self.release()
            raise
        self.release()
        raise EndedError(reason)

    def close(self) -> None:
        """Kill the process for good; a waiting :meth:`ask` raises."""
        with self._lock:
            self._is_closed = True
            if self._running is not None:
                self._running.process.kill()

    def _start(self) -> _Running:
        if self._running is not None:
            return self._running
        try:
            return self._started()
        except (AssertionError, EOFError, OSError, RuntimeError) as error:
            reason = self._why()
            was_killed = self._running is not None and self._running.process.exitcode == _KILLED
            if self._is_closed or was_killed or reason != "crashed":
                raise EndedError(reason) from None
            raise no_process(error) from error

    def _started(self) -> _Running:
        if getattr(current_process(), "_inheriting", False):
            # A process that imports the program again to begin: only its parent tells the error.
            sys.exit(1)
        # A forked child would share the parent's database connection; these do not.
        is_alone = sys.platform == "darwin" or _first_starter() != os.getpid()
        context = get_context("spawn") if is_alone else get_context("forkserver")
        # The fork server imports the module once for all processes.
        context.set_forkserver_preload([self._begin.__module__])
        own_end, other_end = context.Pipe()
        process = context.Process(
            target=_serve, args=(other_end, self._begin, self._arguments), daemon=True
        )
        process.start()
        # Only the process has the other end now, so the pipe ends with it.
        other_end.close()
        with self._lock:
            self._running = running = _Running(process, own_end)
            if self._is_closed:
                process.kill()
        # The start does not count for the deadline of a message.
        if not own_end.poll(START_SECONDS):
            raise no_process(TimeoutError(f"it did not start within {START_SECONDS} seconds"))
        own_end.recv()
        return running

    def _why(self) -> str:
        if self._running is None:
            return "crashed"
        # The process closed its end of the pipe, so it is about to end.
        process = self._running.process
        process.join(10.0)
        return "no_memory" if process.exitcode == _NO_MEMORY else "crashed"

    def release(self) -> None:
        """End the process and free its resources; the next :meth:`ask` starts another one."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running.process.kill()
            running.process.join()
            running.process.close()
            running.pipe.close()


@cache
def _first_starter() -> int:
    """Return the process that has the fork server; its forked children cannot use that."""
    return os.getpid()


def no_process(error: Exception) -> ArgumentError:
    """Return the error for a process that did not start; every other one would fail too."""
    program = getattr(sys.modules["__main__"], "__file__", None)
    try:
        Path.cwd()
    except OSError:
        cause = "the working folder was deleted; start the program in another one"
    else:
        if program is not None and not Path(program).exists():
            cause = f"it imports the program again, but {program} is not a file; save it as one"
        elif isinstance(error, EOFError):
            cause = (
                "it imports the program again, which needs `if __name__ == "
                '"__main__":` around its calls; other errors of the process are on stderr'
            )
        else:
            cause = str(error)
    return ArgumentError(
        "no_process",
        f"a process that reads pages cannot start: {cause}. Without jobs, page_seconds and "
        "page_memory, pages are read in this process",
    )


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
        return  # the parent is gone
    except MemoryError:
        # Usually within a message, so the pipe cannot be used any more.
        os._exit(_NO_MEMORY)
