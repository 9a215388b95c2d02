"""Measure lookups in your own table with pgsimhash.sqlalchemy, compared with those of a store.

    python bench/own_table.py [--rows N] [--lookups N] [--dsn DSN]

Both have the same random simhashes, each with a URL and a title. Every query runs once before the
measurement, and then in all ways in random order, so that they find the same blocks in memory and
the same load on the machine.
"""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import numpy as np
import psycopg
from rich.console import Console
from rich.table import Table
from sqlalchemy import Engine, bindparam, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from pgsimhash import Store, connect
from pgsimhash.hashing.bits import to_bigint
from pgsimhash.sqlalchemy import SIMHASH

sys.path.append(str(Path(__file__).parents[1]))

from bench.workload import Simhashes, database, near_copies, random_simhashes


class Base(DeclarativeBase):
    """The project's tables."""


class Article(Base):
    """Your own table."""

    __tablename__ = "articles"

    id: Mapped[int] = mapped_column(primary_key=True)
    url: Mapped[str]
    title: Mapped[str]
    simhash: Mapped[int] = mapped_column(SIMHASH("22+21+21"))


def fill(connection: psycopg.Connection, engine: Engine, values: Simhashes) -> None:
    """Write the same simhashes, URLs and titles into both."""
    Base.metadata.create_all(engine)
    ids = connection.execute("SELECT collection_id FROM pgsimhash.collections").fetchone()
    columns = "pgsimhash.pages (collection_id, url, title, simhash)"
    with connection.cursor().copy(f"COPY {columns} FROM STDIN".encode()) as copy:
        for number, simhash in enumerate(values.view(np.int64).tolist()):
            copy.write_row((*(ids or ()), f"https://a.example/{number}", "A title", simhash))
    connection.execute(
        "INSERT INTO articles (url, title, simhash) SELECT url, title, simhash FROM pgsimhash.pages"
    )
    connection.execute("VACUUM (ANALYZE)")


def one_statement(distance: int) -> Any:
    """A statement that is built once, for any simhash."""
    sought, table = bindparam("q", type_=SIMHASH()), Article.__table__.c
    return select(
        table.simhash, table.simhash.hamming_distance(sought), table.url, table.title
    ).where(table.simhash.within(sought, distance))


def ways_of(
    store: Store, connection: psycopg.Connection, session: Session, distance: int
) -> dict[str, Callable[[int], Any]]:
    """The ways to look a simhash up, by name."""
    core = session.connection()
    statement = one_statement(distance)
    # SQLAlchemy's statement and its parameters, except the simhash.
    made = statement.compile(core)
    bound = {name: value for name, value in made.params.items() if name != "q"}
    return {
        "Store.find": lambda q: store.find(q, distance),
        "psycopg, the same SQL": lambda q: connection.execute(
            str(made).encode(), {**bound, "q": to_bigint(q)}
        ).fetchall(),
        "Core, one statement": lambda q: core.execute(statement, {"q": q}).all(),
        "ORM, made each time": lambda q: session.scalars(
            select(Article).where(Article.simhash.within(q, distance))
        ).all(),
    }


def measure(ways: dict[str, Callable[[int], Any]], queries: list[int]) -> dict[str, float]:
    """The median milliseconds of a lookup in each way; all must find the same number."""
    for query in queries:
        found = {name: len(ask(query)) for name, ask in ways.items()}
        assert len(set(found.values())) == 1, found
    took: dict[str, list[float]] = {name: [] for name in ways}
    order = np.random.default_rng(2)
    for query in queries:
        # Random, because the first one loads the blocks into the processor's cache for the others.
        for name in order.permutation(list(ways)).tolist():
            started = time.perf_counter()
            ways[name](query)
            took[name].append(time.perf_counter() - started)
    return {name: float(np.median(seconds)) * 1e3 for name, seconds in took.items()}


@click.command()
@click.option("--rows", default=1_000_000, show_default=True)
@click.option("--lookups", default=500, show_default=True)
@click.option("--dsn", help="Of a database that has no table articles.")
def main(rows: int, lookups: int, dsn: str | None) -> None:
    """Fill both, measure and print."""
    rng = np.random.default_rng(1)
    values = np.unique(random_simhashes(rows, rng))
    table = Table("way", "distance", "ms", "lookups/s", "by the store", title=f"{rows:,} rows")
    with ExitStack() as stack:
        where = stack.enter_context(database(dsn))
        connection = stack.enter_context(psycopg.connect(where, autocommit=True))
        engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(where))
        stack.callback(engine.dispose)
        store = stack.enter_context(connect(where))
        fill(connection, engine, values)
        session = stack.enter_context(Session(engine))
        for distance in (3, 8):
            queries = near_copies(values, lookups, distance, rng).tolist()
            ways = ways_of(store, connection, session, distance)
            took = measure(ways, queries)
            for name, milliseconds in took.items():
                ratio = took["Store.find"] / milliseconds
                table.add_row(
                    name,
                    str(distance),
                    f"{milliseconds:.2f}",
                    f"{1e3 / milliseconds:,.0f}",
                    f"{ratio:.2f} x",
                )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
