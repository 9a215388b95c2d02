"""Print the output of commands with escaped control characters.

URLs, titles and messages can contain sequences that control a terminal. Data goes to stdout,
everything else to stderr. Neither contains a control character, except line ends.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import click

from pgsimhash.log import logger
from pgsimhash.runtime.output import replacing

# C0, delete and C1; lone surrogates; line separators and marks that change the direction.
_UNPRINTABLE: Final = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)


def printable(text: str) -> str:
    r"""Return ``text`` as one line, with control characters as ``\x1b`` or ``\u202e``."""
    return _UNPRINTABLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def printable_lines(text: str) -> str:
    """Return ``text`` with :func:`printable` applied to each line."""
    return "\n".join(map(printable, text.split("\n")))


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON line to stdout, in UTF-8 independent of the locale."""
    line = json.dumps(value, ensure_ascii=False)
    # JSON only escapes C0. The other characters occur only within strings too.
    click.echo(_UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", line).encode())


def print_rows(rows: Iterable[dict[str, Any]], columns: Sequence[str] = ()) -> None:
    """Print JSON lines to stdout, or with ``columns`` a CSV table with a header."""
    if not columns:
        for row in rows:
            print_json(row)
        return
    from pgsimhash.analysis.pairs import as_cell

    def cell(name: str, value: object) -> str:
        if value is None:
            return ""
        return printable(as_cell(str(value)) if name.endswith("title") else str(value))

    for row in chain([dict(zip(columns, columns, strict=True))], rows):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(cell(name, row[name]) for name in columns)
        click.echo(line.getvalue().encode())


def print_text(text: str) -> None:
    """Print text of several lines to stdout, in UTF-8; tabs become spaces."""
    click.echo(printable_lines(text.expandtabs(4)).encode())


def print_message(message: str) -> None:
    """Print a message to stderr."""
    click.echo(printable(message), err=True)


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


def escape_other_output() -> None:
    """Escape the output of libraries' loggers and of uncaught exceptions."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_LogLines())
        # pgsimhash's logger has a handler already, which silences it for users of the library.
        logger.addHandler(logging.lastResort)
    sys.excepthook = _print_exception


class _LogLines(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return printable_lines(super().formatException(ei))


def _print_exception(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    text = "".join(traceback.format_exception(kind, error, trace))
    click.echo(printable_lines(text), err=True, nl=False)
