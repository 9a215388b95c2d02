"""The command line: data as JSON lines on stdout, everything for people on stderr.

Exit codes: 0 done; 1 some pages failed, or nothing was found; 2 the command was mistyped; 3 the
database or the schema cannot be used as it is; 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import errno
from typing import Any

import click
import psycopg

from pgsimhash.cli.admin import migrate, status
from pgsimhash.cli.decide import decide
from pgsimhash.cli.evaluate import evaluate
from pgsimhash.cli.explain import explain_pages
from pgsimhash.cli.fetch import should_fetch
from pgsimhash.cli.forget import delete, expire, runs, undo
from pgsimhash.cli.groups import clusters, pairs
from pgsimhash.cli.history import history
from pgsimhash.cli.ingest import ingest
from pgsimhash.cli.layouts import create, plan, relayout
from pgsimhash.cli.lookup import compare, find, find_many, fingerprint
from pgsimhash.cli.marks import mark, marks, unmark
from pgsimhash.cli.output import INTERRUPTED
from pgsimhash.cli.policies import policy
from pgsimhash.cli.printing import guard_other_output, printable_complaints, tell
from pgsimhash.cli.report import report
from pgsimhash.cli.reruns import refingerprint, rejudge, rename
from pgsimhash.errors import (
    InvalidDistanceError,
    InvalidSimhashError,
    PageError,
    PgsimhashError,
    PolicyError,
    UnknownRuleError,
    UnknownRunError,
)

__all__ = ["main"]


_MISTYPED = (InvalidDistanceError, InvalidSimhashError, PolicyError, UnknownRuleError)
"""Values that options and arguments cannot have, which only the database knew."""


class _PageFailure(click.ClickException):
    exit_code = 1


class _StoreFailure(click.ClickException):
    exit_code = 3


class _Commands(click.Group):
    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        with printable_complaints():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        with printable_complaints():
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (PageError, UnknownRunError) as error:
            raise _PageFailure(str(error)) from error
        except _MISTYPED as error:
            raise click.UsageError(str(error)) from error
        except PgsimhashError as error:
            raise _StoreFailure(str(error)) from error
        except (psycopg.Error, UnicodeEncodeError) as error:
            # What no module of ours foresaw: still no traceback for whoever typed a command.
            raise _StoreFailure(
                f"the database refuses: {str(error).strip()}; check what was given"
            ) from error
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            raise _PageFailure(
                f"the system refuses: {error}; make room, or read and write elsewhere"
            ) from error
        except KeyboardInterrupt:
            tell("Stopped. What was committed stays; run again to continue.")
            ctx.exit(INTERRUPTED)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pgsimhash")
def main() -> None:
    """Find near-duplicate web pages, exactly, with simhashes kept in PostgreSQL.

    Without --dsn and PGSIMHASH_DSN the embedded PostgreSQL is used. Data goes to stdout as JSON
    lines, everything else to stderr.

    Exit codes: 0 done; 1 some pages failed, or nothing was found; 2 mistyped; 3 the database
    cannot be used as it is; 130 stopped with Ctrl-C.
    """
    guard_other_output()


for command in (
    ingest,
    should_fetch,
    decide,
    find,
    find_many,
    pairs,
    clusters,
    fingerprint,
    compare,
    explain_pages,
    history,
    report,
    evaluate,
    status,
    migrate,
    create,
    policy,
    plan,
    relayout,
    refingerprint,
    rejudge,
    rename,
    runs,
    undo,
    delete,
    expire,
    mark,
    marks,
    unmark,
):
    main.add_command(command)
