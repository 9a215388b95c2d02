"""Options that several commands share, and the arguments that name files and simhashes."""

import os
import sys
from collections.abc import Callable
from functools import partial, reduce, wraps
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import click

from pgsimhash import connect
from pgsimhash.db.schema_names import SCHEMA, SCHEMA_VARIABLE, check_schema_name
from pgsimhash.errors import ArgumentError, PageError, invalid_argument
from pgsimhash.hashing.bits import LEVELS, parse_simhash
from pgsimhash.pages.policies import NUMBER_MAX, SCOPES
from pgsimhash.pages.selectors import check_selectors
from pgsimhash.pages.values import parse_age
from pgsimhash.runtime.machine import usable_cores
from pgsimhash.runtime.output import check_output
from pgsimhash.schemes import BUILT_IN
from pgsimhash.search.clusters import CANONICAL, LINKAGES, RULES
from pgsimhash.search.layout import DEFAULT_LAYOUT
from pgsimhash.sources import is_page_name
from pgsimhash.sources.page import plain_path

Command = Callable[..., Any]
Option = Callable[[Command], Command]
Value = TypeVar("Value")

DEFAULT_COLLECTION: Final = "default"

_WORTH_PROCESSES: Final = 200
"""Below this many pages, starting processes costs more than it saves."""

_JOBS_MAX: Final = 8
"""More processes would wait for the main process, which feeds them and stores results."""


