"""Print answers for people on a terminal: the answer in bold, at most 20 lines, then what next.

A sign, a word and a colour say the same thing, so nothing is lost without colours. The colours are
those that are legible on light and dark: green, magenta, red and blue.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pgsimhash.analysis.wording import percent
from pgsimhash.cli import show

if TYPE_CHECKING:
    from rich.table import Table

    from pgsimhash.analysis.comparison import BlockPair, Comparison

_WIDTH_MAX: Final = 100
_CHANGES: Final = 3
_CONTEXT: Final = 3  # equal words on each side of changed ones


def comparison(found: Comparison, output: Path | None) -> None:
    """Print whether two pages are the same, their skyline, and what differs most."""
    from rich.text import Text

    sign, style = ("≈", "magenta") if found.matches else ("≠", "blue")
    _say((f"{sign} {found.headline}", f"bold {style}"), f", the limit is {found.max_distance}")
    _say(found.summary)
    if found.blocks:
        _say()
        _print_skyline(found)
    largest = [pair for pair in found.differing if pair.difference >= 0.001][:_CHANGES]
    if largest:
        _say(("\nwhat differs", "bold"), (", and its share of the vote", "dim"))
        table = _grid("right", "left")
        table.columns[1].no_wrap = False
        for pair in largest:
            line = Text()
            for text, kind in changes(pair):
                line.append(f"{text} ", {"gone": "magenta strike", "new": "bold"}.get(kind, ""))
            line.truncate(2 * (_width() - 12), overflow="ellipsis")
            table.add_row(percent(pair.difference), line)
        show.console(stdout=True).print(table)
    if not found.matches or found.reason == "same_simhash":
        _say(("\n" + found.sentence, ""))
    if output is None:
        hint("as a page, block by block: -o why.html · for programs: --json")
    else:
        hint(f"written to {output}")


def changes(pair: BlockPair) -> list[tuple[str, str]]:
    """Return the runs of a pair: texts that are ``gone``, ``new`` or ``same``, in order."""
    if pair.kind != "changed":
        return [(pair.blocks[0].text, "gone" if pair.b is None else "new")]
    runs: list[tuple[str, str]] = []
    right = list(pair.right)
    for piece in pair.left:
        if piece.changed:
            runs.append((piece.text.strip(), "gone"))
        while right and right[0].changed:
            runs.append((right.pop(0).text.strip(), "new"))
        if not piece.changed:
            runs.append((_shortened(piece.text, first=not runs), "same"))
            del right[:1]
    runs += [(piece.text.strip(), "new") for piece in right]
    return [run for run in runs if run[0]]


def _shortened(text: str, *, first: bool) -> str:
    words = text.split()
    if len(words) <= 2 * _CONTEXT + 1:
        return " ".join(words)
    before, behind = words[:_CONTEXT], words[-_CONTEXT:]
    return " ".join(["…", *behind] if first else [*before, "…", *behind])


def _print_skyline(found: Comparison) -> None:
    from rich.text import Text

    from pgsimhash.analysis.skyline import drawn_in_text

    width = min(_width() - 4, _WIDTH_MAX)
    console = show.console(stdout=True)
    lines = list(drawn_in_text(found.blocks, width))
    for name, cells in zip((" ", "A", "B", " "), lines, strict=True):
        line = Text.assemble((f"{name} ", "dim"))
        for is_alone, run in groupby(cells, key=lambda cell: cell[1]):
            line.append("".join(text for text, _ in run), "magenta" if is_alone else "blue")
        console.print(line)
    if console.no_color or console.color_system is None:
        marks = zip(lines[1], lines[2], strict=True)
        _say("  " + "".join("^" if a[1] or b[1] else " " for a, b in marks).rstrip())
        key: tuple[str | tuple[str, str], ...] = ("  ^: only on one  ",)
    else:
        key = ("  ", ("blue", "blue"), ": on both  ", ("magenta", "magenta"), ": only on one  ")
    _say(*key, ("width: words, height: how loud they vote", "dim"))


def hint(text: str) -> None:
    """Print what to do next, as the last line."""
    from rich.text import Text

    show.console(stdout=True).print(Text(f"\n{text}", "dim"), no_wrap=True, overflow="ellipsis")


def _say(*parts: str | tuple[str, str]) -> None:
    from rich.text import Text

    show.console(stdout=True).print(Text.assemble(*parts))


def _grid(*sides: Literal["left", "right"]) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for side in sides:
        table.add_column(justify=side, no_wrap=True, overflow="ellipsis")
    return table


def _width() -> int:
    return show.console(stdout=True).width
