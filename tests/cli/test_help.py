"""The summary in ``--help`` of each command, before the command is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pgsimhash.cli.commands import Entry, LazyGroup, commands


def entries(group: LazyGroup) -> Iterator[tuple[str, Entry, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield name, group.entries[name], command
        if isinstance(command, LazyGroup):
            yield from entries(command)


@pytest.mark.parametrize(("name", "entry", "command"), list(entries(commands)))
def test_the_list_has_the_summary_of_each_command(
    name: str, entry: Entry, command: click.Command
) -> None:
    assert command.name == name
    assert " ".join(str(command.help).split()).startswith(entry.help)


def test_the_shell_can_complete_commands() -> None:
    words = {"COMP_WORDS": "pgsimhash col", "COMP_CWORD": "1"}
    done = subprocess.run(
        [Path(sys.executable).with_name("pgsimhash")],
        env={**os.environ, **words, "_PGSIMHASH_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["plain,collection"]
