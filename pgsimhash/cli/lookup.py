"""Commands that look up simhashes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, TextIO

import click

from pgsimhash import schemes
from pgsimhash.cli.options import (
    LinesFile,
    as_simhash,
    check_files,
    collection_option,
    distance_option,
    dsn_option,
    file_url,
    is_url,
    read_file,
    scheme_option,
)
from pgsimhash.cli.printing import print_json, print_text, tell
from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.hashing.bits import (
    check_simhash,
    format_simhash,
    parse_simhash,
    to_base32,
    to_bigint,
)
from pgsimhash.pages.records import Match, NearPage
from pgsimhash.schemes import DEFAULT_NAME
from pgsimhash.store import connect


class Query(NamedTuple):
    """A simhash, and the keys to repeat in its matches."""

    simhash: int
    fields: dict[str, Any]


def _queries(lines: Iterable[str], report: Callable[[str], None]) -> Iterator[Query]:
    """Yield the simhash of each line that is not empty; report invalid lines."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _parse(line)
        # JSON with a number of thousands of digits raises ValueError.
        except (ArgumentError, ValueError, RecursionError) as error:
            report(f"line {number}: {error}")


def _parse(line: str) -> Query:
    fields = json.loads(line) if line.lstrip().startswith("{") else {"simhash": line.strip()}
    value = fields.get("simhash")
    if value is None:
        raise ArgumentError("invalid_argument", 'the object has no "simhash"')
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ArgumentError("invalid_argument", f"{value!r} is not a simhash")
    if isinstance(value, str) or value < 0:
        simhash = parse_simhash(str(value))
    else:
        simhash = check_simhash(value)
    return Query(simhash, {**fields, "simhash": format_simhash(simhash)})


def _fingerprint(name: str, scheme: str | None) -> schemes.Fingerprint:
    recipe = schemes.get_scheme(scheme or schemes.DEFAULT_SCHEME)
    return schemes.fingerprint(read_file(name), file_url(name), scheme=recipe)


@click.command()
@click.argument("what", metavar="FILE|SIMHASH|URL")
@distance_option("the collection's")
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Whether the signatures of both pages must also agree, for a FILE or a URL.",
)
@click.option(
    "--pages",
    is_flag=True,
    help="Print a line per page instead of per simhash, for a FILE or SIMHASH.",
)
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Only the nearest N.")
@collection_option
@dsn_option
@click.pass_context
def find(
    context: click.Context,
    what: str,
    distance: int | None,
    verify: bool,
    pages: bool,
    limit: int | None,
    collection: str,
    dsn: str | None,
) -> None:
    """Find known pages near a page or a simhash.

    FILE is an HTML file; - reads one from stdin. A URL has :// and names a known page. SIMHASH is
    16 hex digits, 0x..., a decimal (signed or not) or base32.

    Prints JSON lines, nearest first: for a FILE or SIMHASH one per simhash, with its first page, or
    with --pages one per page, current versions only; for a URL one per other page. Exits with 1 if
    there is no match, or the URL is unknown.
    """
    url = is_url(what)
    if not url:
        as_simhash(what)  # invalid arguments need no database
    matches: Sequence[Match | NearPage]
    with connect(dsn, collection=collection, create=False) as store:
        if url:
            matches = store.near_pages(what, distance, limit=limit, verify=verify)
        else:
            simhash, signature = as_simhash(what), None
            if simhash is None:
                page = _fingerprint(what, store.scheme)
                simhash, signature = page.simhash, page.signature if verify else None
            look = store.near_pages if pages else store.find
            matches = look(simhash, distance, limit=limit, signature=signature)
    for match in matches:
        print_json(match.as_json())
    context.exit(0 if matches else 1)


@click.command("find-many")
@click.argument("file", type=LinesFile("r", encoding="utf-8", errors="replace"))
@distance_option("the collection's")
@collection_option
@dsn_option
@click.pass_context
def find_many(
    context: click.Context, file: TextIO, distance: int | None, collection: str, dsn: str | None
) -> None:
    """Find known simhashes near many simhashes, and store nothing.

    FILE has a simhash on each line (16 hex digits, 0x..., a decimal or base32), or a JSON object
    with "simhash" and other keys that the matches repeat, such as "url"; - reads stdin. Prints a
    JSON line for each match, in the order of the lines, nearest first. An invalid line is reported
    on stderr, and the exit code is 1.
    """
    import numpy as np

    from pgsimhash.store.batches import BATCH_SIMHASHES

    failed = False

    def report(message: str) -> None:
        nonlocal failed
        failed = True
        tell(message)

    with connect(dsn, collection=collection, create=False) as store:
        lines = iter(_queries(file, report))
        while batch := list(islice(lines, BATCH_SIMHASHES)):
            array = np.array([query.simhash for query in batch], dtype=np.uint64)
            matches = store.find_many(array, distance)
            for number, simhash, bits in zip(
                matches.queries.tolist(),
                matches.simhashes.tolist(),
                matches.distances.tolist(),
                strict=True,
            ):
                match = {"match": format_simhash(simhash), "distance": bits}
                print_json({**batch[number].fields, **match})
    context.exit(1 if failed else 0)


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--markdown", is_flag=True, help="Print the main content as Markdown instead.")
@scheme_option(DEFAULT_NAME)
@click.pass_context
def fingerprint(
    context: click.Context,
    files: tuple[str, ...],
    markdown: bool,
    scheme: str | None,
) -> None:
    """Print the fingerprint of HTML files (- for stdin), a JSON line each.

    A file without a fingerprint is reported on stderr, and the exit code is 1.
    """
    check_files(files)
    failed = False
    for name in files:
        try:
            page = _fingerprint(name, scheme)
        except PageError as error:
            failed = True
            tell(f"{name}: {error}")
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
    context.exit(1 if failed else 0)
