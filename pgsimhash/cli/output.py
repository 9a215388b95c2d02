"""Write the output files of commands."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import click

from pgsimhash.cli.options import Command


def check_folder(_: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Fail before the work if the folder of the file does not exist."""
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(
            f"the folder {path.parent} does not exist; create it", param=option
        )
    return path


def output_option(command: Command) -> Command:
    """Add ``--output``."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, writable=True, path_type=Path),
        callback=check_folder,
        help="Write an HTML page with charts to this file.",
    )(command)


def write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8, independent of the locale; it replaces an existing file atomically.

    Raises:
        click.FileError: the file cannot be written.
    """
    data = text.encode("utf-8", "backslashreplace")
    try:
        if not _is_replaceable(path):
            path.write_bytes(data)
            return
        with _beside(path.resolve()) as file:
            file.write(data)
    except OSError as error:
        raise click.FileError(str(path), error.strerror) from error


def _is_replaceable(path: Path) -> bool:
    # A pipe or a device cannot be replaced: others have it open, such as /dev/stdout.
    if path.absolute().is_relative_to("/dev") or path.absolute().is_relative_to("/proc"):
        return False
    return os.access(path.resolve().parent, os.W_OK) and (path.is_file() or not path.exists())


@contextmanager
def _beside(path: Path) -> Iterator[BinaryIO]:
    """Lend a new file that replaces ``path``, with its mode, at the end of the block."""
    new = path.with_name(f".pgsimhash-{secrets.token_hex(8)}")
    try:
        # Unlike a file of tempfile, it has the default mode.
        with new.open("xb") as file:
            if path.exists():
                new.chmod(path.stat().st_mode)
            yield file
        new.replace(path)
    finally:
        with suppress(FileNotFoundError):
            new.unlink()
