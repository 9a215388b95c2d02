"""All that commands print goes through here, so that nothing in a page's name steers a terminal.

What is for people goes to stderr and data to stdout, and in neither is a control character but the
line ends of this program. URLs, titles, the names of files and collections and the messages that
quote them may hold anything.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import click

from pgsimhash.log import logger

if TYPE_CHECKING:
    from rich.console import Console

# C0, delete and C1; lone surrogates; what ends lines or turns their direction elsewhere.
_UNPRINTABLE: Final = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)


def printable(text: str) -> str:
    r"""Return ``text`` as one line with ``\x1b`` or ``\u202e`` where such a character stands."""
    return _UNPRINTABLE.sub(_escape, text)


def printable_lines(text: str) -> str:
    """Return ``text`` with what :func:`printable` makes of each line."""
    return "\n".join(map(printable, text.split("\n")))


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON line to stdout, in UTF-8 whatever the locale."""
    line = json.dumps(value, ensure_ascii=False)
    # JSON escapes C0 only; the others too stand within its strings alone.
    _print_data(_UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", line))


def print_text(text: str) -> None:
    """Print text of several lines to stdout, in UTF-8; its tabs become what they stand for."""
    _print_data(printable_lines(text.expandtabs(4)))


def tell(message: str) -> None:
    """Print a line for people to stderr."""
    click.echo(printable(message), err=True)


def people() -> Console:
    """Return where to write for people: stderr, silent in colour and motion when piped."""
    # Rich takes a while to import, and --help needs none of it.
    from pgsimhash.cli.console import PrintableConsole

    # Names may look like markup too, and a link in it is an escape sequence.
    return PrintableConsole(stderr=True, highlight=False, markup=False, emoji=False)


@contextmanager
def printable_complaints() -> Iterator[None]:
    """Let no complaint about the command line leave the block that quotes control characters."""
    try:
        yield
    except click.MissingParameter as error:
        # Lists choices, over several lines.
        told = " ".join(error.format_message().split())
        raise click.UsageError(printable(told), error.ctx) from error
    except click.ClickException as error:
        error.message = printable(error.message)  # type: ignore[misc]
        raise


def guard_other_output() -> None:
    """See to what libraries log, and to errors that nobody caught."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_LogLines())
        # Ours has a handler already, which keeps it quiet where it is used as a library.
        logger.addHandler(logging.lastResort)
    sys.excepthook = _tell_error


class _LogLines(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return printable_lines(super().formatException(ei))


def _tell_error(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    told = "".join(traceback.format_exception(kind, error, trace))
    click.echo(printable_lines(told), err=True, nl=False)


def _print_data(text: str) -> None:
    click.echo(text.encode())


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
