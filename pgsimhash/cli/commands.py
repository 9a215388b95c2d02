"""All commands by name, imported when they run, and the handling of their errors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import click

import pgsimhash
from pgsimhash.cli import CLOSED, INTERRUPTED, STOPPED
from pgsimhash.cli.printing import guard_other_output, print_text, printable_complaints, tell
from pgsimhash.errors import (
    ArgumentError,
    CollectionError,
    NotFoundError,
    PageError,
    PgsimhashError,
)


class Entry(NamedTuple):
    """The location of a command as ``module:function`` in this package, and its summary."""

    where: str
    help: str


class LazyGroup(click.Group):
    """Commands under headings, listed by their summaries and imported when they run."""

    def __init__(self, *arguments: Any, sections: Mapping[str, Mapping[str, Entry]], **more: Any):
        super().__init__(*arguments, **more)
        self._sections = sections
        self.entries = {name: entry for table in sections.values() for name, entry in table.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the headings."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name, or None."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        module, function = entry.where.split(":")
        command: click.Command = getattr(import_module(f"pgsimhash.cli.{module}"), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the summary of each command."""
        width = max(map(len, self.entries))
        for title, table in self._sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), entry.help) for name, entry in table.items()]
                )


__all__ = ["commands"]


class _PageFailure(click.ClickException):
    exit_code = 1


class _StoreFailure(click.ClickException):
    exit_code = 3


class _Commands(LazyGroup):
    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        with printable_complaints(), _one_line_after_ctrl_c():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        with printable_complaints(), _one_line_after_ctrl_c(), _told_errors():
            return super().invoke(ctx)


@contextmanager
def _one_line_after_ctrl_c() -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, click.Abort):
        # Click turns Ctrl-C into this exception while it asks a question.
        tell(STOPPED)
        raise click.exceptions.Exit(INTERRUPTED) from None


@contextmanager
def _told_errors() -> Iterator[None]:
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except (PageError, NotFoundError) as error:
        raise _PageFailure(str(error)) from error
    except PgsimhashError as error:
        if isinstance(error, CollectionError) or (
            isinstance(error, ArgumentError) and error.reason != "unknown_scheme"
        ):
            raise click.UsageError(str(error)) from error
        raise _StoreFailure(str(error)) from error
    except BrokenPipeError as error:
        # At its end Python would complain about data that it could not write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise click.exceptions.Exit(CLOSED) from error
    except OSError as error:
        raise _StoreFailure(
            f"the operating system refuses: {error}; free space, or use another place"
        ) from error
    except Exception as error:
        # Imported here because --help needs no database.
        import psycopg

        if not isinstance(error, (psycopg.Error, UnicodeEncodeError)):
            raise
        # Without a traceback even for unexpected errors.
        raise _StoreFailure(
            f"the database refuses: {str(error).strip()}; check the arguments"
        ) from error


analyse = LazyGroup(
    "analyse",
    help="Explain matches, follow changes, report and measure.",
    sections={
        "Commands": {
            "explain": Entry("explain:explain_pages", "Explain why two pages match or do not"),
            "history": Entry("history:history", "Show how a page changed over time"),
            "report": Entry("report:report", "Show a collection at a glance"),
            "pairs": Entry("groups:pairs", "Find all pairs of near-duplicates in a collection"),
            "clusters": Entry("groups:clusters", "Group the near-duplicates of a collection"),
            "evaluate": Entry(
                "evaluate:evaluate", "Measure a scheme and a distance on your own pages"
            ),
        }
    },
)

collection = LazyGroup(
    "collection",
    help="""Create, change and delete collections.

    A collection is a set of pages that are compared with one another.
    """,
    sections={
        "Commands": {
            "list": Entry("collections:list_collections", "List the collections"),
            "create": Entry("collections:create", "Create a collection"),
            "set": Entry("collections:set_one", "Change the settings of a collection"),
            "rename": Entry("rebuild:rename", "Rename a collection"),
            "delete": Entry("collections:delete_one", "Delete a collection and everything in it"),
            "rebuild": Entry(
                "rebuild:rebuild",
                "Rebuild a collection with another scheme or settings, or copy it",
            ),
        }
    },
)

policy = LazyGroup(
    "policy",
    help="""Override settings for some hosts.

    PATTERN is a host with its subdomains, or * for all hosts, and optionally a path in which *
    matches anything: example.com/shop/*. For each setting, the most specific matching pattern that
    defines it wins: the longer host, then the longer path. Options of ingest and decide override
    policies.
    """,
    sections={
        "Commands": {
            "list": Entry("policies:list_policies", "List the policies"),
            "set": Entry("policies:set_policy", "Set the policy of a pattern"),
            "remove": Entry("policies:remove", "Remove the policy of a pattern"),
        }
    },
)

run = LazyGroup(
    "run",
    help="List the runs that added pages, and undo them.",
    sections={
        "Commands": {
            "list": Entry("delete:list_runs", "List the runs, the last one first"),
            "undo": Entry("delete:undo", "Delete what a run added, by default the last one"),
        }
    },
)

_SECTIONS = {
    "Pages": {
        "ingest": Entry("ingest:ingest", "Decide for each page whether it is known, and store it"),
        "decide": Entry("ingest:decide", "Show what ingest would decide about a page"),
        "should-fetch": Entry("history:should_fetch", "Show which pages to fetch"),
    },
    "Search": {
        "find": Entry("lookup:find", "Find known pages near a page or a simhash"),
        "find-many": Entry("lookup:find_many", "Find known simhashes near many simhashes"),
        "fingerprint": Entry("lookup:fingerprint", "Print the fingerprint of HTML files"),
    },
    "Upkeep": {
        "status": Entry("admin:status", "Show what every collection holds"),
        "delete": Entry("delete:delete", "Delete a page, or all pages of a host"),
        "expire": Entry("delete:expire", "Delete versions that were not seen for some time"),
        "check": Entry("admin:check", "Check the rows of collections and the owners of code"),
        "mark": Entry("admin:mark", "Mark two pages as the same or as different"),
        "migrate": Entry("admin:migrate", "Create or upgrade the schema pgsimhash"),
    },
    "Groups of commands": {
        "analyse": Entry("commands:analyse", "Explain matches, follow changes, report and measure"),
        "collection": Entry("commands:collection", "Create, change and delete collections"),
        "policy": Entry("commands:policy", "Override settings for some hosts"),
        "run": Entry("commands:run", "List the runs that added pages, and undo them"),
    },
}


def _show_version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        print_text(f"pgsimhash, version {pgsimhash.__version__}")
        context.exit()


@click.group(
    "pgsimhash",
    cls=_Commands,
    sections=_SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def commands() -> None:
    """Find near-duplicate web pages, exactly, with simhashes kept in PostgreSQL.

    Without --dsn, PGSIMHASH_DSN, DATABASE_URL and libpq's variables (PGHOST ...), the embedded
    PostgreSQL is used. Data goes to stdout as JSON lines, everything else to stderr.

    Exit codes: 0 done; 1 some pages failed, or nothing was found; 2 an invalid option, or an
    unknown file or collection; 3 the database cannot be used, or a disk is full; 130 stopped with
    Ctrl-C, SIGTERM or SIGHUP; 141 stdout was closed, as by head.
    """
    guard_other_output()
