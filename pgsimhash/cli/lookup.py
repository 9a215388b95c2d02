"""Commands that answer about single pages and write nothing."""

from __future__ import annotations

import dataclasses

import click

from pgsimhash import schemes
from pgsimhash.bits import band, format_simhash, hamming_distance, similarity, to_bigint
from pgsimhash.cli.options import (
    as_simhash,
    collection_option,
    distance_option,
    dsn_option,
    file_url,
    print_json,
    read_file,
)
from pgsimhash.errors import PageError
from pgsimhash.store import connect


def _simhash_of(word: str) -> int:
    simhash = as_simhash(word)
    if simhash is not None:
        return simhash
    return schemes.fingerprint(read_file(word), file_url(word)).simhash


@click.command()
@click.argument("what", metavar="FILE|SIMHASH")
@distance_option(3, "3")
@collection_option
@dsn_option
@click.pass_context
def find(
    context: click.Context, what: str, distance: int, collection: str, dsn: str | None
) -> None:
    """Find known pages near a page or a simhash.

    FILE is an HTML file, - reads one from stdin; SIMHASH is 16 hex digits, 0x... or a decimal
    (signed or not). Prints a JSON line for each match, nearest first; exits with 1 if there is
    none.
    """
    simhash = _simhash_of(what)
    with connect(dsn, collection=collection, create=False) as store:
        matches = store.find(simhash, distance)
    for match in matches:
        print_json(match.as_json())
    context.exit(0 if matches else 1)


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--markdown", is_flag=True, help="Print the main content as Markdown instead.")
@click.pass_context
def fingerprint(context: click.Context, files: tuple[str, ...], markdown: bool) -> None:
    """Print the fingerprint of HTML files (- for stdin), a JSON line each.

    A file that has none is reported on stderr, and the exit code is 1.
    """
    failed = False
    for name in files:
        try:
            made = schemes.fingerprint(read_file(name), file_url(name))
        except PageError as error:
            failed = True
            click.echo(f"{name}: {error}", err=True)
            continue
        if markdown:
            click.echo(made.markdown)
            continue
        fields = dataclasses.asdict(made)
        del fields["markdown"]
        fields["simhash"] = format_simhash(made.simhash)
        if made.structure is not None:
            fields["structure"] = format_simhash(made.structure)
        print_json({"file": name, **fields, "bigint": to_bigint(made.simhash)})
    context.exit(1 if failed else 0)


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.pass_context
def compare(context: click.Context, a: str, b: str) -> None:
    """Compare two pages or simhashes; exits with 1 if they are different.

    Prints their simhashes, distance, similarity and band: identical (0-3 bits), near (4-8) or
    different (9 and more).
    """
    left, right = _simhash_of(a), _simhash_of(b)
    distance = hamming_distance(left, right)
    print_json(
        {
            "a": format_simhash(left),
            "b": format_simhash(right),
            "distance": distance,
            "similarity": similarity(left, right),
            "band": band(distance),
        }
    )
    context.exit(1 if band(distance) == "different" else 0)
