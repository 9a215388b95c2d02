"""The root command, and the exit codes and messages of errors."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, ENOSPC
from typing import Any, Final

import click

from pgsimhash import errors
from pgsimhash.cli import CLOSED, INTERRUPTED, STOPPED, show
from pgsimhash.cli.analyse import analyse
from pgsimhash.cli.dedup import dedup
from pgsimhash.cli.pages import decide, find, find_many, fingerprint, ingest, should_fetch
from pgsimhash.cli.schema import check, collection, migrate, status
from pgsimhash.cli.upkeep import delete, expire, mark, policy, run

_NO_SPACE: Final = (EDQUOT, EFBIG, ENOSPC)

_SECTIONS: Final[dict[str, tuple[click.Command, ...]]] = {
    "Pages": (ingest, decide, should_fetch),
    "Search": (find, find_many, fingerprint, dedup),
    "Upkeep": (status, delete, expire, check, mark, migrate),
    "Groups of commands": (analyse, collection, policy, run),
}


class _Commands(click.Group):
    """The commands under headings, whose errors are one line each with an exit code."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (command.name.ljust(width), command.get_short_help_str(formatter.width))
                        for command in commands
                        if command.name
                    ]
                )

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        with _errors_of_commands():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: click.Context) -> object:
        with _errors_of_commands():
            return super().invoke(ctx)


def _add_json(command: click.Command) -> None:
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        _add_json(each)
    if not isinstance(command, click.Group):
        command.params.append(
            click.Option(
                ["--json"],
                is_flag=True,
                expose_value=False,
                callback=lambda context, _, value: context.meta.update({show.JSON: value}),
                help="Print JSON lines on a terminal too, as in a pipe.",
            )
        )


@contextmanager
def _errors_of_commands() -> Iterator[None]:
    try:
        yield
    except (click.exceptions.Exit, click.exceptions.NoArgsIsHelpError):
        raise
    except (KeyboardInterrupt, click.Abort):
        # Click turns Ctrl-C into Abort while it asks a question.
        show.message(STOPPED)
        raise click.exceptions.Exit(INTERRUPTED) from None
    except click.ClickException as error:
        error.message = show.printable(error.message)  # type: ignore[misc]
        raise
    except Exception as error:
        if isinstance(error, OSError):
            # At its end Python would complain about data that it could not write to stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            raise click.exceptions.Exit(CLOSED) from error
        failure = _failure(error)
        if failure is None:
            raise
        raise failure from error


def _failure(error: Exception) -> click.ClickException | None:
    """Return Click's error for an error, None for an unexpected one."""
    if isinstance(error.__cause__, OSError) and error.__cause__.errno in _NO_SPACE:
        error = error.__cause__
    message, code = show.printable(str(error).strip()), 3
    if isinstance(error, errors.PageError | errors.NotFoundError):
        code = 1
    elif isinstance(error, errors.CollectionError) or (
        isinstance(error, errors.ArgumentError) and error.reason != "unknown_scheme"
    ):
        return click.UsageError(message)
    elif isinstance(error, OSError):
        message = f"the operating system refuses: {message}; free space, or use another place"
    elif not isinstance(error, errors.PgsimhashError):
        # Imported here because --help needs no database.
        import psycopg

        if not isinstance(error, psycopg.Error | UnicodeEncodeError):
            return None
        message = f"the database refuses: {message}; check the arguments"
    failure = click.ClickException(message)
    failure.exit_code = code  # type: ignore[misc]
    return failure


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from lxml import etree

        from pgsimhash import __version__

        libxml2 = ".".join(map(str, etree.LIBXML_VERSION))
        lxml = f"lxml {etree.__version__}, libxml2 {libxml2}"
        click.echo(f"pgsimhash, version {__version__} ({lxml})")
        ctx.exit()


@click.group(
    "pgsimhash",
    cls=_Commands,
    commands=[command for commands in _SECTIONS.values() for command in commands],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the versions of pgsimhash, lxml and libxml2 and exit.",
)
def commands() -> None:
    """Find near-duplicate web pages, exactly, with simhashes kept in PostgreSQL.

    Without --dsn, PGSIMHASH_DSN, DATABASE_URL and libpq's variables (PGHOST ...), the embedded
    PostgreSQL is used. Data goes to stdout as JSON lines, everything else to stderr.

    Exit codes: 0 done; 1 some pages failed, or nothing was found; 2 an invalid option, or an
    unknown file or collection; 3 the database cannot be used, or a disk is full; 130 stopped with
    Ctrl-C, SIGTERM or SIGHUP; 141 stdout was closed, as by head.
    """
    show.escape_other_output()


_add_json(commands)
