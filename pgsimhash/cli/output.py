"""Files that commands write, and how they end."""

from __future__ import annotations

from pathlib import Path

import click

from pgsimhash.cli.options import Command


def check_folder(_: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Complain before the work, and not after it, where a file could not be written."""
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent}; create it", param=option)
    return path


def output_option(command: Command) -> Command:
    """Add ``--output``."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, writable=True, path_type=Path),
        callback=check_folder,
        help="Write an HTML page with charts here.",
    )(command)


def write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8, whatever the locale.

    Raises:
        click.FileError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        raise click.FileError(str(path), error.strerror) from error