class _Input(click.Path):
    """A file to read, which is not the command's own output."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        check_output(1, path := super().convert(value, param, ctx))
        return path


INPUT_FILE: Final = _Input(exists=True, dir_okay=False, readable=False, allow_dash=True)
INPUT_PATH: Final = _Input(exists=True, readable=False, allow_dash=True)


def checked(check: Callable[[str], Value]) -> Callable[..., Value | None]:
    """Return the callback of an option whose value is the result of ``check``."""

    def callback(_: click.Context, option: click.Parameter, value: str | None) -> Value | None:
        try:
            return None if value is None else check(value)
        except ArgumentError as error:
            raise click.BadParameter(str(error), param=option) from error

    return callback


def flag(name: str, help_text: str) -> Option:
    """Return an option without a value."""
    return click.option(name, is_flag=True, help=help_text)


def value(usage: str, help_text: str, kind: Any = None, **more: Any) -> Option:
    """Return an option with a value, by its names and what stands for it: ``-o --output FILE``."""
    names = [word for word in usage.split() if not word.isupper()]
    metavar = next(filter(str.isupper, usage.split()), None)
    more = {"show_default": True, **more}
    return click.option(*names, type=kind, metavar=metavar, help=help_text, **more)


def switch(name: str, help_text: str, default: str | None = None) -> Option:
    """Return ``--name`` and ``--no-name``; ``default`` describes what None means."""
    return value(f"--{name}/--no-{name}", help_text, default=None, show_default=default)


def number(name: str, help_text: str, default: str | None = None) -> Option:
    """Return an option with an integer; ``default`` describes what None means."""
    return value(f"{name} N", help_text, click.IntRange(1, NUMBER_MAX), show_default=default)


def age(name: str, help_text: str) -> Option:
    """Return an option with an age, such as 90d or 12h."""
    return value(f"{name} AGE", help_text, callback=checked(parse_age))


def _selectors(name: str, help_text: str) -> Option:
    def check(text: str) -> str:
        check_selectors(name, text)
        return text

    return value(f"{name} CSS", help_text, callback=checked(check))


def _in_a_folder(name: str) -> Path:
    check_output(path := Path(name))
    if not path.parent.is_dir():
        raise invalid_argument(f"the folder {path.parent} does not exist; create it")
    return path


html_page: Final = value(
    "-o --output",
    "Write an HTML page to this file.",
    click.Path(dir_okay=False, writable=True),
    callback=checked(_in_a_folder),
)


def parquet(content: str) -> Option:
    """Return ``--parquet``; ``content`` describes the file."""
    return value("--parquet FILE", f"Write {content}, as Parquet (extra parquet).")


def scheme(default: str) -> Option:
    """Return ``--scheme``; ``default`` describes its default."""
    help_text = f"The scheme that computes simhashes; by default {default}."
    return value("--scheme", help_text, click.Choice(BUILT_IN))


class _Distance(click.IntRange):
    """A number of bits, or the name of a level of similarity."""

    name = "bits|close|loose"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return super().convert(LEVELS.get(value, value), param, ctx)


def distance(default: str) -> Option:
    """Return ``--distance``; ``default`` describes its default."""
    help_text = "The largest number of differing bits, or close (1) or loose (6)."
    kind = _Distance(0, DEFAULT_LAYOUT.distances[-1])
    return value("--distance", help_text, kind, show_default=default)


def _all_of(*options: Option) -> Option:
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


def _use_schema(context: click.Context, option: click.Parameter, value: str | None) -> None:
    schema = checked(check_schema_name)(context, option, value)
    if schema is not None:
        before = os.environ.get(SCHEMA_VARIABLE, "")
        os.environ[SCHEMA_VARIABLE] = schema
        context.call_on_close(lambda: os.environ.update({SCHEMA_VARIABLE: before}))


dsn: Final = _all_of(
    value(
        "--dsn DSN",
        "The PostgreSQL server, such as postgresql://user@host/database; by default "
        "PGSIMHASH_DSN, DATABASE_URL or libpq's variables (PGHOST ...), else the embedded server.",
    ),
    value(
        "--schema NAME",
        f"The schema of the tables; by default {SCHEMA_VARIABLE}, else {SCHEMA}.",
        callback=_use_schema,
        expose_value=False,
    ),
)


def known_collections(
    context: click.Context, _option: click.Parameter, incomplete: str
) -> list[str]:
    """Return the collections that the shell can complete; it never creates a server."""
    from pgsimhash import embedded
    from pgsimhash.db.dsn import configured_dsn
    from pgsimhash.schema.deployed import checked_connection
    from pgsimhash.store.collection import collection_names

    given = context.params.get("dsn")
    try:
        if configured_dsn(given) is None and not embedded.exists():
            return []
        with checked_connection(given) as connection:
            names = collection_names(connection)
    except Exception:  # a shell shows no errors
        return []
    return [name for name in names if name.startswith(incomplete)]


def one_collection(help_text: str, **default: Any) -> Option:
    """Return ``--collection``."""
    return value("--collection", help_text, shell_complete=known_collections, **default)


collection_and_dsn: Final = _all_of(
    one_collection("The collection to use.", default=DEFAULT_COLLECTION), dsn
)


def _with_opened(opening: Callable[[dict[str, Any]], Any], *added: Option) -> Option:
    """Return an option that adds these; the command gets what is opened as its first argument."""

    def add(command: Command) -> Command:
        @wraps(command)
        def with_opened(*arguments: Any, **given: Any) -> None:
            with opening(given) as opened:
                command(opened, *arguments, **given)

        return _all_of(*added)(with_opened)

    return add


def _connection(given: dict[str, Any]) -> Any:
    from pgsimhash.schema.deployed import checked_connection

    return checked_connection(given.pop("dsn"))


def _store(given: dict[str, Any], name: str = "collection", create: bool | None = False) -> Any:
    return connect(given.pop("dsn"), collection=given.pop(name), create=create)


with_connection: Final = _with_opened(_connection, dsn)
with_store: Final = _with_opened(_store, collection_and_dsn)
with_new_store: Final = _with_opened(partial(_store, create=None), collection_and_dsn)
"""That of :data:`with_store`, which creates the default collection."""


def with_named_store(name: str) -> Option:
    """Return :data:`with_store` for a collection that an argument names."""
    argument = click.argument(name, shell_complete=known_collections)
    return _with_opened(partial(_store, name=name), argument, dsn)


clusters: Final = _all_of(
    value(
        "--linkage",
        "single follows chains of pairs; in complete clusters every pair is within it.",
        click.Choice(LINKAGES),
        default="single",
    ),
    value(
        "--canonical",
        "How to choose the page that represents a cluster; repeat to break ties.",
        click.Choice(list(RULES)),
        multiple=True,
        default=CANONICAL,
    ),
)

cut: Final = _all_of(
    _selectors("--content", "The part of a page that counts: CSS selectors, such as main."),
    _selectors("--ignore", "What does not count: CSS selectors, such as '.promo, #related'."),
)

match: Final = _all_of(
    distance("the collection's, 8"),
    switch("verify", "Whether the signatures of both pages must also agree.", "verify"),
    value(
        "--scope",
        "Compare with the page's host, the collection, or all collections of its scheme.",
        click.Choice(SCOPES),
        show_default="collection",
    ),
    number(
        "--window-size",
        "Compare only with the last N originals, and with pages that arrived since.",
    ),
    age("--max-age", "Compare only with pages fetched at most this long before: 90d, 12h."),
    switch(
        "canonical-link",
        "Whether the page in rel=canonical, on the same site, is the original.",
        "no-canonical-link",
    ),
    number(
        "--max-copies", "How many near-duplicates are worth keeping, including the original.", "1"
    ),
    number("--min-tokens", "A page with fewer words is too short.", "the scheme's, 12"),
    cut,
)
"""The options of ``MatchOptions``; None keeps a setting."""

jobs: Final = number(
    "--jobs",
    "Processes that read pages; by default one per core, up to 8, if there are enough pages.",
)


def choose_jobs(jobs: int | None, pages: int | None) -> int:
    """Return how many processes to use for ``pages`` pages (None: an unknown number)."""
    if jobs is not None:
        return jobs
    if pages is not None and pages < _WORTH_PROCESSES:
        return 1
    return min(usable_cores(), _JOBS_MAX)


as_csv: Final = value(
    "--csv as_csv", "Print CSV with a header instead of JSON lines.", is_flag=True
)

yes: Final = flag("--yes", "Do not ask.")
"""Without it the command calls :func:`confirm`."""


def confirm(question: str) -> None:
    """Ask before data is deleted; without a terminal, or if the answer is no, end the command."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError("this deletes data: confirm with --yes")
    if not click.confirm(question, err=True):
        raise click.UsageError("nothing was deleted")


def stdin_bytes() -> BinaryIO:
    """Return stdin, unless the process was started without it."""
    if sys.stdin is None:
        raise click.UsageError("- reads stdin, which is closed; give it a file or a pipe")
    return sys.stdin.buffer


def read_file(name: str) -> bytes:
    """Return the bytes of the file ``name``, of stdin for ``-``."""
    if name == "-":
        return stdin_bytes().read()
    if not is_page_name(name):
        raise click.UsageError(f"{name} is a file of many pages; only ingest reads it")
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
        raise invalid_argument(f"{word!r} is neither a file nor a simhash: {detail}") from error
