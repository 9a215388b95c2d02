"""Learning what stands on most pages of a host, and leaving it out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from pgsimhash.boilerplate import SHARE, learn, read_boilerplate, without_boilerplate
from pgsimhash.cli.options import Command, people, print_json, scheme_option
from pgsimhash.cli.work import with_progress
from pgsimhash.errors import BoilerplateError, PageError
from pgsimhash.schemes import DEFAULT_SCHEME, get_scheme, register_scheme
from pgsimhash.sources import SourcePage, count_pages, read_pages


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
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
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
    required=True,
    help="Where to write it, as JSON.",
)
@scheme_option
def learn_boilerplate(
    paths: tuple[str, ...], share: float, output: Path, scheme: str | None
) -> None:
    """Learn the paragraphs that stand on more than half of a host's pages.

    PATH is what ingest takes. Pages without a host (file URLs) teach nothing. Give the file to
    ingest, find and fingerprint with --boilerplate.
    """
    recipe = get_scheme(scheme or DEFAULT_SCHEME)

    def texts() -> Iterator[tuple[str, str]]:
        pages = read_pages(paths, stdin=sys.stdin.buffer)
        for page in with_progress(pages, count_pages(paths), people(), "learn"):
            if not isinstance(page, SourcePage):
                click.echo(f"{page.url}: {page.detail}", err=True)
                continue
            try:
                yield page.url, recipe.extract(page.html, page.url, page.charset).text
            except PageError as error:
                click.echo(f"{page.url}: {error}", err=True)

    learnt = learn(texts(), share=share)
    output.write_text(learnt.as_json(), encoding="utf-8")
    for host, paragraphs in sorted(learnt.hosts.items()):
        print_json({"host": host, "paragraphs": len(paragraphs), "version": learnt.version})
