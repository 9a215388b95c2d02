"""Print JSON lines, or for people on a terminal rows, values and hints.

The other module for people, :mod:`pgsimhash.cli.people`, has an answer for each command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from pgsimhash.analysis.wording import counted
from pgsimhash.cli import show

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

ROWS: Final = 15
"""How many rows of a list are shown."""


def lines(records: Iterable[dict[str, Any]], view: Callable[[], None]) -> None:
    """Print the view for people, or JSON lines."""
    if show.for_people():
        view()
    else:
        show.rows(records)


def table(
    records: Iterable[dict[str, Any]], one: str, columns: Sequence[str] = (), most: int = 40
) -> int:
    """Print JSON objects: the first of them as rows for people, or as JSON lines; return how many.

    ``columns`` are those for people, by default the first six with values, of ``most`` characters.
    """
    if not show.for_people():
        count = 0
        for row in records:
            show.json_line(row)
            count += 1
        return count
    following = iter(records)
    first = list(islice(following, ROWS))
    count = len(first) + sum(1 for _ in following)
    say((counted(count, one), "bold"))
    if first:
        filled = [name for name in first[0] if any(row.get(name) is not None for row in first)]
        names = columns or filled[:6]
        sides: list[Side] = ["left"] * len(names)
        grid = grid_of(*sides)
        grid.add_row(*dim(*names))
        for row in first:
            grid.add_row(*(short(plain(row.get(name)), most) for name in names))
        show.console(stdout=True).print(grid)
        say_rest(count - ROWS)
    hint("all values: --json")
    return count


def record(values: dict[str, Any]) -> None:
    """Print a JSON object: a line for each value that is not null, or a JSON line."""
    if show.for_people():
        kept = {name: plain(value) for name, value in values.items() if value is not None}
        print_values({name.replace("_", " "): value for name, value in kept.items()})
    else:
        show.json_line(values)


def short(text: str, most: int) -> str:
    """Return a URL or text without what one misses least: the scheme, and the middle."""
    text = text.removeprefix("https://").removeprefix("http://").removeprefix("file://")
    most = max(most, 12)
    return text if len(text) <= most else f"{text[: most // 3]}…{text[-(most - most // 3 - 1) :]}"


def plain(value: object) -> str:
    """Return a value of JSON as people write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | dict):
        return f"{len(value):,} in --json"
    return "-" if value is None else str(value)


def print_values(values: Mapping[str, str]) -> None:
    """Print names and values, a line each."""
    from rich.text import Text

    grid = grid_of("left", "left")
    grid.columns[1].no_wrap = False
    for name, value in values.items():
        grid.add_row(Text(name, "dim"), value)
    show.console(stdout=True).print(grid)


def say_rest(count: int, one: str = "more") -> None:
    """Print how many rows are not shown, if any."""
    if count > 0:
        say((f"… and {count:,} {one}" if one == "more" else f"… {counted(count, one)}", "dim"))


def dim(*names: str) -> list[Text]:
    """Return texts for the head of a table."""
    from rich.text import Text

    return [Text(name, "dim") for name in names]


def hint(text: str) -> None:
    """Print what to do next, as the last line."""
    from rich.text import Text

    show.console(stdout=True).print(Text(f"\n{text}", "dim"), no_wrap=True, overflow="ellipsis")


def say(*parts: str | tuple[str, str]) -> None:
    """Print texts, or texts with their styles, as one line."""
    from rich.text import Text

    show.console(stdout=True).print(Text.assemble(*parts))


Side = Literal["left", "right"]


def grid_of(*sides: Side) -> Table:
    """Return a table without lines, and the sides of its columns."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for side in sides:
        table.add_column(justify=side, no_wrap=True, overflow="ellipsis")
    return table


def line_width() -> int:
    """Return how many characters fit on a line."""
    return show.console(stdout=True).width


def is_plain() -> bool:
    """Return whether the terminal shows no colours."""
    console = show.console(stdout=True)
    return console.no_color or console.color_system is None
