"""Commands that delete pages, undo runs, and set marks and policies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

import pgsimhash
from pgsimhash import analysis
from pgsimhash.cli import options, show, terminal
from pgsimhash.errors import ArgumentError, NotFoundError
from pgsimhash.pages.urls import check_url

if TYPE_CHECKING:
    from pgsimhash.analysis.pairs import LabelledPair
    from pgsimhash.store.maintenance import Deleted

_urls_option = options.flag(
    "--urls", "Also print the deleted URLs, those with an earlier version now, and new originals."
)


@click.command()
@options.value("--url", "Delete all versions of one page.")
@options.value("--host", "Delete all pages of a host.")
@_urls_option
@options.with_store
def delete(store: pgsimhash.Store, url: str | None, host: str | None, urls: bool) -> None:
    """Delete a page, or all pages of a host, without its subdomains.

    Writers can continue; after Ctrl-C the same command continues. Prints a JSON line with the
    number of deleted versions. Exits with 1 if it is 0.
    """
    if (url is None) == (host is None):
        raise click.UsageError("give one of --url and --host")
    if host is None:
        deleted = store.delete_page(url or "")
    else:
        with _deleting() as progress:
            deleted = store.delete_host(host, progress=progress)
    terminal.record(deleted.as_json(urls=urls))
    sys.exit(0 if deleted.deleted else 1)


@click.command()
@options.age("--older-than", "Such as 90d or 12h; by default the age in the policy of each page.")
@_urls_option
@options.with_store
def expire(store: pgsimhash.Store, older_than: timedelta | None, urls: bool) -> None:
    """Delete versions that were not seen for some time.

    A version is seen at its fetched_at (for WARC, the WARC-Date; by default, when it is ingested),
    and whenever its URL is ingested unchanged. So the pages of an old archive expire at once.
    Writers can continue; after Ctrl-C the same command continues. Prints a JSON line with the
    number of deleted versions.
    """
    with _deleting() as progress:
        deleted = store.expire(older_than, progress=progress)
    terminal.record(deleted.as_json(urls=urls))


@contextmanager
def _deleting() -> Iterator[Deleted]:
    with show.console().status("deleting") as status:
        yield lambda pages: status.update(f"deleted: {pages:,} versions")


@click.group()
def run() -> None:
    """List the runs that added pages, and undo them."""


@run.command("list")
@options.with_store
def list_runs(store: pgsimhash.Store) -> None:
    """List the runs, the last one first, a JSON line each."""
    terminal.rows(store.runs(), terminal.RUNS)


@run.command()
@click.argument("number", type=int, required=False)
@_urls_option
@options.with_store
def undo(store: pgsimhash.Store, number: int | None, urls: bool) -> None:
    """Delete what a run added, by default the newest of `run list`, and the run.

    Pages revert to their previous versions. Prints a JSON line with the run and the number of
    deleted versions.
    """
    found = next((known for known in store.runs() if number in (None, known.run_id)), None)
    if found is None:
        name = store.collection.name
        missing = "to undo" if number is None else number
        raise NotFoundError(
            "unknown_run",
            f"no run {missing}; pgsimhash run list --collection {name} lists the runs",
        )
    with _deleting() as progress:
        deleted = store.undo_run(found.run_id, progress=progress)
    of_run = {"run_id": found.run_id, "label": found.label}
    terminal.record({**of_run, **deleted.as_json(urls=urls)})
    if not deleted.deleted:
        show.message("The run had added no page, so no version was deleted.")


@click.command()
@click.argument("urls", metavar="[URL URL]", nargs=-1)
@options.flag("--same", "Must-link: they are duplicates.")
@options.flag("--different", "Cannot-link: they are not duplicates.")
@options.flag("--remove", "Remove the mark.")
@options.value(
    "--from source FILE",
    "Mark the pairs of a CSV file with the columns a, b and label (same or different).",
)
@options.with_store
def mark(
    store: pgsimhash.Store,
    urls: tuple[str, ...],
    same: bool,
    different: bool,
    remove: bool,
    source: str | None,
) -> None:
    """Mark two pages as the same or as different.

    Without URLs it lists the marks. The URLs must be known; both pages are decided again at once. A
    mark overrides simhashes in later verdicts and in clusters too. Exits with 1 if there is no mark
    to remove, or if pairs of a file cannot be marked: each is a JSON line.
    """
    if same + different + remove != bool(urls) or len(urls) not in (0, 2) or (source and urls):
        raise click.UsageError(
            "give two URLs with one of --same, --different and --remove, or --from FILE, or nothing"
        )
    if source is not None:
        _mark_pairs(store, analysis.read_labels(source))
    elif not urls:
        terminal.rows(store.marks(), terminal.MARKS)
    elif not remove:
        store.mark(*urls, same=same)
        show.message(f"Marked as {'same' if same else 'different'}.")
    elif store.unmark(*urls):
        show.message("The mark is removed.")
    else:
        show.message("These two had no mark.")
        sys.exit(1)


def _mark_pairs(store: pgsimhash.Store, pairs: list[LabelledPair]) -> None:
    failed = 0
    pairs = [pair for pair in pairs if pair.label != "graded"]
    for pair in pairs:
        try:
            store.mark(pair.a, pair.b, same=pair.label == "copy")
        except (ArgumentError, NotFoundError) as error:
            failed += 1
            terminal.record(
                {"a": pair.a, "b": pair.b, "reason": error.reason, "detail": str(error)}
            )
    show.message(f"Pairs marked: {len(pairs) - failed:,}, failed: {failed:,}.")
    sys.exit(failed > 0)


@click.group()
def policy() -> None:
    """Override settings for some hosts.

    PATTERN is a host with its subdomains, or * for all hosts, and optionally a path in which *
    matches anything: example.com/shop/*. For each setting, the most specific matching pattern that
    defines it wins: the longer host, then the longer path. Options of ingest and decide override
    policies.
    """


@policy.command("list")
@click.argument("url", required=False)
@options.with_store
def list_policies(store: pgsimhash.Store, url: str | None) -> None:
    """List the policies, or the settings of a URL, as JSON lines; ages are in seconds."""
    if url is not None:
        terminal.record({"url": check_url(url), **store.policy_for(url).as_json()})
    else:
        terminal.rows(store.policies(), terminal.POLICIES)


@policy.command("set")
@click.argument("pattern")
@options.match
@options.age(
    "--expire-after",
    "Expire versions that were not seen for this long, if expire follows policies.",
)
@options.age("--refetch-after", "When after it was last seen to fetch a page again, or always.")
@options.value(
    "--ignore-parameters",
    "URL parameters that do not matter, such as ref,utm_*: should-fetch answers without them.",
)
@options.number(
    "--sample-every", "Of how many URLs that differ only in these one is fetched anyway.", "100"
)
@options.with_new_store
def set_policy(store: pgsimhash.Store, pattern: str, **settings: Any) -> None:
    """Set the policy of a pattern; other settings stay. Prints it as a JSON line.

    With --content or --ignore, it also says how many stored pages will be read differently.
    """
    terminal.record(store.set_policy(pattern, **settings).as_json())
    if settings["content"] is not None or settings["ignore"] is not None:
        count = store.count_reread(pattern)
        show.message(
            f"{count:,} stored pages of this host will be read by other selectors when they "
            "are fetched again; pgsimhash ingest --reread reads files again."
        )


@policy.command()
@click.argument("pattern")
@options.with_store
def remove(store: pgsimhash.Store, pattern: str) -> None:
    """Remove the policy of a pattern; exits with 1 if the pattern has no policy."""
    removed = store.remove_policy(pattern)
    terminal.record({"pattern": pattern, "removed": removed})
    sys.exit(0 if removed else 1)
