"""A group of commands that imports none of them before it is run."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click


class Entry(NamedTuple):
    """Where a command is, as ``module:function`` in this package, and what it does."""

    where: str
    help: str


class LazyGroup(click.Group):
    """Commands under headings, listed by what is said of them here and loaded when they are run."""

    def __init__(self, *arguments: Any, sections: Mapping[str, Mapping[str, Entry]], **more: Any):
        super().__init__(*arguments, **more)
        self._sections = sections
        self._entries = {
            name: entry for table in sections.values() for name, entry in table.items()
        }

    def entry(self, name: str) -> Entry:
        """Return where a command is, and what is said of it."""
        return self._entries[name]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the headings."""
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name, None where there is none."""
        entry = self._entries.get(cmd_name)
        if entry is None:
            return None
        module, function = entry.where.split(":")
        found: click.Command = getattr(import_module(f"pgsimhash.cli.{module}"), function)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does."""
        width = max(map(len, self._entries))
        for title, table in self._sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), entry.help) for name, entry in table.items()]
                )
