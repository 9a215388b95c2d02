"""Commands that look up simhashes."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import click

import pgsimhash
from pgsimhash import schemes
from pgsimhash.cli import options
from pgsimhash.cli.printing import print_json, print_message, print_text
from pgsimhash.errors import ArgumentError, PageError, invalid_argument
from pgsimhash.hashing.bits import format_simhash, parse_simhash, to_base32, to_bigint
from pgsimhash.pages.records import Match, NearPage
from pgsimhash.schemes import DEFAULT_NAME


def _check_query(_: click.Context, option: click.Parameter, word: str) -> str:
    """Refuse an invalid simhash before the database is opened."""
    if not options.is_url(word):
        options.as_simhash(word)
    return word


@click.command()
@click.argument("what", metavar="FILE|SIMHASH|URL", callback=_check_query)
@options.distance("the collection's")
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Whether the signatures of both pages must also agree, for a FILE or a URL.",
)
@options.flag("--pages", "Print a line per page instead of per simhash, for a FILE or SIMHASH.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Only the nearest N.")
@options.with_store
def find(
    store: pgsimhash.Store,
    what: str,
    distance: int | None,
    verify: bool,
    pages: bool,
    limit: int | None,
) -> None:
    """Find known pages near a page or a simhash.

    FILE is an HTML file; - reads one from stdin. A URL has :// and names a known page. SIMHASH is
    16 hex digits, 0x..., a decimal (signed or not) or base32.

    Prints JSON lines, nearest first: for a FILE or SIMHASH one per simhash, with its first page, or
    with --pages one per page, current versions only; for a URL one per other page. Exits with 1 if
    there is no match, or the URL is unknown.
    """
    matches: Sequence[Match | NearPage]
    if options.is_url(what):
        matches = store.near_pages(what, distance, limit=limit, verify=verify)
    else:
        simhash, signature = options.as_simhash(what), None
        if simhash is None:
            page = _fingerprint(what, store.scheme)
            simhash, signature = page.simhash, page.signature if verify else None
        look_up = store.near_pages if pages else store.find
        matches = look_up(simhash, distance, limit=limit, signature=signature)
    for match in matches:
        print_json(match.as_json())
    sys.exit(0 if matches else 1)


@click.command("find-many")
@click.argument("file", type=options.INPUT_FILE)
@options.distance("the collection's")
@options.with_store
def find_many(store: pgsimhash.Store, file: str, distance: int | None) -> None:
    """Find known simhashes near many simhashes.

    Stores nothing. FILE has a simhash on each line (16 hex digits, 0x..., a decimal or base32), or
    a JSON object with "simhash" and other keys that the matches repeat, such as "url"; - reads
    stdin. Prints a JSON line for each match, in the order of the lines, nearest first. An invalid
    line is reported on stderr, and the exit code is 1.
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
                print_message(f"line {number}: {error}")

    if file == "-":
        options.stdin_bytes()  # an error if stdin is closed
    with click.open_file(file, encoding="utf-8", errors="replace") as text:
        lines = queries(text)
        while batch := list(islice(lines, BATCH_SIMHASHES)):
            matches = store.find_many([int(query["simhash"], 16) for query in batch], distance)
            for number, simhash, bits in zip(*(each.tolist() for each in matches), strict=True):
                match = {"match": format_simhash(simhash), "distance": bits}
                print_json({**batch[number], **match})
    sys.exit(failed)


def _query(line: str) -> dict[str, Any]:
    """Return the simhash of a line as 16 hex digits, and the keys to repeat in its matches."""
    fields = json.loads(line) if line.lstrip().startswith("{") else {"simhash": line.strip()}
    value = fields.get("simhash")
    if value is None:
        raise invalid_argument('the object has no "simhash"')
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise invalid_argument(f"{value!r} is not a simhash")
    if isinstance(value, str) or value < 0:
        value = parse_simhash(str(value))
    return {**fields, "simhash": format_simhash(value)}


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=options.INPUT_FILE)
@options.flag("--markdown", "Print the main content as Markdown instead.")
@options.scheme(DEFAULT_NAME)
def fingerprint(files: tuple[str, ...], markdown: bool, scheme: str | None) -> None:
    """Print the fingerprint of HTML files.

    Prints a JSON line each; - reads stdin. A file without a fingerprint is reported on stderr, and
    the exit code is 1.
    """
    failed = False
    for name in files:
        try:
            page = _fingerprint(name, scheme)
        except PageError as error:
            failed = True
            print_message(f"{name}: {error}")
            continue
        if markdown:
            print_text(page.markdown)
            continue
        fields = dataclasses.asdict(page)
        del fields["markdown"]
        fields["simhash"] = format_simhash(page.simhash)
        fields["signature"] = f"{page.signature:032x}"
        # JSON readers such as jq round integers of 64 bits.
        fields["text_digest"] = f"{page.text_digest:016x}"
        if page.structure is not None:
            fields["structure"] = format_simhash(page.structure)
        forms = {"bigint": str(to_bigint(page.simhash)), "base32": to_base32(page.simhash)}
        print_json({"file": name, **fields, **forms})
    sys.exit(failed)


def _fingerprint(name: str, scheme: str | None) -> schemes.Fingerprint:
    recipe = schemes.get_scheme(scheme or schemes.DEFAULT_SCHEME)
    return schemes.fingerprint(options.read_file(name), options.file_url(name), scheme=recipe)
