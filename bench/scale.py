"""Measure how cost grows with the number of rows, compared with other ways, and print one table.

    TMPDIR=/var/tmp python bench/scale.py [--rows N]... [--hnsw N] [--alone N]

Every size gets an embedded server in a temporary folder, which takes 2 kB a row. The peers have the
same simhashes: a scan with bit_count, and pgvector's indexes if the server has the extension. The
ones with MinHash run if they are installed (datasketch, dedup-pg[sqlalchemy]). They get made
signatures, so no text is hashed, and run up to a million rows, because of their space.
``--alone`` measures instead a table of simhashes and their prefixes, in 185 bytes a row.

A cell has the median and the 99th percentile of CPU milliseconds, of client and server together,
which other processes hardly change, and for SQL the buffers of 8 KB that a call reads.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, LiteralString

import click
import numpy as np
import psycopg
from sqlalchemy import bindparam, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from pgsimhash import connect
from pgsimhash.hashing.bits import to_bigint
from pgsimhash.sqlalchemy import SIMHASH

if TYPE_CHECKING:
    from bench.workload import (
        Simhashes,
        cpu_clock,
        database,
        fill_pages,
        near_copies,
        new_pages,
        percentiles,
        random_simhashes,
        without_indexes,
    )
else:  # A script finds its neighbours under their own names.
    from workload import (
        Simhashes,
        cpu_clock,
        database,
        fill_pages,
        near_copies,
        new_pages,
        percentiles,
        random_simhashes,
        without_indexes,
    )

RNG = np.random.default_rng(1)
DISTANCES = (3, 8)
BATCH = 256
JOINED = 16  # rows, because all would take days
SIGNATURE = 128  # values of a MinHash
MINHASH_ROWS = 1_000_000
Cells = Iterator[tuple[str, str]]
Statement = tuple[str, list[Any]]


class Size:
    """A server with this many pages, and a table of their ids and simhashes for the peers."""

    def __init__(self, dsn: str, rows: int) -> None:
        self.rows = rows
        self.store = connect(dsn)
        self.connection = psycopg.connect(dsn, autocommit=True)
        # Parallel workers would not be in the CPU time of a connection.
        self.connection.execute("SET max_parallel_workers_per_gather = 0")
        fill_pages(self.connection, rows)
        self.connection.execute(
            "CREATE TABLE bare AS SELECT page_id, simhash::bit(64) AS simhash FROM pgsimhash.pages"
        )
        self.connection.execute("VACUUM (ANALYZE) bare")
        sample = self.connection.execute(
            "SELECT simhash FROM pgsimhash.pages TABLESAMPLE SYSTEM (least(100, 2e6 / %s))", [rows]
        ).fetchall()
        self.known: Simhashes = np.array(sample, np.int64)[:, 0].view(np.uint64)

    def near(self, number: int, distance: int) -> Simhashes:
        """Queries: near-duplicates of stored pages."""
        return near_copies(self.known, number, distance, RNG)

    def bytes_of(self, expression: LiteralString) -> str:
        """The bytes a row of an expression such as ``pg_relation_size('t')``."""
        ((total,),) = self.connection.execute(f"SELECT {expression}".encode()).fetchall()
        return f"{float(total) / self.rows:,.0f}"

    def calls(
        self,
        run: Callable[[int], object],
        queries: Simhashes,
        explained: Callable[[int], Statement] | None = None,
    ) -> str:
        """A cell with the CPU milliseconds of calls, and the median buffers of a few more."""
        run(int(queries[0]))  # Now it has its connection.
        middle, slow = percentiles(run, queries, cpu_clock(self.connection))
        cell = f"{shown(middle)}, {shown(slow)}"
        if explained is None:
            return cell
        buffers = []
        for query in queries[:11].tolist():
            statement, values = explained(query)
            ((((plan),),),) = self.connection.execute(
                f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {statement}".encode(), values
            ).fetchall()
            top = plan["Plan"]
            buffers.append(top["Shared Hit Blocks"] + top["Shared Read Blocks"])
        return f"{cell}; {np.median(buffers):,.0f}"


def shown(number: float) -> str:
    """Two digits, and thousands with commas."""
    return f"{float(f'{number:.2g}'):,.{0 if number >= 10 else 1 if number >= 1 else 2}f}"


def times(count: int) -> Simhashes:
    """The queries of a call that has no query."""
    return np.zeros(count, np.uint64)


def ours(size: Size) -> Cells:
    """The package's own calls."""
    store = size.store
    yield "bytes a row", size.bytes_of("pg_total_relation_size('pgsimhash.pages')")
    for distance in DISTANCES:

        def find(query: int, distance: int = distance) -> object:
            return store.find(query, distance)

        def found(query: int, distance: int = distance) -> Statement:
            return "SELECT * FROM pgsimhash.find(%s, %s)", [to_bigint(query), distance]

        yield f"`find`, {distance} bits", size.calls(find, size.near(1000, distance), found)
    for distance in DISTANCES:

        def add(_: int, distance: int = distance) -> object:
            ((url, simhash),) = new_pages(1)
            return store.add_page(url, simhash, distance=distance)

        def batch(_: int, distance: int = distance) -> object:
            return list(store.add_pages(new_pages(BATCH), distance=distance))

        yield f"one `add_page`, {distance} bits", size.calls(add, times(300))
        yield f"`add_pages` of {BATCH}, {distance} bits", size.calls(batch, times(30))

    def should_fetch(_: int) -> object:
        return store.should_fetch(url_of(), older_than=timedelta(days=7))

    def fetched(_: int) -> Statement:
        return "SELECT pgsimhash.should_fetch(%s, interval '7 days')", [url_of()]

    def url_of() -> str:
        return str(urls[RNG.integers(len(urls))])

    sampled = size.connection.execute(
        "SELECT url FROM pgsimhash.pages TABLESAMPLE SYSTEM (least(100, 1e6 / %s))", [size.rows]
    ).fetchall()
    urls = [url for (url,) in sampled]
    yield "`should_fetch`", size.calls(should_fetch, times(1000), fetched)
    counted: Statement = "SELECT * FROM pgsimhash.status()", []
    yield "`status`", size.calls(lambda _: store.status(), times(20), lambda _: counted)
    clock = cpu_clock(size.connection)
    started = clock()
    deleted = store.expire(timedelta(days=99)).deleted
    yield "`expire` of 1%: a page", shown((clock() - started) * 1e3 / deleted)


