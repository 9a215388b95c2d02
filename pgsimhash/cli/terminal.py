"""Print JSON lines, or for people on a terminal rows, values and hints.

There, the answer comes first, in bold; then at most 20 lines, and what to do next. A sign, a word
and a colour say the same thing, so nothing is lost without colours. The colours are those that are
legible on light and dark: green, magenta, red and blue.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import click

from pgsimhash.analysis.wording import byte_size, counted, percent, without_middle
from pgsimhash.cli import show
from pgsimhash.cli.options import DEFAULT_COLLECTION

if TYPE_CHECKING:
    from rich.text import Text

ROWS: Final = 15
"""How many rows of a list are shown."""

SIGNS: Final = {
    "new": ("+", "green"),
    "updated": ("~", "green"),
    "copies": ("=", "magenta"),
    "duplicate": ("=", "magenta"),
    "near": ("≈", "magenta"),
    "unchanged": ("·", "dim"),
    "gone": ("o", "dim"),
    "unknown": ("?", "dim"),
    "too_short": ("-", "dim"),
    "failed": ("!", "red"),
}
"""The sign and the colour of each verdict."""

Row = dict[str, Any]


class View(NamedTuple):
    """What a terminal shows of records: their noun, columns, and what to do next.

    Columns are names of values, by default of the first six that are not null, or by their heads
    names and what makes a cell of a record. Of more records than fit, the largest by ``size`` are
    shown, else the first.
    """

    one: str
    columns: str | Mapping[str, str | Callable[[Row], Any]] = ""
    hint: str = "all values: --json"
    more: str | None = None
    size: Callable[[Row], int] = lambda _: 0


def _parts(width: int, **counts: str) -> Callable[[Row], Text]:
    return lambda row: bar({kind: row[name] for kind, name in counts.items()}, width)


def _copies(row: Row) -> Text:
    others = row["pages"] - row["duplicates"]
    share = percent(row["duplicates"] / row["pages"] if row["pages"] else 0.0)
    return bar({"copies": row["duplicates"], "unchanged": others}, 8).append(f" {share}")


def _time(name: str) -> Callable[[Row], str]:
    return lambda row: "never" if row[name] is None else row[name][:16].replace("T", " ")


def _settings(row: Row) -> str:
    known = ((name.replace("_", " "), value) for name, value in row.items() if value is not None)
    return ", ".join(f"{name} {plain(value)}" for name, value in known if name != "pattern")


COLLECTIONS: Final = View("collection", "name scheme layout default_distance keep_markdown")
STATUS: Final = View(
    "collection",
    {
        **{"collection": "name", "pages": "urls", "versions": "pages", "copies": _copies},
        "their HTML": lambda row: byte_size(row["duplicate_bytes"]),
        "last write": _time("last_write"),
    },
    "more: pgsimhash analyse report --collection NAME",
)
RUNS: Final = View(
    "run",
    {
        **{"run": "run_id", "began": _time("started_at"), "pages": "pages"},
        "": _parts(18, new="new", updated="updated", copies="duplicates", unchanged="unchanged"),
        **{"new": "new", "upd.": "updated", "copies": "duplicates", "same": "unchanged"},
    },
    "take back the last one: pgsimhash run undo --collection NAME",
)
POLICIES: Final = View(
    "policy",
    {"pattern": "pattern", "settings": _settings},
    "ages are in seconds · what counts for a page: pgsimhash policy list URL",
    "policies",
)
MARKS: Final = View("mark", {"a": "a", "b": "b", "same": "same", "marked": _time("marked_at")})
PAIRS: Final = View("pair", "distance a b")
CLUSTERS: Final = View(
    "cluster",
    {"pages": lambda row: len(row["pages"]), "canonical": "canonical"},
    size=lambda row: len(row["pages"]),
)
PARAMETERS: Final = View("parameter", "host name verdict values compared exceptions")
PARTS: Final = View("part", "host selector examined pages same words votes")
VIOLATIONS: Final = View(
    "violation",
    {"reason": "reason", "of": lambda row: row["object"] or row["url"], "repair": "repair"},
)
EFFECTS: Final = View("change", "effect title other_title distance")
CURVE: Final = View(
    "distance",
    {
        **{"distance": "distance", "recall": "recall", "precision": "precision"},
        **{"found": "found", "false": "false_matches"},
        "unverified": lambda row: row["unverified"]["found"],
        "false, too": lambda row: row["unverified"]["false_matches"],
        "": lambda row: "recommended" if row["recommended"] else "",
    },
)


def rows(
    values: Iterable[Any], view: View, *, title: str = "", csv: Sequence[str] | None = None
) -> None:
    """Print values of JSON: the first as rows for people, or JSON lines, or with ``csv`` a table.

    ``title`` comes before the rows instead of their number.
    """
    records = (value if isinstance(value, dict) else value.as_json() for value in values)
    if csv is not None or not show.for_people():
        show.rows(records, csv or ())
        return
    numbers = itertools.count()
    numbered = zip(records, numbers, strict=False)
    first = nlargest(ROWS, (record for record, _ in numbered), key=view.size)
    count = next(numbers)
    say((title or counted(count, view.one, view.more), "bold"))
    if first:
        columns = view.columns
        if isinstance(columns, str):
            filled = [name for name in first[0] if any(row.get(name) is not None for row in first)]
            columns = {name: name for name in columns.split() or filled[:6]}
        cells = [
            [row.get(each) if isinstance(each, str) else each(row) for each in columns.values()]
            for row in first
        ]
        print_grid(cells, *columns)
        say_rest(count - ROWS)
    hint(view.hint)


def record(values: Row) -> None:
    """Print a JSON object: a line for each value that is not null, or a JSON line."""
    if show.for_people():
        print_values({name: value for name, value in values.items() if value is not None})
    else:
        show.json_line(values)


def answer(value: Any, view: Callable[[], None]) -> None:
    """Print the view for people, or the value as a JSON line."""
    if show.for_people():
        view()
    else:
        show.json_line(value.as_json())


def short(text: str, size: int) -> str:
    """Return a URL or text without what one misses least: the scheme, and the middle."""
    text = text.removeprefix("https://").removeprefix("file://")
    size = max(size, 12)
    return without_middle(text, size // 3, size - size // 3 - 1)


def plain(value: object) -> str:
    """Return a value of JSON as people write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.{0 if value.is_integer() else 4}f}"
    if isinstance(value, list | dict):
        return f"{len(value):,} in --json"
    return "-" if value in (None, "") else str(value)


