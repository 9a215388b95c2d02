"""Print the output of commands with escaped control characters.

URLs, titles and messages can contain sequences that control a terminal. Data goes to stdout,
everything else to stderr. Neither contains a control character, except line ends. Tables and
progress bars are Rich's, which is only imported to draw them, because that is slow.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from pgsimhash.log import logger
from pgsimhash.runtime import no_progress
from pgsimhash.runtime.output import replacing

if TYPE_CHECKING:
    from rich.console import Console

# C0, delete and C1; lone surrogates; line separators and marks that change the direction.
_UNPRINTABLE: Final = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)

JSON: Final = "json"
"""The key of ``--json`` in the context's ``meta``."""

_TITLE: Final = 300  # characters of a title or text in a CSV table
# With tabs and line ends, which are escaped, these are the characters that OWASP lists.
_FORMULAS: Final = tuple("=+-@＝＋－＠")  # noqa: RUF001


def printable(text: str) -> str:
    r"""Return ``text`` as one line, with control characters as ``\x1b`` or ``\u202e``."""
    return _UNPRINTABLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def printable_lines(text: str) -> str:
    """Return ``text`` with :func:`printable` applied to each line."""
    return "\n".join(map(printable, text.split("\n")))


def json_line(value: dict[str, Any]) -> None:
    """Print one JSON line to stdout, in UTF-8 independent of the locale."""
    line = json.dumps(value, ensure_ascii=False)
    # JSON only escapes C0. The other characters occur only within strings too.
    click.echo(_UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", line).encode())


def rows(records: Iterable[dict[str, Any]], columns: Sequence[str] = ()) -> None:
    """Print JSON lines to stdout, or with ``columns`` a CSV table with a header."""
    if not columns:
        for record in records:
            json_line(record)
        return

    def cell(name: str, value: object) -> str:
        if value is None:
            return ""
        text = " | ".join(value) if isinstance(value, list) else str(value)
        is_text = isinstance(value, list) or name.endswith("title")
        shown = " ".join(text.split())[:_TITLE] if is_text else text
        # An apostrophe where a spreadsheet would see a formula.
        return printable(f"'{shown}" if shown.startswith(_FORMULAS) else shown)

    for row in chain([dict(zip(columns, columns, strict=True))], records):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(cell(name, row[name]) for name in columns)
        click.echo(line.getvalue().encode())


def text(lines: str) -> None:
    """Print text of several lines to stdout, in UTF-8; tabs become spaces."""
    click.echo(printable_lines(lines.expandtabs(4)).encode())


def message(line: str) -> None:
    """Print a message to stderr."""
    click.echo(printable(line), err=True)


def for_people() -> bool:
    """Return whether stdout is a terminal and ``--json`` was not given: then people read it."""
    context = click.get_current_context(silent=True)
    asked = context is not None and context.meta.get(JSON)
    return sys.stdout is not None and sys.stdout.isatty() and not asked


def console(*, stdout: bool = False) -> Console:
    """Return the console on stderr, or on stdout, without colours and motion if it is piped."""
    from rich.console import Console
    from rich.segment import Segment

    class PrintableConsole(Console):
        """A console that removes control characters, except Rich's own."""

        def render_str(self, text: str, **options: Any) -> Any:
            return super().render_str(printable(text), **options)

        def render(self, *arguments: Any, **options: Any) -> Iterable[Segment]:
            # A Text created elsewhere was measured already; escaping keeps it harmless.
            for segment in super().render(*arguments, **options):
                text = segment.text if segment.control else printable_lines(segment.text)
                yield Segment(text, segment.style, segment.control)

    # Names may look like markup, in which a link is an escape sequence.
    return PrintableConsole(stderr=not stdout, highlight=False, markup=False, emoji=False)


@contextmanager
def progress_bar(
    name: str, unit: Literal["pages", "bytes", "%"] = "pages", *, prints: bool = False
) -> Iterator[Callable[[int, int | None], None]]:
    """Yield a function that receives the number of finished items and the total, for a bar.

    ``prints`` says whether the command prints data meanwhile for people too: if the terminal shows
    the data, its lines are the progress.
    """
    terminal = console()
    if not terminal.is_terminal or (sys.stdout.isatty() and (prints or not for_people())):
        yield no_progress
        return
    from rich import progress as bars

    counted = {
        "pages": (bars.MofNCompleteColumn(), "pages"),
        "bytes": (bars.DownloadColumn(),),
        "%": (bars.TaskProgressColumn(),),
    }
    columns = (name, bars.BarColumn(), *counted[unit], bars.TimeRemainingColumn())
    # stdout is data, so Rich must not redirect it above the bar.
    with bars.Progress(
        *columns,
        console=terminal,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as progress:
        task = progress.add_task(name, total=None)

        def update(done: int, total: int | None) -> None:
            progress.update(task, completed=done, total=total)
            # Before the answer is printed; bytes are read ahead of the pages.
            if done == total and unit != "bytes":
                progress.stop()

        yield update


def write_page(path: Path | None, render: Callable[..., str], *values: Any) -> None:
    """Write a page in UTF-8 if there is a path; it replaces an existing file atomically."""
    if path is not None:
        with replacing(path) as file:
            file.write(render(*values).encode("utf-8", "backslashreplace"))


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


def _print_exception(*raised: Any) -> None:
    click.echo(printable_lines("".join(traceback.format_exception(*raised))), err=True, nl=False)
