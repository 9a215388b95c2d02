"""The server of a folder and its supervisor, a program that starts and stops it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if __name__ == "__main__":
    # Finds the package for any path of the parent process.
    sys.path.insert(0, str(Path(__file__).parents[2]))

from pgsimhash.errors import NoServerError
from pgsimhash.runtime.machine import memory_bytes

if TYPE_CHECKING:
    import psutil

_MARK: Final = "cluster_name=pgsimhash"  # identifies the servers of this package
_SOCKET: Final = ".s.PGSQL.5432"
READY: Final = "ready"
PATIENCE: Final = 600  # seconds for a server to recover, or for processes of a killed one to end


@dataclass(frozen=True)
class Cluster:
    """A folder for data, PostgreSQL's programs, and the account that runs them as root's server."""

    home: str
    programs: str
    account: str | None

    @property
    def data(self) -> Path:
        """The data folder of PostgreSQL."""
        return Path(self.home, "postgres")

    def file(self, kind: str) -> Path:
        """Return the path of the log or of a file with locks."""
        return Path(self.home, f"postgres.{kind}")

    def opened(self, kind: str, flags: int = 0) -> int:
        """Open such a file, created if necessary."""
        flags |= os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self.file(kind), flags, 0o600)

    def is_free(self, kind: str, lock: int = fcntl.LOCK_EX) -> bool:
        """Return whether no process has a lock that rules out this one."""
        file = self.opened(kind)
        try:
            return locked(file, lock)
        finally:
            os.close(file)

    def pid_file(self) -> tuple[int, Path, bool]:
        """Return the server's pid (0 if unknown), its socket's folder, and whether it is ready."""
        with contextlib.suppress(FileNotFoundError, IndexError, ValueError):
            lines = (self.data / "postmaster.pid").read_bytes().split(b"\n")
            is_ready = len(lines) > 7 and lines[7].strip() == b"ready"
            return int(lines[0]), Path(os.fsdecode(lines[4])), is_ready
        return 0, self.data, False

    def answers(self, sockets: Path) -> bool:
        """Return whether a server listens in a folder, which must be closed to other users.

        Whoever reaches the socket is a superuser.
        """
        with socket.socket(socket.AF_UNIX) as client:
            if client.connect_ex(os.fsencode(sockets / _SOCKET)) != 0:
                return False
        status = sockets.lstat()
        uid = pwd.getpwnam(self.account).pw_uid if self.account else os.geteuid()
        is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == uid
        if not is_own or status.st_mode & 0o077:
            raise refusal(
                f"other users may reach the embedded server's socket in {sockets}, a folder of "
                f"{user_name(status.st_uid)}; run: chmod 700 {shlex.quote(str(sockets))}, or stop "
                f"the server that {self.file('log')} names"
            )
        return True

    def call(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program and return its result."""
        return subprocess.run(  # noqa: S603
            [f"{self.programs}/{program}", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            check=False,
            **self._environment(),
        )

    def launch(self, sockets: Path, lock: int) -> subprocess.Popen[bytes]:
        """Start the server, which logs to stderr and keeps the lock."""
        environment = self._environment()
        # The lock was free, so the process of a pid file is another one or ends. PostgreSQL then
        # ignores the file, but still looks for processes that use the data's shared memory.
        environment["env"]["PG_GRANDPARENT_PID"] = str(self.pid_file()[0])
        quoted = str(sockets).replace('"', '""')
        settings = (
            _MARK,
            "listen_addresses=",
            "port=5432",
            f'unix_socket_directories="{quoted}"',
            "unix_socket_permissions=0700",
            *_settings(),
        )
        arguments = [argument for setting in settings for argument in ("-c", setting)]
        return subprocess.Popen(  # noqa: S603
            [f"{self.programs}/postgres", "-D", str(self.data), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            pass_fds=[lock],
            **environment,
        )

    def new_folder(self, prefix: str, parent: Path | None = None) -> Path:
        """Create a temporary folder that belongs to the account of the server."""
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        if self.account is not None:
            entry = pwd.getpwnam(self.account)
            os.chown(folder, entry.pw_uid, entry.pw_gid)
        return folder

    def _environment(self) -> dict[str, Any]:
        # Keeps the user's locale and client settings away from the server.
        unwanted = "PG", "LC_", "LANG"
        kept = {name: os.environ[name] for name in os.environ if not name.startswith(unwanted)}
        environment: dict[str, Any] = {"env": kept | {"LC_ALL": "C"}, "cwd": "/", "umask": 0o077}
        if self.account is not None:
            group = pwd.getpwnam(self.account).pw_gid
            groups = os.getgrouplist(self.account, group)
            environment |= {"user": self.account, "group": group, "extra_groups": groups}
        return environment


def _supervise(cluster: Cluster) -> None:
    """Start or take over the server, report it on stdout, and stop it after its last user."""
    users, lock = cluster.opened("users"), cluster.opened("server")
    server: subprocess.Popen[bytes] | psutil.Process | None = _survivor(cluster, lock)
    if server is not None:
        _, sockets, _ = cluster.pid_file()
    else:
        if not cluster.data.exists() or not any(cluster.data.iterdir()):
            _initialise(cluster)
        sockets = _socket_folder_of(cluster)
    try:
        server = server or _launched(cluster, sockets, lock)
        ended = threading.Event()

        def stop_unused() -> None:
            fcntl.flock(users, fcntl.LOCK_EX)
            _stop(server, ended.wait)

        threading.Thread(target=stop_unused, daemon=True).start()
        _answer(READY)
        server.wait()
        ended.set()
    finally:
        if sockets != cluster.data:
            shutil.rmtree(sockets, ignore_errors=True)


def _survivor(cluster: Cluster, lock: int) -> psutil.Process | None:
    """Return the server whose supervisor was killed, or None and keep the lock of the server."""
    import psutil

    latest = time.monotonic() + PATIENCE
    while not locked(lock):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            pid, _, _ = cluster.pid_file()
            server = psutil.Process(pid)
            command = server.cmdline()
            # Pids are reused. Our server has its mark and the data folder in the command line.
            if _MARK in command and str(cluster.data) in command:
                return server
        # The processes of a killed server have the lock until they end.
        if time.monotonic() > latest:
            raise refusal("processes of a killed server do not end")
        time.sleep(0.02)
    return None


def _initialise(cluster: Cluster) -> None:
    """Create the data folder."""
    prefix = ".postgres-initdb-"
    for left_over in cluster.data.parent.glob(f"{prefix}*"):
        shutil.rmtree(left_over, ignore_errors=True)
    # Renamed at the end, so the folder is complete even if this process is killed.
    fresh = cluster.new_folder(prefix, cluster.data.parent)
    version = re.search(r"\d+", cluster.call("postgres", "--version").stdout)
    has_builtin = version is not None and int(version.group()) >= 17
    builtin = "--locale-provider=builtin", "--builtin-locale=C.UTF-8"
    try:
        done = cluster.call(
            "initdb",
            f"--pgdata={fresh}",
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            *(builtin if has_builtin else ()),
        )
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error: " in line]
            raise refusal((errors or [f"initdb ended with {done.returncode}"])[0])
        fresh.rename(cluster.data)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _suits_a_socket(folder: Path) -> bool:
    # Linux and macOS limit the path's length. Not Unicode: psycopg cannot send it. libpq reads a
    # comma as the separator of hosts.
    with contextlib.suppress(UnicodeEncodeError):
        return len(str(folder / _SOCKET).encode()) <= 103 and "," not in str(folder)
    return False


def _socket_folder_of(cluster: Cluster) -> Path:
    """Return the private data folder, or a temporary folder if its path is invalid for a socket."""
    if _suits_a_socket(cluster.data):
        return cluster.data
    folder = cluster.new_folder("pgsimhash-")
    if not _suits_a_socket(folder):
        folder.rmdir()
        raise refusal(f"{folder} is too long for a socket; set TMPDIR to a shorter folder")
    return folder


def _launched(cluster: Cluster, sockets: Path, lock: int) -> subprocess.Popen[bytes]:
    """Return the server when it accepts connections."""
    for attempt in range(20):
        beginning = cluster.file("log").stat().st_size
        server = cluster.launch(sockets, lock)
        while server.poll() is None:
            pid, _, is_ready = cluster.pid_file()
            if is_ready and pid == server.pid:
                return server
            time.sleep(0.02)
        with cluster.file("log").open("rb") as file:
            file.seek(beginning)
            log = file.read().decode(errors="backslashreplace")
        reasons = re.findall(r"(?:FATAL|DETAIL|HINT): +(.+)", log) or log.splitlines()[:1]
        # Sessions of a killed server need a moment to end.
        if "shared memory block" not in log or attempt == 19:
            break
        time.sleep(0.1)
    raise refusal("; ".join(reasons) or f"the server ended with {server.returncode}")


def _settings() -> list[str]:
    """Return the server's settings; PostgreSQL's defaults are for small machines."""
    memory = memory_bytes()
    megabytes = {
        "shared_buffers": max(memory // 8, 128 << 20) >> 20,
        "effective_cache_size": max(memory // 2, 512 << 20) >> 20,
        "maintenance_work_mem": min(max(memory // 32, 64 << 20), 1 << 30) >> 20,
        # After each checkpoint every changed page is logged as a whole.
        "max_wal_size": 4096,
    }
    sizes = [f"{name}={size}MB" for name, size in megabytes.items()]
    # Lookups of new rows are slower until they are vacuumed.
    return [*sizes, "checkpoint_timeout=15min", "autovacuum_naptime=15s"]


def _stop(
    server: subprocess.Popen[bytes] | psutil.Process, ended_within: Callable[[float], bool]
) -> None:
    """Stop the server, with a stronger signal after each timeout."""
    import psutil

    # Without users, open sessions are ended; a server that hangs is stopped harder.
    for stop_signal in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        # Both classes check that the pid was not reused.
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            server.send_signal(stop_signal)
        if ended_within(60):
            return


def _answer(text: str) -> None:
    """Send the result to the process that started this one, once."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, text.encode("utf-8", "backslashreplace"))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _main() -> None:
    """Run the supervisor in a detached process, which inherits its lock."""
    if os.fork() != 0:
        os._exit(0)
    cluster = Cluster(*json.loads(sys.argv[1]))
    try:
        _supervise(cluster)
    except NoServerError as error:
        _answer(str(error))
    except OSError as error:
        _answer(f"{error}; everybody must be able to run the programs in {cluster.programs}")


def locked(file: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Try to lock this descriptor without waiting; return whether it succeeded."""
    with contextlib.suppress(BlockingIOError, PermissionError):
        fcntl.flock(file, kind | fcntl.LOCK_NB)
        return True
    return False


def refusal(problem: str) -> NoServerError:
    """Return the error for a server that does not start."""
    return NoServerError("embedded", problem)


def user_name(uid: int) -> str:
    """Return the name of a user, if it has one."""
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return f"user {uid}"


if __name__ == "__main__":
    _main()
