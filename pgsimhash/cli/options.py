"""Options that several commands share, and the types of their arguments."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, TypeVar

import click

from pgsimhash.db.schema_names import SCHEMA, SCHEMA_VARIABLE, check_schema_name
from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.hashing.bits import LEVELS, level_distance, parse_simhash
from pgsimhash.pages.policies import NUMBER_MAX, SCOPES
from pgsimhash.pages.values import parse_age
from pgsimhash.schemes import BUILT_IN
from pgsimhash.search.clusters import LINKAGES, RULES
from pgsimhash.search.layout import DEFAULT_LAYOUT, get_layout
from pgsimhash.sources.page import plain_path

Command = TypeVar("Command", bound=Callable[..., object])

DEFAULT_COLLECTION: Final = "default"


class Checked(click.ParamType[str]):
    """A text that a function of the package checks and completes."""

    def __init__(self, name: str, check: Callable[[str], str]) -> None:
        self.name = name
        self._check = check

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the checked text."""
        try:
            return self._check(value)
        except ArgumentError as error:
            self.fail(str(error), param, ctx)


def dsn_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--dsn``, and ``--schema``, which sets PGSIMHASH_SCHEMA for this command."""

    @wraps(command)
    def in_schema(*arguments: Any, schema: str | None, **options: Any) -> Any:
        if schema is None:
            return command(*arguments, **options)
        before = os.environ.get(SCHEMA_VARIABLE, "")
        os.environ[SCHEMA_VARIABLE] = schema
        try:
            return command(*arguments, **options)
        finally:
            os.environ[SCHEMA_VARIABLE] = before

    dsn = click.option(
        "--dsn",
        metavar="DSN",
        help="The PostgreSQL server, such as postgresql://user@host/database; by default "
        "PGSIMHASH_DSN, DATABASE_URL or libpq's variables (PGHOST ...), else the embedded server.",
    )
    schema = click.option(
        "--schema",
        type=Checked("name", check_schema_name),
        help=f"The schema of the tables; by default {SCHEMA_VARIABLE}, else {SCHEMA}.",
    )
    return dsn(schema(in_schema))


def collection_option(command: Command) -> Command:
    """Add ``--collection``."""
    return click.option(
        "--collection",
        default=DEFAULT_COLLECTION,
        show_default=True,
        help="The collection to use.",
    )(command)


def yes_option(command: Command) -> Command:
    """Add ``--yes``; without it the command calls :func:`confirm`."""
    return click.option("--yes", is_flag=True, help="Do not ask.")(command)


def confirm(question: str) -> None:
    """Ask before data is deleted; without a terminal, or if the answer is no, end the command."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError("this deletes data: confirm with --yes")
    if not click.confirm(question, err=True):
        raise click.UsageError("nothing was deleted")


