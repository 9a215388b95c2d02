"""What ``--help`` says of each command, before the command is loaded."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from pgsimhash.cli.commands import commands
from pgsimhash.cli.lazy import Entry, LazyGroup


def entries(group: LazyGroup) -> Iterator[tuple[str, Entry, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield name, group.entry(name), command
        if isinstance(command, LazyGroup):
            yield from entries(command)


@pytest.mark.parametrize(("name", "entry", "command"), list(entries(commands)))
def test_the_list_says_what_the_command_says(
    name: str, entry: Entry, command: click.Command
) -> None:
    assert command.name == name
    assert " ".join(str(command.help).split()).startswith(entry.help)


@pytest.mark.parametrize("name", ["rebuild", "explain", "report"])
def test_a_command_of_a_group_is_not_at_the_top(name: str) -> None:
    assert commands.get_command(click.Context(commands), name) is None
