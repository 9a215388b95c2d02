"""Commands that ingest pages, and that decide about one page."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing, suppress
from typing import BinaryIO, Unpack

import click

from pgsimhash import maintenance
from pgsimhash.cli.options import (
    DEFAULT_COLLECTION,
    check_files,
    check_paths,
    collection_option,
    dsn_option,
    file_url,
    match_options,
    parquet_option,
    read_file,
    scheme_option,
    stdin_bytes,
)
from pgsimhash.cli.printing import people, print_json
from pgsimhash.cli.summary import print_verdicts
from pgsimhash.cli.work import (
    choose_jobs,
    jobs_option,
    summary_option,
    tell_left_out,
    verdicts_too,
    with_progress,
)
from pgsimhash.errors import CollectionError
from pgsimhash.pages.policies import MatchOptions
from pgsimhash.pages.values import MAX_BYTES
from pgsimhash.schemes import DEFAULT_NAME
from pgsimhash.sources import count_pages
from pgsimhash.store import connect

_WHAT_MAX = 200


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@match_options
@jobs_option
@summary_option
@scheme_option(f"the collection's, else {DEFAULT_NAME}")
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    default=MAX_BYTES,
    show_default=True,
    help="The size limit; a larger page fails.",
)
@click.option(
    "--page-seconds",
    type=click.FloatRange(0, min_open=True),
    help="The time limit for reading a page; a slower page fails. By default 30 if several "
    "processes read pages, and no limit (inf) if one does.",
)
@click.option(
    "--page-memory",
    type=click.IntRange(1),
    metavar="MB",
    help="The memory limit of a process that reads pages, including some 100 MB that it always"
    " needs; a page that needs more fails. By default there is no limit. Linux only.",
)
@collection_option
@parquet_option("the verdicts to this file too")
@click.option(
    "--reread",
    is_flag=True,
    help="Also read files that are stored and were not modified since.",
)
@click.option("--create", is_flag=True, help="Create the collection if it does not exist.")
@dsn_option
@click.pass_context
def ingest(
    context: click.Context,
    paths: tuple[str, ...],
    jobs: int | None,
    summary: bool | None,
    scheme: str | None,
    max_bytes: int,
    page_seconds: float | None,
    page_memory: int | None,
    parquet: str | None,
    collection: str,
    reread: bool,
    create: bool,
    dsn: str | None,
    **options: Unpack[MatchOptions],
) -> None:
    """Decide for each page whether it is known, and store it.

    PATH is a folder of .html files, an .html file, a .jsonl file with "url" and "html" on each
    line, or a .warc or .warc.gz file; - reads JSON lines from stdin. Prints one JSON line per page,
    and counts skipped files and records on stderr. After Ctrl-C the same command continues: it
    skips files that are stored and were not modified since.
    """
    console = people()
    check_paths(paths)
    total = count_pages(paths)
    # A mistyped name must not create a collection.
    create = create or collection == DEFAULT_COLLECTION
    try:
        opened = connect(dsn, collection=collection, create=create, scheme=scheme)
    except CollectionError as error:
        if error.reason != "unknown":
            raise
        raise CollectionError("unknown", f"{error}; to create it, add --create") from error
    with opened as store:
        left_out = Counter[str]()
        store.start_run(f"pgsimhash ingest {' '.join(paths)}"[:_WHAT_MAX])
        verdicts = maintenance.ingest_files(
            store,
            paths,
            reread=reread,
            stdin=_stdin() if "-" in paths else None,
            left_out=left_out,
            jobs=choose_jobs(jobs, total),
            max_bytes=max_bytes,
            page_seconds=page_seconds,
            page_memory=None if page_memory is None else page_memory * 10**6,
            **options,
        )
        # If printing fails, the progress of the files is recorded before the store is closed.
        with closing(verdicts), verdicts_too(parquet, verdicts) as reported:
            shown = with_progress(reported, total, console, "ingest", left_out)
            code = print_verdicts(shown, console, summary, skipped=left_out)
    tell_left_out(left_out)
    context.exit(code)


def _stdin() -> BinaryIO:
    stdin = stdin_bytes()
    # A separate file object: Python aborts if the process ends while a thread waits for sys.stdin.
    with suppress(OSError):
        stdin = os.fdopen(os.dup(stdin.fileno()), "rb")
    return stdin


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
