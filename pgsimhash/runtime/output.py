"""Write a file without losing the previous one."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from pgsimhash.errors import invalid_argument


@contextmanager
def replacing(path: Path, *, is_new: bool = False) -> Iterator[BinaryIO]:
    """Lend a new file that replaces ``path``, with its mode, once it is complete and on disk.

    After an exception, a kill or on a full disk, ``path`` is what it was. If it ``is_new``, a file
    with content is a FileExistsError; if that came meanwhile, the new file has another name.
    """
    if is_new and _has_content(path):
        raise FileExistsError("the file exists; name another one, or move it away")
    if not _is_replaceable(path):
        with path.open("wb") as file:
            yield file
        return
    target = path.resolve()
    new = target.with_name(f".pgsimhash-{secrets.token_hex(8)}")
    try:
        # Unlike a file of tempfile, it has the default mode.
        with new.open("xb") as file:
            if target.exists():
                new.chmod(target.stat().st_mode)
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                # On a full disk, to write what is in the buffer would fail again.
                file.raw.close()
                raise
        if is_new and _has_content(target):
            own = target.with_stem(f"{target.stem}{new.name}")
            new.replace(own)
            raise FileExistsError(f"another program wrote it meanwhile; this one wrote {own}")
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def check_output(output: Path | int | None, *inputs: Any) -> None:
    """Refuse an output that is one of the inputs: writing it would destroy what is read."""
    if str(output) == "-":
        raise invalid_argument("- only stands for stdin; write to a file")
    for each in inputs:
        if output is not None and _is_same_file(output, each):
            raise invalid_argument(f"{each} is both read and written; write to another file")


def _is_same_file(output: Path | int, file: Any) -> bool:
    """Return whether an output, a path or descriptor, is the file, by any name; ``-`` is stdin."""
    try:
        known, written = map(os.stat, (0 if file == "-" else file, output))
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(known.st_mode) and os.path.samestat(known, written)


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _is_replaceable(path: Path) -> bool:
    # A pipe or a device cannot be replaced: others have it open, such as /dev/stdout.
    place = path.absolute()
    in_memory = place.is_relative_to("/dev/shm")  # noqa: S108
    if not in_memory and (place.is_relative_to("/dev") or place.is_relative_to("/proc")):
        return False
    return os.access(path.resolve().parent, os.W_OK) and (path.is_file() or not path.exists())
