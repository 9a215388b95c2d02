"""The summary in ``--help`` of each command, before the command is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pgsimhash.cli.commands import Entry, LazyGroup, commands


def test_texts_name_the_defaults_of_all_schemes_and_what_is_optional() -> None:
    texts = {
        name: " ".join(CliRunner().invoke(commands, [*name.split(), "--help"]).stdout.split())
        for name in ("collection create", "migrate")
    }
    assert "the scheme's (8; short 6; blog, interop 3)" in texts["collection create"]
    assert "--roles [PREFIX]" in texts["migrate"]


def entries(group: LazyGroup) -> Iterator[tuple[str, Entry, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield name, group.entry(name), command
        if isinstance(command, LazyGroup):
            yield from entries(command)


@pytest.mark.parametrize(("name", "entry", "command"), list(entries(commands)))
def test_the_list_has_the_summary_of_each_command(
    name: str, entry: Entry, command: click.Command
) -> None:
    assert command.name == name
    assert " ".join(str(command.help).split()).startswith(entry.help)


@pytest.mark.parametrize("name", ["rebuild", "explain", "report"])
def test_a_command_of_a_group_is_not_at_the_top(name: str) -> None:
    assert commands.get_command(click.Context(commands), name) is None


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_can_complete_commands(shell: str) -> None:
    environment = {**os.environ, "_PGSIMHASH_COMPLETE": f"{shell}_source"}
    pgsimhash = Path(sys.executable).with_name("pgsimhash")
    script = subprocess.run(
        [pgsimhash], env=environment, capture_output=True, text=True, check=True
    )
    assert "_PGSIMHASH_COMPLETE" in script.stdout
    asked = {
        "COMP_WORDS": "pgsimhash col",
        "COMP_CWORD": "1",
        "_PGSIMHASH_COMPLETE": "bash_complete",
    }
    done = subprocess.run(
        [pgsimhash], env={**os.environ, **asked}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["plain,collection"]
