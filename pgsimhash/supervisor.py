"""Runs the embedded server for as long as a process uses it: a program, started by server.py.

It is given the folder of the data, and holds the lock on ``postgres.server`` while it lives. It
waits for the lock on ``postgres.users``, which all who use the server share: the kernel lets go of
their shares however they end, and then the server is stopped.

It imports little of the package, for it stays as long as a crawl.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import psutil

if __name__ == "__main__":
    # Where the package is, whatever the path of the process that started this one.
    sys.path.insert(0, str(Path(__file__).parents[1]))

from pgsimhash.server_cluster import (
    MARK,
    Cluster,
    RefusalError,
    prepare,
    remove_socket_folder,
    socket_folder_of,
)

READY: Final = "ready"

# With no user left, sessions are ended; a server that hangs is ended as after a crash.
_STOP: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)
_PATIENCE: Final = 60.0

_SECONDS_APART: Final = 5.0
"""How far a process's beginning may be from what its pid file says, on a busy machine."""


class PidFile(NamedTuple):
    """What ``postmaster.pid`` says of a server."""

    pid: int
    started: float
    socket_folder: str


def read_pid_file(data: Path) -> PidFile | None:
    """Return what the pid file says, None where there is none.

    Raises:
        RefusalError: it is none of PostgreSQL's.
    """
    path = data / "postmaster.pid"
    try:
        lines = path.read_bytes().split(b"\n")
        return PidFile(int(lines[0]), float(lines[2]), os.fsdecode(lines[4]))
    except FileNotFoundError:
        return None
    except (IndexError, ValueError) as error:
        raise RefusalError(
            f"{path} is damaged; if no PostgreSQL server runs on that folder, remove it"
        ) from error


def running(data: Path, said: PidFile) -> psutil.Process | None:
    """Return the server of which the pid file speaks, None if that is gone.

    A pid is given to another process sooner or later. Ours has our command line and data folder,
    and began when the pid file says.

    Raises:
        RefusalError: the process is a server on this data, and not one of ours.
    """
    try:
        process = psutil.Process(said.pid)
        command, began = process.cmdline(), process.create_time()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
    if Path(command[0] if command else "").name != "postgres" or str(data) not in command:
        return None
    if MARK not in command or abs(began - said.started) > _SECONDS_APART:
        raise RefusalError(
            f"process {said.pid} seems to be another PostgreSQL server on {data}; stop it"
        )
    return process


def start(cluster: Cluster) -> tuple[subprocess.Popen[bytes] | psutil.Process, str]:
    """Return the server, which takes connections, and the folder of its socket.

    Raises:
        RefusalError: it did not start.
    """
    said = read_pid_file(cluster.data)
    if said is not None and (survivor := running(cluster.data, said)) is not None:
        # The process that watched over it was killed.
        while not _ready(cluster.data, survivor.pid):
            if not survivor.is_running():
                raise RefusalError("the server was just ending; run again")
            time.sleep(0.02)
        return survivor, said.socket_folder
    socket_folder = socket_folder_of(cluster)
    try:
        return _started(cluster, socket_folder, None if said is None else said.pid), socket_folder
    except BaseException:
        remove_socket_folder(cluster, socket_folder)
        raise


def _started(cluster: Cluster, socket_folder: str, stale: int | None) -> subprocess.Popen[bytes]:
    for attempt in range(100):
        beginning = cluster.log.stat().st_size
        server = cluster.launch(socket_folder, stale)
        while server.poll() is None:
            if _ready(cluster.data, server.pid):
                return server
            time.sleep(0.02)
        said = _last_words(cluster.log, beginning)
        # Sessions of a server that was killed take a moment to notice.
        if "shared memory block" not in said or attempt == 99:
            break
        time.sleep(0.1)
    raise RefusalError(said or f"the server ended with {server.returncode}")


def _ready(data: Path, pid: int) -> bool:
    try:
        lines = (data / "postmaster.pid").read_bytes().split(b"\n")
    except OSError:
        return False
    return lines[0] == b"%d" % pid and len(lines) > 7 and lines[7].strip() == b"ready"


def _last_words(log: Path, beginning: int) -> str:
    with log.open("rb") as file:
        file.seek(beginning)
        text = file.read().decode(errors="backslashreplace")
    fatal = [line.partition("FATAL:")[2].strip() for line in text.splitlines() if "FATAL:" in line]
    return fatal[-1] if fatal else ""


def supervise(cluster: Cluster, users: int, lock: int) -> None:
    """Start the server, tell the process that waits on stdout, stop it when nobody uses it.

    Raises:
        RefusalError: it did not start.
    """
    prepare(cluster)
    server, socket_folder = start(cluster)
    ended = threading.Event()

    def stop_unused() -> None:
        fcntl.flock(users, fcntl.LOCK_EX)
        stop(server, ended.wait)

    def stop_now(*_: object) -> None:
        threading.Thread(target=stop, args=(server, ended.wait), daemon=True).start()

    signal.signal(signal.SIGTERM, stop_now)
    threading.Thread(target=stop_unused, daemon=True).start()
    os.pwrite(lock, os.fsencode(socket_folder) + b"\n", 0)
    answer(READY)
    server.wait()
    ended.set()
    os.ftruncate(lock, 0)
    remove_socket_folder(cluster, socket_folder)


def stop(
    server: subprocess.Popen[bytes] | psutil.Process, ended_within: Callable[[float], bool]
) -> None:
    """Stop the server, the harder the longer it takes."""
    for order in _STOP:
        # Neither sends a signal to a process that got the pid of one that ended.
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            server.send_signal(order)
        if ended_within(_PATIENCE):
            return


def stop_left_over(cluster: Cluster, lock: int) -> None:
    """Stop the server whose supervisor was killed, if it runs and is ours.

    Raises:
        RefusalError: the pid file is damaged, or of another server.
    """
    said = read_pid_file(cluster.data)
    server = None if said is None else running(cluster.data, said)
    if said is not None and server is not None:
        stop(server, lambda seconds: not psutil.wait_procs([server], seconds)[1])
        remove_socket_folder(cluster, said.socket_folder)
    os.ftruncate(lock, 0)


def answer(text: str) -> None:
    """Say how it went to the process that started this one, once."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, text.encode("utf-8", "backslashreplace"))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def main() -> None:
    """Do what the argument orders, in a process that belongs to nobody."""
    if os.fork() != 0:
        os._exit(0)
    order = json.loads(sys.argv[1])
    cluster = Cluster(
        Path(order["data"]),
        Path(order["programs"]),
        Path(order["log"]),
        order["account"],
        tuple(order["settings"]),
    )
    try:
        if order["task"] == "stop":
            stop_left_over(cluster, order["lock"])
            return
        supervise(cluster, os.open(order["users"], os.O_RDWR), order["lock"])
    except (RefusalError, OSError) as error:
        answer(str(error))


if __name__ == "__main__":
    main()
