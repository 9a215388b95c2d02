"""What the tests of the command line share."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

COMMAND = [sys.executable, "-m", "pgsimhash"]
"""What runs the command line in a process of its own."""


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """stdout as JSON lines; a line that is none fails the test."""
        return [json.loads(line) for line in self.stdout.splitlines()]


Run = Callable[..., Result]


def names_of(group: click.Group, before: str = "") -> Iterator[str]:
    """The commands of a group and of those in it, each as it is typed."""
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
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(terminal)
    shown = b""
    while True:
        try:
            piece = os.read(controller, 4096)
        except OSError:  # the terminal is gone with the process
            break
        if not piece:
            break
        shown += piece
    os.close(controller)
    stdout, _ = process.communicate()
    return Result(process.returncode, stdout.decode(), shown.decode())


def without_ids(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines without the numbers that the database gave to their pages."""
    return [
        {name: value for name, value in line.items() if not name.endswith("page_id")}
        for line in lines
    ]
