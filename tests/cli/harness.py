"""Helpers for the tests of the command line."""

import json
import os
import pty
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tests.programs import PGSIMHASH


@dataclass(frozen=True)
class Result:
    """The result of a command."""

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


def on_a_terminal(*arguments: str | Path) -> Result:
    """Run ``pgsimhash`` with stderr on a terminal and stdout in a pipe."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*PGSIMHASH, *arguments],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(terminal)
    shown = b""
    with suppress(OSError):  # the terminal is gone with the process
        while piece := os.read(controller, 4096):
            shown += piece
    os.close(controller)
    stdout, _ = process.communicate()
    return Result(process.returncode, stdout.decode(), shown.decode())
