"""The command that explains why two pages match or do not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgsimhash import analysis, html_reports, schemes
from pgsimhash.cli import drawn
from pgsimhash.cli.options import (
    dsn_option,
    file_url,
    is_url,
    output_option,
    read_file,
    scheme_option,
)
from pgsimhash.cli.printing import people, print_json, printable, write_text
from pgsimhash.cli.work import summary_option
from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.bits import parse_simhash
from pgsimhash.schemes import DEFAULT_NAME
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.store import connect

if TYPE_CHECKING:
    from pgsimhash.analysis.differences import Difference, Piece
    from pgsimhash.analysis.explanation import FeatureList

_ROWS = 60


@click.command("explain")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--distance",
    type=click.IntRange(0, DISTANCE_MAX),
    help="The largest number of differing bits; by default the collection's, else the scheme's.",
)
@output_option
@summary_option
@scheme_option(f"the collection's, else {DEFAULT_NAME}")
@click.option(
    "--collection",
    help="The collection of the pages and the scheme.  [default: default, for URLs]",
)
@dsn_option
def explain_pages(
    a: str,
    b: str,
    distance: int | None,
    output: Path | None,
    summary: bool | None,
    scheme: str | None,
    collection: str | None,
    dsn: str | None,
) -> None:
    """Explain why two pages match or do not, at which distance, and what differs.

    A and B are HTML files (- for stdin), URLs of pages in the collection, or simhashes. Prints one
    JSON line. Exits with 1 if a page is unknown or has no fingerprint. Without a URL and
    --collection, it needs no database.

    Features and texts are shown if both pages are files, or are stored with their Markdown.
    Fingerprints of Markdown can differ from the original ones: bits_off is the number of bits.
    """
    if a == b == "-":
        raise click.UsageError("stdin can be read only once; give one of the pages as a file")
    known = [word for word in (a, b) if is_url(word)]
    if known or collection is not None:
        with connect(dsn, collection=collection or "default", create=False, scheme=scheme) as store:
            recipe = schemes.get_scheme(store.scheme)
            sides = [word if word in known else _side(word, recipe) for word in (a, b)]
            explanation = analysis.explain(store, *sides, distance=distance)
    else:
        recipe = schemes.get_scheme(scheme or schemes.DEFAULT_SCHEME)
        explanation = analysis.explain_sides(
            _side(a, recipe), _side(b, recipe), scheme=recipe, distance=distance
        )
    print_json(explanation.as_json())
    console = people()
    if console.is_terminal if summary is None else summary:
        print_explanation(console, explanation)
    if output is not None:
        write_text(output, html_reports.explanation_page(explanation))


def _side(word: str, scheme: schemes.Scheme) -> analysis.Side:
    if word != "-" and not Path(word).is_file():
        try:
            return analysis.Side(parse_simhash(word))
        except ArgumentError as error:
            raise ArgumentError(
                "invalid_argument",
                f"{word!r} is neither a file, nor a URL, nor a simhash (16 hex digits, 0x..., a "
                "decimal or base32)",
            ) from error
    return analysis.read_side(read_file(word), scheme, file_url(word))


def print_explanation(console: drawn.Console, explanation: analysis.Explanation) -> None:
    """Print an explanation for people."""
    for name, side in (("A", explanation.a), ("B", explanation.b)):
        labels = [text for text in (side.title, side.url) if text] or ["a simhash without a page"]
        console.print(f"{name}  {' | '.join(labels)}")
    for own, other in (("a", "b"), ("b", "a")):
        line = drawn.Text("   ")
        for block in explanation.blocks:
            for one, beside in zip(getattr(block, own), getattr(block, other), strict=True):
                line.append(one, style="" if one == beside else "bold reverse")
            line.append(" ")
        console.print(line, soft_wrap=True)
    console.print(explanation.sentence)
    table = drawn.Table("permutation", "bits that differ", "finds the pair")
    for view in explanation.permutations:
        sees = "at no distance" if view.sees_from is None else f"from distance {view.sees_from}"
        table.add_row(view.column, str(view.differing), sees)
    console.print(table)
    for name, side in (("A", explanation.a), ("B", explanation.b)):
        if side.unseen is not None:
            console.print(f"in low-weight blocks of {name}: {side.unseen:.1%} of the words")
            for beginning in side.unseen_blocks:
                console.print(f"   {beginning}")
    if explanation.features is not None:
        _print_features(console, "A", explanation.features.only_a)
        _print_features(console, "B", explanation.features.only_b)
    if explanation.difference is not None:
        _print_difference(console, explanation.difference)


def _print_features(console: drawn.Console, name: str, only: FeatureList) -> None:
    off = ""
    if only.origin == "markdown" and only.bits_off != 0:
        far = "too short" if only.bits_off is None else f"{only.bits_off} bits off"
        off = f" (by its Markdown, which is {far})"
    shown = ", ".join(f"{feature} {weight}" for feature, weight in only.shown)
    console.print(f"only in {name}{off}: {only.count:,} features: {shown}")


def _print_difference(console: drawn.Console, difference: Difference) -> None:
    table = drawn.Table(show_lines=True)
    table.add_column("A", overflow="fold")
    table.add_column("B", overflow="fold")
    for row in difference.rows[:_ROWS]:
        if row.kind == "skipped":
            skipped = f"({row.skipped:,} equal)"
            table.add_row(skipped, skipped, style="dim")
        else:
            table.add_row(_pieces(row.left, "red"), _pieces(row.right, "green"))
    console.print(table)
    if len(difference.rows) > _ROWS or difference.cut:
        console.print("The HTML page of -o shows more.")


def _pieces(pieces: tuple[Piece, ...], style: str) -> drawn.Text:
    line = drawn.Text()
    for piece in pieces:
        line.append(printable(piece.text), style=f"bold {style}" if piece.changed else "")
    return line
