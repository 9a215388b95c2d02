"""Start and share the embedded server, a real PostgreSQL in the extra ``embedded``.

Its data is in PGSIMHASH_DATA_DIR if that is set, else in the platform's data directory of this
user, in a folder for each major version. The server starts on first use and stops
with the last process that uses it.

Locks coordinate the processes, because the kernel releases them however a process ends:

- ``postgres.users`` is shared by the processes that use the server. To stop the server, a process
  locks it exclusively.
- ``postgres.watcher`` is held by the watcher, a process that stops the server if its last user was
  killed. If the watcher was killed, the next user starts another one.
- ``postgres.server`` is held by the process that starts the server, then by the processes of the
  server, which inherit it.
"""

import atexit
import contextlib
import fcntl
import os
import re
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from io import FileIO
from pathlib import Path
from typing import Any, Final

from pgsimhash.errors import NoServerError
from pgsimhash.log import logger
from pgsimhash.runtime.machine import memory_bytes
from pgsimhash.runtime.server_home import (
    DATA_DIR_VARIABLE,
    check_folder,
    check_version,
    data_folder,
    let_pass,
    postgres_programs,
    refusal,
    server_account,
    user_name,
)

_LIBPQ_DEFAULTS: Final = {
    "channel_binding": "disable", "gssencmode": "disable", "hostaddr": "", "options": "",
    "require_auth": "", "requirepeer": "", "sslcertmode": "disable", "sslmode": "disable",
    "sslnegotiation": "postgres", "sslrootcert": "", "target_session_attrs": "any",
}  # fmt: skip

__all__ = ["start"]

_SOCKET: Final = ".s.PGSQL.5432"
_PATIENCE: Final = 600  # seconds for a server to recover, or for processes of a killed one to end


def start(folder: Path | None = None) -> str:
    """Start the server, or join the running one, and return its DSN; a failure is a NoServerError.

    It stops with the last process that called this. ``folder`` is by default PGSIMHASH_DATA_DIR or
    the platform's. It may not belong to another user, or contain something else.
    """
    from psycopg import conninfo, pq

    # No lock or socket of this process may have the number of a closed standard stream.
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        continue
    os.close(opened)
    programs, home = postgres_programs(), folder
    try:
        home = (data_folder(programs) if home is None else home).expanduser().resolve()
        check_folder(home)
        home.mkdir(parents=True, exist_ok=True)
        with _guard:
            if home in _servers and not _servers[home].is_current():
                leave(home)
            if home not in _servers:
                _servers[home] = _Server(home, programs)
            try:
                sockets = _servers[home].join()
            except BaseException:
                os.close(_servers.pop(home).users)
                raise
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise _failed(home, error) from error
    logger.info("the embedded PostgreSQL in %s", home)
    # What libpq's variables or their service ask of another server.
    settings = {
        name: _LIBPQ_DEFAULTS[name]
        for option in pq.Conninfo.get_defaults()
        if option.val != option.compiled and (name := option.keyword.decode()) in _LIBPQ_DEFAULTS
    }
    settings |= {"host": str(sockets), "port": "5432", "user": "postgres", "dbname": "postgres"}
    return conninfo.make_conninfo(**settings)


def exists() -> bool:
    """Return whether this user's server was created."""
    return (data_folder(postgres_programs()).expanduser() / "postgres").is_dir()


def leave(home: Path) -> None:
    """Leave the server in a folder; the last process waits until it has stopped."""
    _servers.pop(home.resolve()).leave()


