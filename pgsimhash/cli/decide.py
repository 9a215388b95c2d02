"""The command that decides about one page without storing it."""

from __future__ import annotations

from typing import Unpack

import click

from pgsimhash.cli.matching import match_options
from pgsimhash.cli.options import (
    check_files,
    collection_option,
    dsn_option,
    file_url,
    read_file,
)
from pgsimhash.cli.printing import print_json
from pgsimhash.pages.match_settings import MatchOptions
from pgsimhash.store import connect


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--url", help="The URL of the page; by default the file's.")
@match_options
@collection_option
@dsn_option
@click.pass_context
def decide(
    context: click.Context,
    file: str,
    url: str | None,
    collection: str,
    dsn: str | None,
    **options: Unpack[MatchOptions],
) -> None:
    """Show what ingest would decide about a page, and store nothing.

    FILE is an HTML file; - reads stdin and needs --url. Prints the verdict as a JSON line. Exits
    with 0 if the page is worth keeping ("keep"), else with 1.
    """
    where = url or file_url(file)
    if where is None:
        raise click.UsageError("a page from stdin needs --url")
    check_files([file])
    html = read_file(file)
    with connect(dsn, collection=collection, create=False) as store:
        verdict = store.decide(where, html, **options)
    print_json(verdict.as_json())
    context.exit(0 if verdict.keep else 1)