def scan(size: Size) -> Cells:
    """The table bare, read whole."""
    connection = size.connection
    scanned = "SELECT page_id FROM bare WHERE bit_count(simhash # %s::bit(64)) <= 8"
    joined = (
        "SELECT page_id, query FROM unnest(%s::bit(64)[]) AS query "
        "JOIN bare ON bit_count(simhash # query) <= 8"
    )

    def look(query: int) -> object:
        return connection.execute(scanned, [f"{query:064b}"]).fetchall()

    def join(_: int) -> object:
        queries = [f"{query:064b}" for query in size.near(JOINED, 8).tolist()]
        return connection.execute(joined, [queries]).fetchall()

    yield (
        "scan with `bit_count`: lookup, 8 bits",
        size.calls(look, size.near(11, 8), lambda query: (scanned, [f"{query:064b}"])),
    )
    yield f"self-join of {JOINED} with all, 8 bits", size.calls(join, times(2))
    yield "the same: bytes a row", size.bytes_of("pg_total_relation_size('bare')")


def pgvector(hnsw: int, size: Size) -> Cells:
    """Its indexes of bit vectors: the nearest ten, of which those within the distance count."""
    connection = size.connection
    connection.execute("CREATE EXTENSION vector")
    # The default is too little for the lists and the graph of ten million rows.
    connection.execute("SET maintenance_work_mem = '6GB'")
    nearest = "SELECT page_id, simhash <~> %s::bit(64) FROM bare ORDER BY 2 LIMIT 10"
    lists = round(size.rows**0.5)
    connection.execute(f"SET ivfflat.probes = {round(lists**0.5)}".encode())
    methods = {"IVF": f"ivfflat (simhash bit_hamming_ops) WITH (lists = {lists})"}
    if size.rows <= hnsw:
        methods["HNSW"] = "hnsw (simhash bit_hamming_ops)"
    for name, method in methods.items():
        started = time.perf_counter()
        connection.execute(f"CREATE INDEX bare_idx ON bare USING {method}".encode())
        took = time.perf_counter() - started
        space = size.bytes_of("pg_total_relation_size('bare')")
        yield f"pgvector {name}: bytes a row", space
        queries = size.near(500, 8)
        found: list[bool] = []

        def look(query: int, found: list[bool] = found) -> object:
            rows = connection.execute(nearest, [f"{query:064b}"]).fetchall()
            found.append(bool(rows) and rows[0][1] <= 8)
            return rows

        cell = size.calls(look, queries, lambda query: (nearest, [f"{query:064b}"]))
        yield f"pgvector {name}: lookup, 8 bits", cell
        yield f"pgvector {name}: found", f"{np.mean(found):.3f}"
        yield f"pgvector {name}: built in seconds", f"{took:,.0f}"

        def add(simhash: int) -> object:
            row = [simhash >> 1, f"{simhash:064b}"]
            return connection.execute("INSERT INTO bare VALUES (%s, %s::bit(64))", row)

        yield f"pgvector {name}: add", size.calls(add, random_simhashes(300, RNG))
        connection.execute("DROP INDEX bare_idx")