class _Server:
    """The server in a folder, and the users' lock of this process."""

    def __init__(self, home: Path, programs: Path, users: int | None = None) -> None:
        self._home = home
        self._programs = programs
        self._data = Path(home, "postgres").resolve()  # it may be a link to another disk
        self._account = server_account()
        if users is None:
            with self._opened("users") as file:
                # No file, which a forked process would close: it keeps the lock.
                users = os.dup(file.fileno())
        self.users = users

    def join(self) -> Path:
        """Join the server, start it if necessary, and return its socket's folder."""
        # Waits for a server that is stopping.
        fcntl.flock(self.users, fcntl.LOCK_SH)
        self._ensure_watcher()
        launched: tuple[Path, int] | None = None
        stale: list[object] = []
        latest = time.monotonic() + _PATIENCE
        while time.monotonic() < latest:
            with self._opened("server") as lock:
                if _locked(lock):
                    if launched is not None:
                        raise self._ended(*launched)
                    *stale, _, _ = self._pid_file()
                    launched = self._launch(lock)
            *server, sockets, is_ready = self._pid_file()
            if is_ready and server != stale and _listens(sockets):
                self._check_private(sockets)
                return sockets
            time.sleep(0.02)
        raise _failed(self._home, "it does not finish", f"see {self._file('log')}, or ")

    def is_current(self) -> bool:
        """Return whether the folder was not replaced since this process opened its lock."""
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(self._file("users").stat(), os.fstat(self.users))
        return False

    def leave(self) -> None:
        """Leave the server; the last process waits until it has stopped."""
        is_current = self.is_current()
        os.close(self.users)
        if not is_current:
            # PostgreSQL stops by itself when its data is gone.
            return
        with self._opened("users") as users:
            if _locked(users):
                self._stop()
            else:
                # Other users share the lock. The watcher has it alone until the server has stopped.
                fcntl.flock(users, fcntl.LOCK_SH)

    def watch(self, lock: int) -> None:
        """Wait until the server has no users, and stop it."""
        fcntl.flock(self.users, fcntl.LOCK_EX)
        # The next user waits for this process to end, and then needs another watcher.
        os.close(lock)
        if self.is_current():
            self._stop()

    def _file(self, kind: str) -> Path:
        """Return the path of the log or of a file with locks."""
        return Path(self._home, f"postgres.{kind}")

    def _opened(self, kind: str, flags: int = 0) -> FileIO:
        """Open such a file, created if necessary."""
        flags |= os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return FileIO(os.open(self._file(kind), flags, 0o600), "r+")

    def _pid_file(self) -> tuple[int, bytes, Path, bool]:
        """Return the server's pid or 0, its start, its socket's folder, and whether it is ready."""
        with contextlib.suppress(FileNotFoundError, IndexError, ValueError):
            lines = (self._data / "postmaster.pid").read_bytes().split(b"\n")
            is_ready = len(lines) > 7 and lines[7].strip() == b"ready"
            return int(lines[0]), lines[2], Path(os.fsdecode(lines[4])), is_ready
        return 0, b"", self._data, False

    def _check_private(self, sockets: Path) -> None:
        """Raise if other users may reach the socket, where everybody is a superuser."""
        status = sockets.lstat()
        uid = self._account.pw_uid if self._account else os.geteuid()
        is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == uid
        if not is_own or status.st_mode & 0o077:
            raise refusal(
                f"other users may reach the embedded server's socket in {sockets}, a folder of "
                f"{user_name(status.st_uid)}; run: chmod 700 {shlex.quote(str(sockets))}, or stop "
                f"the server that {self._file('log')} names"
            )

    def _ensure_watcher(self) -> None:
        with self._opened("watcher") as lock, self._opened("users") as users:
            if _locked(lock):
                # It needs this package, whatever the path of this process is.
                environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
                arguments = [self._home, self._programs, users.fileno(), lock.fileno()]
                command = [sys.executable, "-P", "-m", __name__, *map(str, arguments)]
                self._detach(command, users, lock, env=environment, cwd="/")

    def _launch(self, lock: FileIO) -> tuple[Path, int]:
        """Start the server; return its socket's folder, and where in the log its messages begin."""
        let_pass(self._data)
        let_pass(self._programs / "postgres")
        if not self._data.exists() or not any(self._data.iterdir()):
            self._initialise()
        check_version(self._data, self._programs)
        pid, *_ = self._pid_file()
        sockets = self._socket_folder()
        # No server runs, and a crash of the machine may have emptied its files.
        (sockets / f"{_SOCKET}.lock").unlink(missing_ok=True)
        if pid == 0:
            (self._data / "postmaster.pid").unlink(missing_ok=True)
        quoted = str(sockets).replace('"', '""')
        settings = (
            "listen_addresses=",
            "port=5432",
            f'unix_socket_directories="{quoted}"',
            "unix_socket_permissions=0700",
            *_settings(),
        )
        arguments = [argument for setting in settings for argument in ("-c", setting)]
        environment = self._environment()
        # The lock was free, so the process of a pid file is another one or ends. PostgreSQL then
        # ignores the file, but still looks for processes that use the data's shared memory.
        environment["env"]["PG_GRANDPARENT_PID"] = str(pid)
        command = [str(self._programs / "postgres"), "-D", str(self._data), *arguments]
        return sockets, self._detach(command, lock, **environment)

    def _ended(self, sockets: Path, beginning: int) -> NoServerError:
        if sockets != self._data:
            shutil.rmtree(sockets, ignore_errors=True)
        with self._file("log").open("rb") as file:
            file.seek(beginning)
            log = file.read().decode(errors="backslashreplace")
        reason = _reasons(log) or "the server ended"
        return _failed(self._home, reason, f"see {self._file('log')}, or ")

    def _stop(self) -> None:
        """Stop the server if one runs. This process has the users' lock alone."""
        mode = "fast"
        latest = time.monotonic() + _PATIENCE
        with self._opened("server") as lock:
            while not _locked(lock) and time.monotonic() < latest:
                _, _, sockets, _ = self._pid_file()
                # Without a listener, the server is starting, or it was killed, its processes are
                # ending, and another process may have its pid.
                if _listens(sockets):
                    self._call("pg_ctl", "stop", f"--pgdata={self._data}", f"--mode={mode}")
                    # A server that hangs is stopped harder.
                    mode = "immediate"
                    if sockets != self._data:
                        with contextlib.suppress(OSError):
                            sockets.rmdir()
                time.sleep(0.02)

    def _initialise(self) -> None:
        if user_name(os.geteuid()) == f"user {os.geteuid()}":
            raise refusal(
                f"user {os.geteuid()} has no name, and PostgreSQL needs one to create its data; "
                "add it to /etc/passwd, or name a server with PGSIMHASH_DSN"
            )
        prefix = ".postgres-initdb-"
        for left_over in self._home.glob(f"{prefix}*"):
            shutil.rmtree(left_over, ignore_errors=True)
        # Renamed at the end, so the folder is complete even if this process is killed.
        fresh = self._new_folder(prefix, self._home)
        options = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C")
        try:
            done = self._call("initdb", f"--pgdata={fresh}", *options)
            if done.returncode != 0:
                reason = _reasons(done.stderr) or f"initdb ended with {done.returncode}"
                raise _failed(self._home, reason)
            fresh.rename(self._data)
            logger.warning(
                "created an embedded server in %s; name another with PGSIMHASH_DSN", self._home
            )
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _socket_folder(self) -> Path:
        """Return the data folder, or a temporary folder if its path is invalid for a socket."""
        if _suits_a_socket(self._data):
            return self._data
        folder = self._new_folder("pgsimhash-")
        if not _suits_a_socket(folder):
            folder.rmdir()
            raise refusal(f"{folder} is too long for a socket; set TMPDIR to a shorter folder")
        return folder

    def _new_folder(self, prefix: str, parent: Path | None = None) -> Path:
        """Create a temporary folder that belongs to the account of the server."""
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        if self._account is not None:
            os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        return folder

    def _call(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(  # noqa: S603
                [str(self._programs / program), *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="backslashreplace",
                check=False,
                **self._environment(),
            )
        except OSError as error:
            programs = f"everybody must be able to run the programs in {self._programs}"
            raise refusal(f"{error}; {programs}") from error

    def _detach(self, command: list[str], *locks: FileIO, **options: Any) -> int:
        """Start a program that outlives this process with locks; return where its log begins."""
        with self._opened("log", os.O_APPEND) as log:
            beginning = os.fstat(log.fileno()).st_size
            # The shell ends at once, so the program is no child of this process.
            subprocess.run(  # noqa: S603
                ["/bin/sh", "-c", '"$@" &', "sh", *command],
                stdout=log,
                stderr=log,
                pass_fds=[lock.fileno() for lock in locks],
                start_new_session=True,
                check=True,
                **options,
            )
        return beginning

    def _environment(self) -> dict[str, Any]:
        # Keeps the user's locale and client settings away from the server.
        unwanted = "PG", "LC_", "LANG"
        kept = {name: os.environ[name] for name in os.environ if not name.startswith(unwanted)}
        environment: dict[str, Any] = {"env": kept | {"LC_ALL": "C"}, "cwd": "/", "umask": 0o077}
        if self._account is not None:
            user, group = self._account.pw_uid, self._account.pw_gid
            environment |= {"user": user, "group": group, "extra_groups": []}
        return environment


_guard = threading.Lock()
_servers: dict[Path, _Server] = {}


def _forget() -> None:
    """Drop the parent's servers after a fork, without leaving them."""
    global _guard
    _guard = threading.Lock()
    _servers.clear()


def _leave_all() -> None:
    # After Ctrl-C the watcher stops the servers.
    with contextlib.suppress(KeyboardInterrupt):
        for server in _servers.values():
            server.leave()


def _reasons(messages: str) -> str:
    """Return what programs of PostgreSQL say about a failure."""
    found = re.findall(r"(?:error|FATAL|PANIC|DETAIL|HINT): +(.+)", messages)
    return "; ".join(found or messages.strip().splitlines()[-1:])


def _suits_a_socket(folder: Path) -> bool:
    # Linux and macOS limit the path's length. Not Unicode: psycopg cannot send it. libpq reads a
    # comma as the separator of hosts.
    with contextlib.suppress(UnicodeEncodeError):
        return len(str(folder / _SOCKET).encode()) <= 103 and "," not in str(folder)
    return False


def _listens(sockets: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return _suits_a_socket(sockets) and client.connect_ex(str(sockets / _SOCKET)) == 0


def _settings() -> list[str]:
    """Return the server's settings; PostgreSQL's defaults are for small machines."""
    megabytes = memory_bytes() >> 20
    return [
        f"shared_buffers={max(megabytes // 8, 128)}MB",
        f"effective_cache_size={max(megabytes // 2, 512)}MB",
        f"maintenance_work_mem={min(max(megabytes // 32, 64), 1024)}MB",
        # After each checkpoint every changed page is logged as a whole.
        "max_wal_size=4GB",
        "checkpoint_timeout=15min",
        # Lookups of new rows are slower until they are vacuumed.
        "autovacuum_naptime=15s",
    ]


def _locked(file: FileIO) -> bool:
    """Try to lock this file exclusively without waiting; return whether it succeeded."""
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _failed(home: Path | None, reason: object, advice: str = "") -> NoServerError:
    where = f" in {home}" if home else ""
    return refusal(
        f"the embedded PostgreSQL did not start{where}: {reason}; "
        f"{advice}set {DATA_DIR_VARIABLE} to another folder"
    )


if __name__ == "__main__":
    _, folder, binaries, users, held = sys.argv
    _Server(Path(folder), Path(binaries), int(users)).watch(int(held))
else:
    os.register_at_fork(after_in_child=_forget)
    atexit.register(_leave_all)
