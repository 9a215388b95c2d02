"""Run the embedded server while processes use it: a program that server.py starts.

It holds the lock on ``postgres.server`` while it runs. It waits for the lock on ``postgres.users``,
which all users of the server share. The kernel releases their shares however they end; then the
supervisor stops the server.

It imports little of the package, because it runs as long as a crawl.
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
    # Finds the package for any path of the parent process.
    sys.path.insert(0, str(Path(__file__).parents[2]))

from pgsimhash.embedded.cluster import (
    MARK,
    Cluster,
    RefusalError,
    prepare,
    remove_socket_folder,
    socket_folder_of,
)

READY: Final = "ready"

# Without users, open sessions are ended; a server that hangs is stopped harder.
_STOP: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)
_PATIENCE: Final = 60.0

_SECONDS_APART: Final = 5.0
"""How far a process's start may be from the time in its pid file, on a busy machine."""


class PidFile(NamedTuple):
    """The contents of ``postmaster.pid``."""

    pid: int
    started: float
    socket_folder: str


def read_pid_file(data: Path) -> PidFile | None:
    """Return the contents of the pid file, None without a file.

    Raises:
        RefusalError: the file is damaged.
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


def running(data: Path, pid_file: PidFile) -> psutil.Process | None:
    """Return the server of the pid file, None if it is gone.

    Pids are reused. The server of this package has its mark and the data folder in the command
    line, and started at the time in the pid file.

    Raises:
        RefusalError: the process is another server on this data.
    """
    try:
        process = psutil.Process(pid_file.pid)
        command, started = process.cmdline(), process.create_time()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
    if Path(command[0] if command else "").name != "postgres" or str(data) not in command:
        return None
    if MARK not in command or abs(started - pid_file.started) > _SECONDS_APART:
        raise RefusalError(
            f"process {pid_file.pid} seems to be another PostgreSQL server on {data}; stop it"
        )
    return process


def start(cluster: Cluster) -> tuple[subprocess.Popen[bytes] | psutil.Process, str]:
    """Return the server, which accepts connections, and the folder of its socket.

    Raises:
        RefusalError: the server did not start.
    """
    pid_file = read_pid_file(cluster.data)
    if pid_file is not None and (survivor := running(cluster.data, pid_file)) is not None:
        # Its supervisor was killed.
        while not _ready(cluster.data, survivor.pid):
            if not survivor.is_running():
                raise RefusalError("the server was just ending; run again")
            time.sleep(0.02)
        return survivor, pid_file.socket_folder
    socket_folder = socket_folder_of(cluster)
    stale = None if pid_file is None else pid_file.pid
    try:
        return _started(cluster, socket_folder, stale), socket_folder
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
        fatal = _fatal_error(cluster.log, beginning)
        # Sessions of a killed server need a moment to end.
        if "shared memory block" not in fatal or attempt == 99:
            break
        time.sleep(0.1)
    raise RefusalError(fatal or f"the server ended with {server.returncode}")


def _ready(data: Path, pid: int) -> bool:
    try:
        lines = (data / "postmaster.pid").read_bytes().split(b"\n")
    except OSError:
        return False
    return lines[0] == b"%d" % pid and len(lines) > 7 and lines[7].strip() == b"ready"


def _fatal_error(log: Path, beginning: int) -> str:
    with log.open("rb") as file:
        file.seek(beginning)
        text = file.read().decode(errors="backslashreplace")
    fatal = [line.partition("FATAL:")[2].strip() for line in text.splitlines() if "FATAL:" in line]
    return fatal[-1] if fatal else ""


def supervise(cluster: Cluster, users: int, lock: int) -> None:
    """Start the server, report it on stdout, and stop the server after its last user.

    Raises:
        RefusalError: the server did not start.
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
    """Stop the server, with a stronger signal after each timeout."""
    for stop_signal in _STOP:
        # Both classes check that the pid was not reused.
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            server.send_signal(stop_signal)
        if ended_within(_PATIENCE):
            return


def stop_left_over(cluster: Cluster, lock: int) -> None:
    """Stop the server whose supervisor was killed, if it still runs.

    Raises:
        RefusalError: the pid file is damaged, or belongs to another server.
    """
    pid_file = read_pid_file(cluster.data)
    server = None if pid_file is None else running(cluster.data, pid_file)
    if pid_file is not None and server is not None:
        stop(server, lambda seconds: not psutil.wait_procs([server], seconds)[1])
        remove_socket_folder(cluster, pid_file.socket_folder)
    os.ftruncate(lock, 0)


def answer(text: str) -> None:
    """Send the result to the process that started this one, once."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, text.encode("utf-8", "backslashreplace"))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def main() -> None:
    """Run the task of the argument in a detached process."""
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
