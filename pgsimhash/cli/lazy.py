"""A group of commands that imports them only when they run."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click


class Entry(NamedTuple):
    """The location of a command as ``module:function`` in this package, and its summary."""

    where: str
    help: str


class LazyGroup(click.Group):
    """Commands under headings, listed by their summaries and imported when they run."""

    def __init__(self, *arguments: Any, sections: Mapping[str, Mapping[str, Entry]], **more: Any):
        super().__init__(*arguments, **more)
        self._sections = sections
        self._entries = {
            name: entry for table in sections.values() for name, entry in table.items()
        }

    def entry(self, name: str) -> Entry:
        """Return the entry of a command."""
        return self._entries[name]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the headings."""
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name, or None."""
        entry = self._entries.get(cmd_name)
        if entry is None:
            return None
        module, function = entry.where.split(":")
        command: click.Command = getattr(import_module(f"pgsimhash.cli.{module}"), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the summary of each command."""
        width = max(map(len, self._entries))
        for title, table in self._sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), entry.help) for name, entry in table.items()]
                )