def signatures(rows: int) -> Simhashes:
    """MinHash signatures of texts that have nothing in common."""
    return RNG.integers(0, 2**32, (rows, SIGNATURE), dtype=np.uint64)


def in_datasketch(rows: int) -> list[tuple[str, str]]:
    """Its index in memory, in a process of its own."""
    from datasketch import MinHash, MinHashLSH

    def minhash(values: Simhashes) -> Any:
        return MinHash(num_perm=SIGNATURE, hashvalues=values, scheme="affine32")

    index = MinHashLSH(threshold=0.7, num_perm=SIGNATURE)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with index.insertion_session() as session:
        for start in range(0, rows, 1000):
            for number, values in enumerate(signatures(1000), start):
                session.insert(number, minhash(values))
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    fresh, times = signatures(1000), np.arange(1000, dtype=np.uint64)
    clock = time.process_time
    adds = percentiles(lambda n: index.insert(rows + n, minhash(fresh[n])), times, clock)
    looks = percentiles(lambda n: index.query(minhash(fresh[n])), times, clock)
    return [
        ("datasketch, in memory: lookup", ", ".join(map(shown, looks))),
        ("datasketch, in memory: add", ", ".join(map(shown, adds))),
        ("datasketch, in memory: bytes a row", f"{used / rows:,.0f}"),
    ]


def datasketch(size: Size) -> Cells:
    """MinHashLSH at .7."""
    with get_context("spawn").Pool(1) as pool:
        yield from pool.apply(in_datasketch, [size.rows])


def dedup_pg(size: Size) -> Cells:
    """Its table of bands; its one call looks up and adds."""
    import sqlalchemy as sa
    from dedup_pg import DedupIndex
    from dedup_pg.backend.sqlalchemy import SQLAlchemyBackend

    engine = sa.create_engine(
        sa.URL.create("postgresql+psycopg2", query=size.connection.info.get_parameters())
    )
    metadata = sa.MetaData()
    index = DedupIndex(
        SQLAlchemyBackend(engine=engine, base_or_metadata=metadata, table_name="bands")
    )
    metadata.create_all(engine)
    unique = "CONSTRAINT bands_band_idx_band_hash_key"
    size.connection.execute(f"ALTER TABLE bands DROP {unique}".encode())
    size.connection.execute(
        "INSERT INTO bands SELECT band, hashint8extended(n, band), md5(n::text)::uuid "
        "FROM generate_series(1, %s) AS n CROSS JOIN generate_series(0, %s) AS band",
        [size.rows, index.num_bands - 1],
    )
    added = f"ALTER TABLE bands ADD {unique} UNIQUE (band_idx, band_hash)"
    size.connection.execute(added.encode())
    size.connection.execute("VACUUM (ANALYZE) bands")
    fresh = RNG.integers(-(2**63), 2**63, (300, index.num_bands))
    yield (
        "dedup-pg: lookup and add",
        size.calls(lambda n: index.index(fresh[n].tolist()), np.arange(300, dtype=np.uint64)),
    )
    yield "dedup-pg: bytes a row", size.bytes_of("pg_total_relation_size('bands')")
    engine.dispose()


