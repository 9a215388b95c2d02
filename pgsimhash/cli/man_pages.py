"""Write a man page for each command: ``python -m pgsimhash.cli.man_pages FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pgsimhash.cli.commands import LazyGroup, commands
from pgsimhash.errors import MissingPackageError
from pgsimhash.runtime.version import __version__


def write_man_pages(folder: Path) -> None:
    """Write the man pages of all commands into a folder, which is created.

    Raises:
        MissingPackageError: click-man is not installed.
    """
    try:
        from click_man import core
    except ImportError as error:
        raise MissingPackageError(
            "not_installed", "man pages need click-man; install it: pip install click-man"
        ) from error
    folder.mkdir(parents=True, exist_ok=True)
    _load(commands)
    core.write_man_pages(commands.name, commands, version=__version__, target_dir=str(folder))


def _load(group: LazyGroup) -> None:
    """Import all commands of a group."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, "the group lists it"
        command.short_help = group.entry(name).help
        group.add_command(command, name)
        if isinstance(command, LazyGroup):
            _load(command)


if __name__ == "__main__":
    write_man_pages(Path(sys.argv[1]))
