"""Commands that compare layouts, and that create a collection."""

from __future__ import annotations

import click

from pgsimhash import schemes
from pgsimhash.cli import database, drawn
from pgsimhash.cli.collections import collection_fields
from pgsimhash.cli.options import LayoutName, dsn_option, scheme_option
from pgsimhash.cli.printing import people, print_json, tell
from pgsimhash.hashing.bits import NEAR_MAX
from pgsimhash.schemes.names import DEFAULT_NAME
from pgsimhash.search import layout_costs as planner
from pgsimhash.search.layout import DISTANCE_MAX, get_layout

_ROWS_MAX = 1e12


class _Rows(click.ParamType[int]):
    name = "rows"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            number = float(str(value).replace("_", "").replace(",", ""))
        except ValueError:
            self.fail(f"{value!r} is not a number such as 50000000 or 8e9", param, ctx)
        if not 1 <= number <= _ROWS_MAX:
            self.fail(f"{value} is not from 1 to {_ROWS_MAX:.0e}", param, ctx)
        return int(number)


layout_option = click.option("--layout", type=LayoutName(), help="The layout of its simhashes.")


@click.command()
@click.option(
    "--rows",
    type=_Rows(),
    show_default="--pages, as if all were different",
    help="Distinct simhashes, such as 5e7.",
)
@click.option(
    "--pages", type=_Rows(), help="Versions of pages, such as 1e8, to predict their size too."
)
@click.option(
    "--distance",
    type=click.IntRange(0, DISTANCE_MAX),
    default=NEAR_MAX,
    show_default=True,
    help="The largest distance of lookups.",
)
@click.option(
    "--memory",
    type=click.FloatRange(min=0),
    default=planner.MEMORY_BYTES / 2**30,
    show_default=True,
    help="Memory of the server for indexes, in GiB.",
)
@click.option(
    "--layout",
    "others",
    type=LayoutName(),
    multiple=True,
    help="Another layout to compare, such as '7 choose 4' or '20+22+22'; repeatable.",
)
def plan(
    rows: int | None,
    pages: int | None,
    distance: int,
    memory: float,
    others: tuple[str, ...],
) -> None:
    """Compare what the layouts cost, and recommend one.

    Prints a JSON line for each layout that supports the distance, the smallest first. Latencies are
    predicted for three cases: with as much of the indexes in memory as fits, with all, and with
    none, where every probe reads from a solid-state disk. --pages adds the size of the pages on
    disk, without and with their Markdown.
    """
    rows = pages if rows is None else rows
    if rows is None:
        raise click.UsageError("give the expected size: --pages, --rows")
    layouts = [get_layout(name) for name in others]
    for layout in layouts:
        if distance not in layout.distances:
            largest = layout.distances[-1]
            tell(f"{layout.name} is omitted: it supports distances up to {largest}")
    plans = planner.plans(rows, distance, int(memory * 2**30), layouts, pages=pages or 0)
    best = planner.recommend(plans)
    for option in plans:
        print_json(
            {
                "layout": option.layout,
                "recommended": option is best,
                "columns": option.columns,
                "index_bytes_a_row": option.index_bytes_a_row,
                "bytes_a_row": option.bytes_a_row,
                "gigabytes": round(option.simhash_bytes / 1e9, 3),
                "gigabytes_with_pages": None if pages is None else _with_pages(option),
                "gigabytes_with_markdown": None if pages is None else _with_markdown(option),
                "radii": list(option.radii),
                "probes": option.probes,
                "candidates": round(option.candidates, 3),
                "milliseconds": round(option.milliseconds, 3),
                "memory_milliseconds": round(option.memory_milliseconds, 3),
                "disk_milliseconds": round(option.disk_milliseconds, 3),
            }
        )
    console = people()
    if console.is_terminal:
        table = drawn.Table(
            "layout",
            "columns",
            "B/row",
            "GB",
            "probes",
            "candidates",
            "ms",
            "all in memory",
            "none",
        )
        for option in plans:
            table.add_row(
                option.layout,
                str(option.columns),
                str(option.bytes_a_row),
                f"{option.simhash_bytes / 1e9:,.1f}",
                f"{option.probes:,}",
                f"{option.candidates:,.1f}",
                f"{option.milliseconds:,.2f}",
                f"{option.memory_milliseconds:,.2f}",
                f"{option.disk_milliseconds:,.1f}",
                style="bold" if option is best else None,
            )
        console.print(table)
        console.print(
            f"For {rows:,} simhashes and distance {distance}: {best.layout}, the smallest layout "
            f"that takes at most {planner.NEAR_ENOUGH:g} times as long as the fastest."
        )
        if pages is not None:
            console.print(
                f"It needs {_with_pages(best):,.1f} GB on disk with {pages:,} pages, and "
                f"{_with_markdown(best):,.1f} GB with their Markdown."
            )


def _with_pages(plan: planner.Plan) -> float:
    return round((plan.simhash_bytes + plan.page_bytes) / 1e9, 3)


def _with_markdown(plan: planner.Plan) -> float:
    return round((plan.simhash_bytes + plan.page_bytes + plan.markdown_bytes) / 1e9, 3)


@click.command()
@click.argument("name")
@scheme_option(DEFAULT_NAME)
@layout_option
@click.option(
    "--distance",
    type=click.IntRange(0, DISTANCE_MAX),
    help="Its default distance; by default the scheme's (8; short 6; blog, interop 3), or the "
    "layout's maximum.",
)
@click.option(
    "--keep-markdown/--no-keep-markdown",
    default=None,
    help="Whether to store the main content of each page; by default not.",
)
@click.option(
    "--normalize-urls/--no-normalize-urls",
    default=None,
    help="Whether to normalize URLs (case, default ports, fragments, tracking parameters); by "
    "default not.",
)
@dsn_option
def create(
    name: str,
    scheme: str | None,
    layout: str | None,
    distance: int | None,
    keep_markdown: bool | None,
    normalize_urls: bool | None,
    dsn: str | None,
) -> None:
    """Create a collection if it does not exist, and print it as a JSON line.

    If it exists with other settings, it is an error that names the command to change them. `ingest
    --create` creates collections too, with the database's default layout.
    """
    with database.checked_connection(dsn) as connection:
        collection = database.create_collection(
            connection,
            name,
            scheme=None if scheme is None else schemes.get_scheme(scheme),
            layout=layout,
            distance=distance,
            keep_markdown=keep_markdown,
            normalize_urls=normalize_urls,
        )
    print_json(collection_fields(collection))
