"""Learning what stands on most pages of a host, and leaving it out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from pgsimhash.boilerplate import (
    PAGES_MIN,
    SHARE,
    base_name,
    learn,
    read_boilerplate,
    without_boilerplate,
)
from pgsimhash.cli.options import Command, dsn_option, scheme_option
from pgsimhash.cli.output import check_folder, write_text
from pgsimhash.cli.printing import people, print_json, tell
from pgsimhash.cli.work import with_progress
from pgsimhash.connection import checked_connection
from pgsimhash.errors import BoilerplateError, PageError
from pgsimhash.schemes import DEFAULT_SCHEME, get_scheme, register_scheme
from pgsimhash.sources import SourcePage, count_pages, read_pages
from pgsimhash.store import connect
from pgsimhash.store.boilerplates import delete, saved
from pgsimhash.store.boilerplates import save as keep


def _register(_: click.Context, option: click.Parameter, path: Path | None) -> str | None:
    """Register the default scheme without the boilerplate in ``path`` and return its name."""
    if path is None:
        return None
    try:
        boilerplate = read_boilerplate(path.read_text(encoding="utf-8"))
    except (BoilerplateError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path}: {error}", param=option) from error
    return register_scheme(without_boilerplate(boilerplate)).name


def boilerplate_option(command: Command) -> Command:
    """Add ``--boilerplate``; its value is the name of the scheme that leaves it out."""
    return click.option(
        "--boilerplate",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        callback=_register,
        help="Leave out what learn-boilerplate wrote to this file; the collection is of its own.",
    )(command)


@click.command("learn-boilerplate")
@click.argument("paths", metavar="[PATH...]", nargs=-1)
@click.option(
    "--collection",
    help="Learn from the Markdown that this collection keeps; there is no PATH.",
)
@click.option(
    "--share",
    type=float,
    default=SHARE,
    show_default=True,
    help="A paragraph on more than this share of a host's pages is boilerplate.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=check_folder,
    help="Write it here, as JSON.",
)
@click.option("--save", is_flag=True, help="Keep it in the database.")
@scheme_option
@dsn_option
@click.pass_context
def learn_boilerplate(
    context: click.Context,
    paths: tuple[str, ...],
    collection: str | None,
    share: float,
    output: Path | None,
    save: bool,
    scheme: str | None,
    dsn: str | None,
) -> None:
    """Learn the paragraphs that stand on more than half of a host's pages.

    PATH is what ingest takes. Pages without a host (file URLs) teach nothing. Prints a JSON line
    for each host, with the version and the name of the scheme that leaves it out; exits with 1
    if nothing is learnt, and then keeps nothing.

    With --save the scheme is found in the database: create a collection with it, and every
    command leaves the boilerplate out there. A file from -o goes to ingest, find and fingerprint
    with --boilerplate; ingest keeps it in the database too when it creates the collection.
    """
    if (collection is None) == (not paths):
        raise click.UsageError("name files to learn from, or --collection")
    if output is None and not save:
        raise click.UsageError("say where to keep it: --save in the database, -o FILE in a file")
    name = get_scheme(scheme or DEFAULT_SCHEME).name
    if collection is None:
        learnt = learn(_texts(paths, name), share=share)
    else:
        with connect(dsn, collection=collection, create=False) as store, _reading() as told:
            learnt = store.learn_boilerplate(share=share, progress=told)
            name = scheme or base_name(store.scheme)
    made = f"{name}+{learnt.version}"
    for host, paragraphs in sorted(learnt.hosts.items()):
        print_json(
            {
                "host": host,
                "paragraphs": len(paragraphs),
                "version": learnt.version,
                "scheme": made,
            }
        )
    if not learnt.hosts:
        people().print(
            f"Nothing was learnt from {learnt.pages:,} pages; give {PAGES_MIN} or more of one "
            "host, by URLs that name it."
        )
        context.exit(1)
    if output is not None:
        write_text(output, learnt.as_json())
    if save:
        with checked_connection(dsn) as connection, connection.transaction():
            keep(connection, learnt, name)
        people().print(f"Saved; create a collection with: --scheme {made}")


@click.command()
@dsn_option
def boilerplates(dsn: str | None) -> None:
    """List the boilerplate that is saved in the database, a JSON line each, the oldest first."""
    with checked_connection(dsn) as connection:
        for found in saved(connection):
            print_json(found.as_json())


@click.command("delete-boilerplate")
@click.argument("version")
@dsn_option
def delete_boilerplate(version: str, dsn: str | None) -> None:
    """Delete saved boilerplate that no collection uses."""
    with checked_connection(dsn) as connection:
        delete(connection, version)
    people().print(f"Deleted {version}.")


def _texts(paths: tuple[str, ...], scheme: str) -> Iterator[tuple[str, str]]:
    """Yield URL and main text of the pages that have one, and complain about the others."""
    recipe = get_scheme(scheme)
    pages = read_pages(paths, stdin=sys.stdin.buffer)
    for page in with_progress(pages, count_pages(paths), people(), "learn"):
        if not isinstance(page, SourcePage):
            tell(f"{page.url}: {page.detail}")
            continue
        try:
            yield page.url, recipe.extract(page.html, page.url, page.charset).text
        except PageError as error:
            tell(f"{page.url}: {error}")


@contextmanager
def _reading() -> Iterator[Callable[[int], None]]:
    with people().status("learn") as status:
        yield lambda pages: status.update(f"learn: {pages:,} pages")