class LinesFile(click.File):
    """A file that is read line by line, or stdin."""

    def convert(
        self,
        value: str | os.PathLike[str] | IO[Any],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> IO[Any]:
        """Return the file, opened."""
        if value == "-":
            stdin_bytes()
        return super().convert(value, param, ctx)


class Distance(click.IntRange):
    """A number of bits, or the name of a level of similarity."""

    name = "bits|close|loose"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Any:
        """Return the number of bits."""
        named = {str(name): level_distance(name) for name in LEVELS}
        return super().convert(named.get(value, value), param, ctx)


def distance_option(shown: str) -> Callable[[Command], Command]:
    """Return a decorator that adds ``--distance`` with the default ``shown``."""
    return click.option(
        "--distance",
        type=Distance(0, DEFAULT_LAYOUT.distances[-1]),
        show_default=shown,
        help="The largest number of differing bits, or close (1) or loose (6).",
    )


def cluster_options(command: Command) -> Command:
    """Add ``--linkage`` and ``--canonical``."""
    linkage = click.option(
        "--linkage",
        type=click.Choice(LINKAGES),
        default="single",
        show_default=True,
        help="single follows chains of pairs; in complete clusters every pair is within it.",
    )
    canonical = click.option(
        "--canonical",
        type=click.Choice(list(RULES)),
        multiple=True,
        default=["earliest"],
        show_default=True,
        help="How to choose the page that represents a cluster; repeat to break ties.",
    )
    return linkage(canonical(command))


def parquet_option(what: str) -> Callable[[Command], Command]:
    """Add ``--parquet``; ``what`` describes the content."""
    return click.option(
        "--parquet", metavar="FILE", help=f"Write {what}, as Parquet (extra parquet)."
    )


def check_folder(_: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Fail before the work if the folder of the file does not exist."""
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(
            f"the folder {path.parent} does not exist; create it", param=option
        )
    return path


def output_option(command: Command) -> Command:
    """Add ``--output``."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, writable=True, path_type=Path),
        callback=check_folder,
        help="Write an HTML page with charts to this file.",
    )(command)


LAYOUT: Final = Checked("layout", lambda value: get_layout(value).name)


def scheme_option(default: str) -> Callable[[Command], Command]:
    """Return a decorator that adds ``--scheme``; ``default`` describes its default."""
    return click.option(
        "--scheme",
        type=click.Choice(BUILT_IN),
        help=f"The scheme that computes simhashes; by default {default}.",
    )


def check_paths(paths: Iterable[str]) -> None:
    """Check that the input of a command exists, before any work."""
    for path in paths:
        if path == "-":
            stdin_bytes()
        elif not os.path.lexists(path):
            raise click.UsageError(f"{path} does not exist; check the path")


def check_files(names: Iterable[str]) -> None:
    """Check that files exist and are not folders."""
    for name in names:
        check_paths([name])
        if Path(name).is_dir():
            raise click.UsageError(f"{name} is a folder; give an HTML file")


def stdin_bytes() -> BinaryIO:
    """Return stdin, unless the process was started without it."""
    if sys.stdin is None:
        raise click.UsageError("- reads stdin, which is closed; give it a file or a pipe")
    return sys.stdin.buffer


def read_file(name: str) -> bytes:
    """Return the bytes of the file ``name``, of stdin for ``-``."""
    if name == "-":
        return stdin_bytes().read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise PageError("unreadable", f"{name} cannot be read: {error.strerror}") from error


def file_url(name: str) -> str | None:
    """Return the ``file:`` URL of a file, None for stdin."""
    return None if name == "-" else plain_path(Path(name)).as_uri()


def is_url(word: str) -> bool:
    """Return whether ``word`` is the URL of a page: it contains ``://``."""
    return "://" in word and not Path(word).is_file()


def as_simhash(word: str) -> int | None:
    """Return ``word`` as a simhash, or None if it names a file or stdin."""
    if word == "-" or Path(word).is_file():
        return None
    try:
        return parse_simhash(word)
    except ArgumentError as error:
        detail = str(error).removeprefix(f"{word!r} is not a simhash: ")
        raise ArgumentError(
            "invalid_argument", f"{word!r} is neither a file nor a simhash: {detail}"
        ) from error


def as_age(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> timedelta | None:
    """Return the age in an option, as its callback."""
    try:
        return None if value is None else parse_age(value)
    except ArgumentError as error:
        raise click.BadParameter(str(error)) from error


def match_options(command: Command) -> Command:
    """Add the options of ``MatchOptions``; None keeps a setting."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_COUNT = click.IntRange(1, NUMBER_MAX)

_OPTIONS = (
    distance_option("the collection's, 8"),
    click.option(
        "--verify/--no-verify",
        default=None,
        show_default="verify",
        help="Whether the signatures of both pages must also agree.",
    ),
    click.option(
        "--scope",
        type=click.Choice(SCOPES),
        show_default="collection",
        help="Compare with the page's host, the collection, or all collections of its scheme.",
    ),
    click.option(
        "--window-size",
        type=_COUNT,
        metavar="N",
        help="Compare only with the last N originals, and with pages that arrived since.",
    ),
    click.option(
        "--max-age",
        metavar="AGE",
        callback=as_age,
        help="Compare only with pages fetched at most this long before: 90d, 12h.",
    ),
    click.option(
        "--canonical-link/--no-canonical-link",
        default=None,
        show_default="no-canonical-link",
        help="Whether the page in rel=canonical, on the same site, is the original.",
    ),
    click.option(
        "--max-copies",
        type=_COUNT,
        metavar="N",
        show_default="1",
        help="How many near-duplicates are worth keeping, including the original.",
    ),
    click.option(
        "--min-tokens",
        type=_COUNT,
        metavar="N",
        show_default="the scheme's, 12",
        help="A page with fewer words is too short.",
    ),
)
