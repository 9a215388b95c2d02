"""Measure the space of pages on disk: the second table of docs/layouts.md.

    python bench/space.py FOLDER [--times N] [--dsn DSN]

Ingests the .html files under FOLDER, N times under other URLs, into a collection without and one
with Markdown, each in new tables, and prints the bytes per page: table, indexes and TOAST. Then it
ingests them again, unchanged, and prints the additional bytes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
import psycopg

from pgsimhash.db.connection import open_connection
from pgsimhash.pages.records import PageFailure
from pgsimhash.sources import SourcePage, read_pages
from pgsimhash.store import Store, connect

if TYPE_CHECKING:
    from bench.workload import database
else:  # A script finds its neighbours under their own names.
    from workload import database

PARTS = {
    "rows": "pg_relation_size('pgsimhash.pages')",
    "indexes": "pg_indexes_size('pgsimhash.pages')",
    "TOAST and maps": "pg_table_size('pgsimhash.pages') - pg_relation_size('pgsimhash.pages')",
}


def repeated(folder: Path, times: int) -> Iterator[SourcePage | PageFailure]:
    """The pages with URLs like those of news sites, longer than the names of files."""
    for number in range(times):
        for page in read_pages([folder]):
            if isinstance(page, SourcePage):
                name = page.url.rpartition("/")[2]
                url = f"https://www{number}.example.com/2024/05/section/{'a-word-in-it-' * 2}{name}"
                yield SourcePage(url, page.html)
            else:
                yield page


def ingest(store: Store, folder: Path, times: int) -> None:
    for _ in store.ingest_many(repeated(folder, times), jobs=2):
        pass


def one(connection: psycopg.Connection, query: str) -> int:
    (value,) = connection.execute(query).fetchone() or (0,)
    return int(value)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--times", default=3, show_default=True)
@click.option("--dsn")
def main(folder: Path, times: int, dsn: str | None) -> None:
    """Ingest the .html files under FOLDER and print bytes per page."""
    with ExitStack() as stack:
        dsn = stack.enter_context(database(dsn))
        connection = stack.enter_context(open_connection(dsn, autocommit=True))
        for keep in (False, True):
            connection.execute("TRUNCATE pgsimhash.pages, pgsimhash.simhashes, pgsimhash.last_seen")
            store = connect(connection, collection=f"bench-{time.time_ns()}", keep_markdown=keep)
            ingest(store, folder, times)
            pages = one(connection, "SELECT count(*) FROM pgsimhash.pages")
            url = one(connection, "SELECT avg(length(url)) FROM pgsimhash.pages")
            text = one(connection, "SELECT coalesce(avg(length(markdown)), 0) FROM pgsimhash.pages")
            html = one(connection, "SELECT avg(html_bytes) FROM pgsimhash.pages")
            simhashes = one(connection, "SELECT count(*) FROM pgsimhash.simhashes")
            sizes = {name: one(connection, f"SELECT {part}") for name, part in PARTS.items()}
            told = "with Markdown" if keep else "without Markdown"
            click.echo(
                f"{told}: {pages:,} pages, {simhashes:,} simhashes, in the mean a URL of {url} "
                f"characters, {html:,} bytes of HTML, {text:,} characters of Markdown"
            )
            total = sum(sizes.values())
            parts = ", ".join(f"{name} {size / pages:,.0f}" for name, size in sizes.items())
            click.echo(f"  {total / pages:,.0f} bytes a page: {parts}")
        ingest(store, folder, times)
        size = one(connection, "SELECT pg_total_relation_size('pgsimhash.last_seen')")
        seen = one(connection, "SELECT count(*) FROM pgsimhash.last_seen")
        click.echo(f"seen again unchanged: {seen:,} pages, {size / seen:,.0f} bytes each")


if __name__ == "__main__":
    main()
