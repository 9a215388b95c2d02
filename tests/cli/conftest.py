"""The command line, run in this process over a fresh database, or on a terminal."""

import atexit
import json
import os
import pty
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

import click
import pytest
from click.testing import CliRunner

from pgsimhash.cli.commands import commands
from tests.forks import forking


@dataclass(frozen=True)
class Result:
    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Return stdout as JSON lines; fail for any other line."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    def ends(self, code: int, *said: str) -> None:
        """Check the exit code, and that stderr contains these texts."""
        assert self.code == code, self.stderr
        for text in said:
            assert text in " ".join(self.stderr.split())


Run = Callable[..., Result]


def names_of(group: click.Group, before: str = "") -> Iterator[str]:
    """The commands of a group and its subgroups, as they are typed."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from names_of(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def on_a_terminal(*arguments: str | Path, whole: bool = False, **variables: str) -> Result:
    """Run ``pgsimhash`` with stderr on a terminal of 100 columns and stdout in a pipe.

    If ``whole``, stdout is on the terminal too, which has 80 columns. What the terminal shows is
    returned as ``stderr``.
    """
    controller, terminal = pty.openpty()
    shown = bytearray()

    def read() -> None:
        with suppress(OSError):  # the terminal is closed
            while piece := os.read(controller, 4096):
                shown.extend(piece)

    reader = Thread(target=read)
    reader.start()
    variables = {"TERM": "xterm", "COLUMNS": "80" if whole else "100", **variables}
    terminals = [os.ttyname(terminal)] * (1 + whole)
    command = ("pgsimhash", *arguments)
    try:
        done = _program()(*command, terminals=terminals, folder=Path.cwd(), **variables)
    finally:
        os.close(terminal)
        reader.join()
        os.close(controller)
    return Result(done.returncode, done.stdout or "", shown.decode())


@cache
def _program() -> Callable[..., subprocess.CompletedProcess[str]]:
    """What runs ``pgsimhash`` in forks, until this process ends."""
    open_forks = ExitStack()
    atexit.register(open_forks.close)
    return open_forks.enter_context(
        forking("pgsimhash.cli.commands", "pgsimhash.store.store", "psycopg", "rich.progress")
    )


@pytest.fixture
def run(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``pgsimhash`` with arguments, over the test's database."""
    monkeypatch.setenv("PGSIMHASH_DSN", dsn)

    def run_command(*arguments: str | Path, stdin: str | bytes = b"") -> Result:
        done = CliRunner().invoke(commands, [str(argument) for argument in arguments], input=stdin)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Result(done.exit_code, done.stdout, done.stderr)

    return run_command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four pages: an article, its copy under another template, another article, a short one."""
    wells = "".join(
        f"<p>Well number {n} was dug in the {n * 7}th year by hand, and its water, which tastes of "
        f"iron and of {material}, still reaches the third ring of stones after the winter.</p>"
        for n, material in enumerate(["limestone", "clay", "basalt", "chalk", "slate"], start=1)
    )
    looms = "".join(
        f"<p>The {colour} loom stands by the window, because its weaver counts threads by "
        f"daylight, and a mistake in row {n} shows only when the cloth is off the frame.</p>"
        for n, colour in enumerate(["red", "green", "blue", "yellow", "white"], start=10)
    )
    pages = {
        "wells.html": f"<html><title>Wells</title><body><article>{wells}</article></body></html>",
        "wells-copy.html": "<html><title>Wells</title><body><nav><a href=/>Home</a></nav>"
        f"<main><div class=story>{wells}</div></main><footer>Printed today</footer></body></html>",
        "looms.html": f"<html><title>Looms</title><body><article>{looms}</article></body></html>",
        "short.html": "<html><title>Gone</title><body><p>Not found.</p></body></html>",
    }
    for name, html in pages.items():
        (tmp_path / name).write_text(html, encoding="utf-8")
    return tmp_path
