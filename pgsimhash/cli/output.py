"""Write the output files of commands."""

from __future__ import annotations

from pathlib import Path

import click

from pgsimhash.cli.options import Command
from pgsimhash.runtime.files import replacing


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
    try:
        with replacing(path) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise click.FileError(str(path), error.strerror) from error