def print_grid(cells: Iterable[Iterable[Any]], *heads: str, wrap: bool = False) -> None:
    """Print cells below their heads; numbers are on the right, long texts shortened or wrapped."""
    from rich.table import Table
    from rich.text import Text

    columns = list(zip(*cells, strict=True))
    texts = [
        [cell if isinstance(cell, Text) else Text(plain(cell)) for cell in column]
        for column in columns
    ]
    named = zip(heads or [""] * len(texts), texts, strict=True)
    lengths = [max(len(head), *map(len, column)) for head, column in named]
    grid = Table.grid(padding=(0, 2))
    room = line_width() - 2 * len(columns)
    # What short columns leave is for the others.
    for rank, at in enumerate(sorted(range(len(columns)), key=lengths.__getitem__)):
        width = min(lengths[at], room // (len(columns) - rank))
        room -= width
        for row, cell in enumerate(columns[at]):
            if isinstance(cell, str) and not wrap:
                texts[at][row] = Text(short(texts[at][row].plain, width))
    for column in columns:
        is_number = all(isinstance(cell, int | float | None) for cell in column)
        side: Literal["left", "right"] = "right" if is_number else "left"
        grid.add_column(justify=side, no_wrap=not wrap, overflow="ellipsis")
    if any(heads):
        grid.add_row(*(Text(head, "dim") for head in heads))
    for cells_of_row in zip(*texts, strict=True):
        grid.add_row(*cells_of_row)
    show.console(stdout=True).print(grid)


def print_values(values: Mapping[str, Any]) -> None:
    """Print names and values, a line each."""
    names = (assembled((name.replace("_", " "), "dim")) for name in values)
    texts = map(plain, values.values())
    print_grid(zip(names, texts, strict=True), wrap=True)


def say_rest(count: int, one: str = "more") -> None:
    """Print how many rows are not shown, if any."""
    if count > 0:
        say((f"… and {count:,} {one}" if one == "more" else f"… {counted(count, one)}", "dim"))


def hint(text: str, written: Path | None = None) -> None:
    """Print what to do next, or which file was written; NAME is the collection of the command."""
    if written is not None:
        text = f"written to {short(str(written), line_width() - 11)}"
    if given := click.get_current_context().params.get("collection"):
        option = "" if given == DEFAULT_COLLECTION else f" --collection {shlex.quote(given)}"
        text = text.replace(" --collection NAME", option)
    line = assembled((f"\n{text}", "dim"))
    show.console(stdout=True).print(line, no_wrap=True, overflow="ellipsis")


def assembled(*parts: str | tuple[str, str]) -> Text:
    """Return texts, or texts with their styles, as one."""
    from rich.text import Text

    return Text.assemble(*parts)


def say(*parts: str | tuple[str, str]) -> None:
    """Print texts, or texts with their styles, as one line."""
    show.console(stdout=True).print(assembled(*parts))


def bar(parts: Mapping[str, int], width: int) -> Text:
    """Return a bar of counts by verdict; each above zero has at least a character."""
    whole = sum(parts.values())
    if not whole:
        return assembled(("─" * width, "dim"))
    cells = {name: max(round(count / whole * width), count > 0) for name, count in parts.items()}
    largest = max(cells, key=cells.__getitem__)
    cells[largest] -= sum(cells.values()) - width
    styles = ((SIGNS[name][1], cell) for name, cell in cells.items())
    return assembled(*(("─" * n if style == "dim" else "█" * n, style) for style, n in styles))


def line_width() -> int:
    """Return how many characters fit on a line."""
    return show.console(stdout=True).width


def is_plain() -> bool:
    """Return whether the terminal shows no colours."""
    console = show.console(stdout=True)
    return console.no_color or console.color_system is None
