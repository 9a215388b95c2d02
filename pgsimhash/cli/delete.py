"""Commands that delete pages, and list and undo runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from pgsimhash import maintenance
from pgsimhash.cli.options import as_age, collection_option, dsn_option
from pgsimhash.cli.printing import people, print_json
from pgsimhash.pages.urls import host_of, lowered
from pgsimhash.store import connect

if TYPE_CHECKING:
    from pgsimhash.store.deleting import Deleted

_urls_option = click.option(
    "--urls",
    is_flag=True,
    help="Also print the deleted URLs, those with an earlier version now, and new originals.",
)


@click.command("list")
@collection_option
@dsn_option
def list_runs(collection: str, dsn: str | None) -> None:
    """List the runs, the last one first, a JSON line each."""
    with connect(dsn, collection=collection, create=False) as store:
        for run in maintenance.runs(store):
            print_json(run.as_json())


@click.command()
@click.argument("run", type=int, metavar="[NUMBER]", required=False)
@_urls_option
@collection_option
@dsn_option
def undo(run: int | None, urls: bool, collection: str, dsn: str | None) -> None:
    """Delete what a run added, by default the last one, and the run.

    Pages revert to their previous versions. Prints a JSON line with the run and the number of
    deleted versions.
    """
    with connect(dsn, collection=collection, create=False) as store, _deleting() as progress:
        if run is None:
            undone, deleted = maintenance.undo(store, progress=progress)
            fields = undone.as_json()
        else:
            deleted = maintenance.delete_run(store, run, progress=progress)
            fields = {"run": run}
    print_json({**fields, **deleted.as_json(urls=urls)})


def _as_host(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and host_of(f"https://{value}") != lowered(value):
        raise click.BadParameter(f"{value!r} is not a host; give a name such as example.com")
    return value


@click.command()
@click.option("--url", help="Delete all versions of one page.")
@click.option("--host", callback=_as_host, help="Delete all pages of a host.")
@_urls_option
@collection_option
@dsn_option
@click.pass_context
def delete(
    context: click.Context,
    url: str | None,
    host: str | None,
    urls: bool,
    collection: str,
    dsn: str | None,
) -> None:
    """Delete a page, or all pages of a host; `run undo` deletes what a run added.

    Deletes in short transactions, so that writers can continue; after Ctrl-C the same command
    continues. Prints a JSON line with the number of deleted versions. Exits with 1 if there were
    none.
    """
    if (url is None) == (host is None):
        raise click.UsageError("give one of --url and --host")
    with connect(dsn, collection=collection, create=False) as store, _deleting() as progress:
        if url is not None:
            deleted = store.delete(url)
        else:
            deleted = store.delete_host(host or "", progress=progress)
    print_json(deleted.as_json(urls=urls))
    context.exit(0 if deleted.versions else 1)


@click.command()
@click.option(
    "--older-than",
    metavar="AGE",
    callback=as_age,
    help="Such as 90d or 12h; by default the age in the policy of each page.",
)
@_urls_option
@collection_option
@dsn_option
def expire(older_than: timedelta | None, urls: bool, collection: str, dsn: str | None) -> None:
    """Delete versions that were not seen for some time.

    A version is seen at its fetched_at (for WARC, the WARC-Date; by default, when it is ingested),
    and whenever its URL is ingested unchanged. So expire deletes the pages of an old archive at
    once. Leave out fetched_at to count from now. Deletes in short transactions, so that writers can
    continue; after Ctrl-C the same command continues. Prints a JSON line with the number of deleted
    versions.
    """
    with connect(dsn, collection=collection, create=False) as store, _deleting() as progress:
        deleted = store.expire(older_than, progress=progress)
    print_json(deleted.as_json(urls=urls))


@contextmanager
def _deleting() -> Iterator[Deleted]:
    """Lend a function that shows the number of deleted versions."""
    with people().status("deleting") as status:
        yield lambda pages: status.update(f"deleted: {pages:,} versions")
