"""Commands that ingest pages, decide about pages, and look up simhashes."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Any, Final

import click

import pgsimhash
from pgsimhash.analysis.wording import counted
from pgsimhash.cli import options, people, show, terminal
from pgsimhash.errors import ArgumentError, CollectionError, PageError, invalid_argument
from pgsimhash.hashing.bits import format_simhash, parse_simhash, to_base32, to_bigint
from pgsimhash.pages.records import BITS_64, SourcePage, Verdict
from pgsimhash.pages.selectors import NO_SELECTORS
from pgsimhash.pages.urls import check_url
from pgsimhash.pages.values import MAX_BYTES
from pgsimhash.runtime import no_progress
from pgsimhash.schemes import DEFAULT_NAME
from pgsimhash.sources import FILES_BEFORE, OTHER_FILES, RECORDS_BEFORE, work_at
from pgsimhash.sources.page import Skipped

_LABEL_MAX: Final = 200


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=options.INPUT_PATH)
@options.match
@options.jobs
@options.scheme(f"the collection's, else {DEFAULT_NAME}")
@options.value(
    "--max-bytes", "The size limit; a larger page fails.", click.IntRange(1), default=MAX_BYTES
)
@options.value(
    "--page-seconds",
    "The time limit for reading a page; a slower page fails. By default 30 if several "
    "processes read pages, and no limit (inf) if one does.",
    click.FloatRange(0, min_open=True),
)
@options.value(
    "--page-memory MB",
    "The memory limit of a process that reads pages, beyond some 100 MB that it always"
    " needs; a page that needs more fails. By default there is no limit. Linux only.",
    click.IntRange(1),
)
@options.parquet("the verdicts to this file too")
@options.flag("--list-skipped", "Also print a JSON line for each skipped file and record.")
@options.value(
    "--base-url URL",
    "The URL of a folder PATH, such as that of wget -r -nH, for the URLs of its HTML files.",
)
@options.flag("--reread", "Also read files that are stored and were not modified since.")
@options.flag("--create", "Create the collection if it does not exist.")
@options.value("--label", "The label of the run; by default the command.")
@options.collection_and_dsn
def ingest(
    paths: tuple[str, ...],
    jobs: int | None,
    scheme: str | None,
    page_memory: int | None,
    parquet: str | None,
    list_skipped: bool,
    create: bool,
    label: str | None,
    collection: str,
    dsn: str | None,
    **settings: Any,
) -> None:
    """Decide for each page whether it is known, and store it.

    PATH is an .html file, a .jsonl or .parquet file with "url" and "html" in each line or row, a
    .warc, .warc.gz, .warc.zst or .wacz archive, or a folder of such files; - reads JSON lines from
    stdin. A scheme for texts reads "text", and .warc.wet.gz archives. Prints a JSON line per page.
    Skips files that are stored and were not modified since, so run it again after Ctrl-C.
    """
    total, size = work_at(paths)
    stdin = options.stdin_bytes() if "-" in paths else None
    if stdin is not None:
        # A separate file object: Python aborts if the process ends while a thread waits for stdin.
        with suppress(OSError):
            stdin = os.fdopen(os.dup(stdin.fileno()), "rb")
    skipped = Counter[str]()
    connect = partial(pgsimhash.connect, dsn, collection=collection, scheme=scheme)
    is_new = False
    try:
        opened = connect(create=False)
    except CollectionError as error:
        is_new = error.reason == "unknown"
        opened = connect(create=create or None)
    with opened as store, ExitStack() as at_end:
        if is_new:
            # A failed attempt must not leave a collection of the wrong scheme behind.
            at_end.callback(store._delete_if_empty)
        done = people.Ingested()
        store.start_run(label or f"pgsimhash ingest {' '.join(paths)}"[:_LABEL_MAX])
        verdicts = store.ingest_files(
            paths,
            stdin=stdin,
            skipped=skipped,
            on_skipped=_print_skipped if list_skipped else no_progress,
            on_read=done.add_bytes,
            jobs=options.choose_jobs(jobs, total),
            page_memory=None if page_memory is None else page_memory * 10**6,
            **settings,
        )
        written = verdicts
        if parquet is not None:
            from pgsimhash.batch.parquet import write_verdicts

            written = write_verdicts(parquet, verdicts)
        # If printing fails, the progress of the files is recorded before the store is closed.
        with closing(verdicts), closing(written):
            code = _print_verdicts(written, done, total, size, skipped)
    if skipped:
        kinds = (f"{kind} ({count:,})" for kind, count in skipped.items())
        hint = "; a file named .html is always read" if OTHER_FILES in skipped else ""
        show.message(f"Skipped: {', '.join(kinds)}{hint}.")
    sys.exit(code)


def _print_skipped(skipped: Skipped) -> None:
    show.json_line({"kind": "skipped", **skipped._asdict()})


@click.command()
@click.argument("file", type=options.INPUT_FILE)
@options.value("--url", "The URL of the page; by default the file's.")
@options.match
@options.with_store
def decide(store: pgsimhash.Store, file: str, url: str | None, **settings: Any) -> None:
    """Show what ingest would decide about a page.

    Stores nothing. FILE is an HTML file; - reads stdin and needs --url. Prints the verdict as a
    JSON line. Exits with 1 if the page is not worth keeping.
    """
    page_url = url or options.file_url(file)
    if page_url is None:
        raise click.UsageError("a page from stdin needs --url")
    verdict = store.decide(page_url, options.read_file(file), **settings)
    terminal.answer(verdict, lambda: people.decided(verdict))
    sys.exit(0 if verdict.keep else 1)


@click.command("should-fetch")
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@options.age(
    "--older-than",
    "Fetch a known page that was last seen longer ago, such as 30d, or always; by default the "
    "--refetch-after of its policy.",
)
@options.with_store
def should_fetch(
    store: pgsimhash.Store, urls: tuple[str, ...], older_than: timedelta | None
) -> None:
    """Show which pages to fetch.

    Those are unknown pages, and pages that were last seen too long ago. URL - reads URLs from
    stdin, one per line. Prints a JSON line with "fetch" for each, and with the "headers" of a
    conditional request. Exits with 1 if no page needs fetching, or a URL is invalid.
    """
    from pgsimhash.schemes.registry import reads_texts

    fetched = failed = 0
    for url in _lines_of_stdin_too(urls):
        try:
            checked = check_url(url, any_id=reads_texts(store.collection.scheme))
        except PageError as error:
            failed += 1
            show.message(str(error))
        else:
            headers = store.request_headers(checked, older_than=older_than)
            fetched += (fetch := headers is not None)
            more = {"headers": headers} if headers else {}
            terminal.record({"url": checked, "fetch": fetch, **more})
    sys.exit(0 if fetched and not failed else 1)


def _lines_of_stdin_too(urls: Iterable[str]) -> Iterator[str]:
    for url in urls:
        if url == "-":
            for line in map(bytes.strip, options.stdin_bytes()):
                # Bytes that are not UTF-8 become an invalid URL, as in an argument.
                if line:
                    yield line.decode("utf-8", "surrogateescape")
        else:
            yield url


def _print_verdicts(
    verdicts: Iterable[Verdict],
    done: people.Ingested,
    total: int | None,
    size: int | None,
    skipped: Counter[str],
) -> int:
    """Print a JSON line for each verdict, or for people the counts alone; return the exit code.

    The bar shows pages of ``total``, and bytes of archives of ``size`` if that is known instead.
    Files that are ``skipped`` count as done.
    """
    for_people = show.for_people()
    with show.progress_bar("ingest", "bytes" if size else "pages") as progress:
        for number, verdict in enumerate(verdicts, start=1):
            done.add(verdict)
            if not for_people:
                show.json_line(verdict.as_json())
            if size:
                progress(done.bytes_read, size)
            else:
                progress(number + skipped[FILES_BEFORE], total)
    known = skipped[FILES_BEFORE] + skipped[RECORDS_BEFORE] > 0
    if done.counts:
        done.show()
    elif not known:
        show.message("No page was found.")
    if for_people and done.counts:
        terminal.hint("what was found: pgsimhash analyse report --collection NAME")
    return 0 if (done.counts or known) and not done.counts["failed"] else 1


@click.command()
@click.argument("what", metavar="FILE|SIMHASH|URL")
@options.distance("the collection's")
@options.value(
    "--verify/--no-verify",
    "Whether the signatures of both pages must also agree, for a FILE or a URL.",
    default=True,
)
@options.value("--limit N", "Only the nearest N.", click.IntRange(min=1))
@options.with_store
def find(store: pgsimhash.Store, what: str, verify: bool, **limits: Any) -> None:
    """Find known pages near a page or a simhash.

    FILE is an HTML file; - reads one from stdin. A URL has :// and names a known page. SIMHASH is
    16 hex digits, 0x..., a decimal (a negative one after --) or base32. Prints a JSON line per
    page, nearest first. Exits with 1 if no page is near.
    """
    if options.is_url(what):
        matches = store.near_pages(what, verify=verify, **limits)
    else:
        simhash, signature = options.as_simhash(what), None
        if simhash is None:
            given = SourcePage(options.file_url(what) or "file:///", options.read_file(what))
            given = store._selected(given, NO_SELECTORS, store._rules())
            page = pgsimhash.fingerprint(
                given.html, given.url, scheme=store.collection.scheme,
                content=given.content, ignore=given.ignore,
            )  # fmt: skip
            simhash, signature = page.simhash, page.signature if verify else None
        matches = store.near_pages(simhash, signature=signature, **limits)
    distance = store.collection.checked_distance(limits["distance"])
    number = counted(len(matches), "page") if matches else "No page"
    terminal.rows(
        matches,
        people.near(distance, any_match=bool(matches)),
        title=f"{number} within {distance} bits of {terminal.short(what, 40)}",
    )
    sys.exit(0 if matches else 1)


@click.command("find-many")
@click.argument("file", type=options.INPUT_FILE)
@options.distance("the collection's")
@options.with_store
def find_many(store: pgsimhash.Store, file: str, distance: int | None) -> None:
    """Find known simhashes near many simhashes.

    FILE (- for stdin) has a simhash on each line, written as for find, or a JSON object with the
    string "simhash" and other keys that the matches repeat, such as "url". Prints a JSON line for
    each match, in the order of the lines, nearest first: "query" is the line's simhash, "simhash"
    the known one. Exits with 1 if a line is invalid.
    """
    from pgsimhash.store.batches import BATCH_SIMHASHES

    failed = False

    def queries(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
        nonlocal failed
        for number, line in enumerate(lines, start=1):
            try:
                if line.strip():
                    yield _query(line)
            # JSON with a number of thousands of digits raises ValueError.
            except (ArgumentError, ValueError, RecursionError) as error:
                failed = True
                show.message(f"line {number}: {error}")

    if file == "-":
        options.stdin_bytes()  # an error if stdin is closed
    with click.open_file(file, encoding="utf-8", errors="replace") as text:
        lines = queries(text)
        while batch := list(islice(lines, BATCH_SIMHASHES)):
            matches = store.find_many([int(query["query"], 16) for query in batch], distance)
            for number, simhash, bits in zip(*(column.tolist() for column in matches), strict=True):
                match = {"simhash": format_simhash(simhash), "distance": bits}
                show.json_line({**batch[number], **match})
    sys.exit(failed)


def _query(line: str) -> dict[str, Any]:
    """Return the simhash of a line as 16 hex digits, and the keys to repeat in its matches."""
    fields = json.loads(line) if line.lstrip().startswith("{") else {"simhash": line.strip()}
    value = fields.get("simhash")
    # JSON readers such as jq round integers of 64 bits.
    if not isinstance(value, str):
        raise invalid_argument('the object has no "simhash", as a string')
    return {**fields, "query": format_simhash(parse_simhash(value))}


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=options.INPUT_FILE)
@options.flag("--markdown", "Print the main content as Markdown instead.")
@options.scheme(DEFAULT_NAME)
def fingerprint(files: tuple[str, ...], markdown: bool, scheme: str | None) -> None:
    """Print the fingerprint of HTML files.

    Prints a JSON line each; - reads stdin. Exits with 1 if a file has no fingerprint.
    """
    failed = False
    for name in files:
        try:
            page = pgsimhash.fingerprint(
                options.read_file(name), options.file_url(name), scheme=scheme or DEFAULT_NAME
            )
        except PageError as error:
            failed = True
            show.message(f"{name}: {error}")
            continue
        if markdown:
            show.text(page.markdown)
            continue
        fields = dataclasses.asdict(page)
        del fields["markdown"]
        fields["signature"] = f"{page.signature:032x}"
        # JSON readers such as jq round integers of 64 bits.
        long = (field for field in ("simhash", *BITS_64) if fields[field] is not None)
        fields |= {field: format_simhash(fields[field]) for field in long}
        forms = {"bigint": str(to_bigint(page.simhash)), "base32": to_base32(page.simhash)}
        terminal.record({"file": name, **fields, **forms})
    sys.exit(failed)
