"""Choose the embedded server's data folder, account and memory settings."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import platformdirs

from pgsimhash.errors import NoServerError
from pgsimhash.runtime.machine import memory_bytes

DATA_DIR_VARIABLE: Final = "PGSIMHASH_DATA_DIR"

# Started by root, the server runs as a separate user, who gets access to the folders above the
# data. Root's home must not become accessible.
_ROOT_DATA_DIR: Final = Path("/var/lib/pgsimhash")
_ROOTS_ACCOUNT: Final = "pgsimhash"


def _is_root() -> bool:
    return os.geteuid() == 0


def data_directory() -> Path:
    """Return where the embedded server keeps its data."""
    configured = os.environ.get(DATA_DIR_VARIABLE)
    if configured:
        return Path(configured)
    if _is_root():
        return _ROOT_DATA_DIR
    return platformdirs.user_data_path("pgsimhash")


def user_name(uid: int) -> str:
    """Return the name of a user."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def check_place(home: Path) -> None:
    """Raise if data in ``home`` could harm another user, or another user could harm it.

    Raises:
        NoServerError: the folder belongs to another user, is in root's home, or is writable by
            everybody; or root would create it in another user's folder.
    """
    if any(character < " " for character in str(home)):
        raise NoServerError(
            "embedded_folder",
            f"{str(home)!r} has control characters; set {DATA_DIR_VARIABLE} to another folder",
        )
    if _is_root() and home.is_relative_to(Path("~root").expanduser()):
        raise NoServerError(
            "embedded_folder",
            f"as root, {home} would make root's home accessible to the server's user; "
            f"set {DATA_DIR_VARIABLE} to a folder outside it, such as {_ROOT_DATA_DIR}",
        )
    there = next(path for path in (home, *home.parents) if path.exists())
    status = there.stat()
    # A folder created by root would be inaccessible to the user around it.
    if (there == home or _is_root()) and status.st_uid != os.geteuid():
        raise NoServerError(
            "embedded_folder",
            f"{there} belongs to {user_name(status.st_uid)}; become that user, or set "
            f"{DATA_DIR_VARIABLE} to a folder of your own",
        )
    if there == home and status.st_mode & stat.S_IWOTH:
        raise NoServerError(
            "embedded_open",
            f"everybody may write to {home}; set {DATA_DIR_VARIABLE} to a folder in it",
        )


@dataclass(frozen=True)
class Account:
    """The user that runs the server."""

    uid: int
    name: str | None
    """None for the user of this process."""


def server_account() -> Account:
    """Return the user that runs the server: this user, or for root a user created for it.

    Raises:
        NoServerError: the user does not exist and cannot be created.
    """
    if not _is_root():
        return Account(os.geteuid(), None)
    try:
        entry = pwd.getpwnam(_ROOTS_ACCOUNT)
    except KeyError:
        shell = "/usr/sbin/nologin"
        # Fails if another process was faster, which is fine.
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
                f"root's server runs as the user {_ROOTS_ACCOUNT}, which cannot be created; "
                "add it, or do not run as root",
            ) from None
    return Account(entry.pw_uid, entry.pw_name)


def let_pass(account: Account, folder: Path) -> None:
    """Make ``folder`` accessible to root's server: allow passing through all folders above it."""
    if account.name is None:
        return
    for above in folder.parents:
        status = above.stat()
        if status.st_mode & stat.S_IXOTH:
            continue
        if status.st_uid != os.geteuid():
            raise NoServerError(
                "embedded_folder",
                f"root's server runs as the user {account.name}, who cannot access {above} of "
                f"{user_name(status.st_uid)}; set {DATA_DIR_VARIABLE} to another folder",
            )
        above.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)


def settings() -> list[str]:
    """Return the server's settings for this machine.

    PostgreSQL's defaults are for small machines. A million simhashes with their indexes need more
    than 128 MB of buffers, and after each checkpoint every changed page is logged as a whole.
    """
    memory = memory_bytes()
    megabytes = {
        "shared_buffers": max(memory // 8, 128 << 20) >> 20,
        "effective_cache_size": max(memory // 2, 512 << 20) >> 20,
        "maintenance_work_mem": min(max(memory // 32, 64 << 20), 1 << 30) >> 20,
        "max_wal_size": 4096,
    }
    sizes = [f"{name}={size}MB" for name, size in megabytes.items()]
    # Lookups of new rows are slower until they are vacuumed.
    return [*sizes, "checkpoint_timeout=15min", "autovacuum_naptime=15s"]