def measure(rows: int, hnsw: int) -> dict[str, str]:
    """The cells of a size, by what they measure."""
    cells: dict[str, str] = {}
    with database(None) as dsn:
        size = Size(dsn, rows)
        parts: list[Callable[[Size], Cells]] = [ours, scan]
        offered = "SELECT FROM pg_available_extensions WHERE name = 'vector'"
        if size.connection.execute(offered).fetchall():
            parts.append(partial(pgvector, hnsw))
        if rows <= MINHASH_ROWS:
            parts += [part for part in (dedup_pg, datasketch) if find_spec(part.__name__)]
        for part in parts:
            for what, cell in part(size):
                click.echo(f"{rows:,}: {what}: {cell}", err=True)
                cells[what] = cell
    return cells


def alone(rows: int) -> None:
    """Print the time of lookups in a table of simhashes and prefixes, in the default layout."""

    class Base(DeclarativeBase):
        """The tables."""

    class Alone(Base):
        __tablename__ = "alone"
        id: Mapped[int] = mapped_column(primary_key=True)
        simhash: Mapped[int] = mapped_column(SIMHASH("22+21+21"))

    with database(None) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
        Base.metadata.create_all(engine)
        connection.execute("SET maintenance_work_mem = '1500MB'")
        known = []
        with without_indexes(connection, "alone"):
            for start in range(0, rows, 10**6):
                values = random_simhashes(min(rows - start, 10**6), RNG)
                known.append(values[:1000])
                with connection.cursor().copy("COPY alone FROM STDIN") as copy:
                    for number, value in enumerate(values.view(np.int64).tolist(), start):
                        copy.write_row((number, value))
        sought, column = bindparam("q", type_=SIMHASH()), Alone.__table__.c.simhash
        for distance in DISTANCES:
            made = select(column).where(column.within(sought, distance)).compile(engine)
            fixed = {name: value for name, value in made.params.items() if name != "q"}

            def look(
                query: int, statement: bytes = str(made).encode(), fixed: Any = fixed
            ) -> object:
                return connection.execute(statement, {**fixed, "q": to_bigint(query)}).fetchall()

            queries = near_copies(np.concatenate(known), 300, distance, RNG)
            for name, clock in ("CPU ms", cpu_clock(connection)), ("ms", time.perf_counter):
                cell = ", ".join(map(shown, percentiles(look, queries, clock)))
                click.echo(f"{rows:,}, {distance} bits: {cell} {name}")
        space = connection.execute("SELECT pg_total_relation_size('alone')").fetchall()
        click.echo(f"{space[0][0] / rows:,.0f} bytes a row")
        engine.dispose()


@click.command()
@click.option("--rows", multiple=True, type=int, default=(10**5, 10**6, 10**7), show_default=True)
@click.option("--hnsw", default=10**6, show_default=True, help="At most; it takes long to build.")
@click.option("--alone", "simhashes", type=int, help="Lookups in a table of this many simhashes.")
def main(rows: tuple[int, ...], hnsw: int, simhashes: int | None) -> None:
    """Measure each size and print a table in Markdown."""
    if simhashes is not None:
        return alone(simhashes)
    sizes = {number: measure(number, hnsw) for number in rows}
    click.echo(f"| | {' | '.join(f'{number:,}' for number in sizes)} |\n|---|{'---|' * len(sizes)}")
    for what in dict.fromkeys(what for cells in sizes.values() for what in cells):
        click.echo(f"| {what} | {' | '.join(cells.get(what, '-') for cells in sizes.values())} |")


if __name__ == "__main__":
    main()
