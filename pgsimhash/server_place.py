"""Where the embedded server's data may be, as whom it runs, and with how much memory."""

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
from pgsimhash.machine import memory_bytes

DATA_DIR_VARIABLE: Final = "PGSIMHASH_DATA_DIR"

# The server never runs as root: started by root it becomes a user of its own, who may pass through
# the folders above the data. That must not happen to root's home.
_ROOT_DATA_DIR: Final = Path("/var/lib/pgsimhash")
_ROOTS_ACCOUNT: Final = "pgsimhash"


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


def user_name(uid: int) -> str:
    """Return what a user is called."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def check_place(home: Path) -> None:
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
    """Who the server runs as."""

    uid: int
    name: str | None
    """None for the user of this process."""


def server_account() -> Account:
    """Return who the server runs as: this user, and for root one that is made for it.

    Raises:
        NoServerError: there is no such user, and none can be made.
    """
    if not _is_root():
        return Account(os.geteuid(), None)
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
    return Account(entry.pw_uid, entry.pw_name)


def let_pass(account: Account, folder: Path) -> None:
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
                f"{user_name(status.st_uid)} is closed; set {DATA_DIR_VARIABLE} to another folder",
            )
        above.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)


def settings() -> list[str]:
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
