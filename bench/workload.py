"""Helpers of the benchmarks: a database, pages and simhashes in it, and timing a call."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import LiteralString

import numpy as np
import psycopg
from numpy.typing import NDArray

from pgsimhash import embedded
from pgsimhash.db.schema_names import SCHEMA, in_schema
from pgsimhash.schema import migrate

Simhashes = NDArray[np.uint64]

MADE: LiteralString = """
SELECT
    n AS page_id, %(collection_id)s::integer AS collection_id, u.url, s.simhash,
    now() - interval '100 days' * (%(last)s - n) / %(rows)s AS fetched_at,
    'The title of page ' || n || ' as sites write them' AS title, u.url AS canonical_url,
    'en' AS language, 200 + n %% 700 AS features, 300 + n %% 900 AS tokens,
    20000 + n %% 100000 AS html_bytes, decode(md5(n::text), 'hex') AS html_digest,
    hashint8extended(n, 2) AS text_digest, hashint8extended(n %% 5000, 3) AS structure,
    hashint8extended(o.original, 4) AS signature_high,
    hashint8extended(o.original, 5) AS signature_low, nullif(o.original, n) AS duplicate_of,
    CASE WHEN o.original < n THEN bit_count(e.edit::bit(64)) END AS distance,
    o.original = n OR e.edit <> 0 AS indexed
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
CROSS JOIN LATERAL (
    SELECT
        'https://www.site' || n %% 5000 || '.example/2026/05/section/an-article-of-some-length-'
            || n AS url,
        pow(2000, (hashint8extended(n, 6) & 65535) / 65536.0)::bigint AS place,
        hashint8extended(n, 7) AS noise
) AS u
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN n %% 5 = 0
        THEN greatest(%(first)s::bigint, least(n / 10000 * 10000 + u.place * 5 + 1, n - 1))
        ELSE n
    END AS original
    OFFSET 0  -- Or PostgreSQL repeats the expression wherever it is used.
) AS o
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN n %% 10 <> 5 THEN 0
        ELSE (1::bigint << (u.noise & 63)::integer) | (1::bigint << (u.noise >> 8 & 63)::integer)
            | (1::bigint << (u.noise >> 16 & 63)::integer)
            | (1::bigint << (u.noise >> 24 & 63)::integer)
    END AS edit
) AS e
CROSS JOIN LATERAL (
    SELECT (hashint8extended(o.original %% 5000, 8) & hashint8extended(o.original %% 5000, 9))
        # (hashint8extended(o.original, 1) & hashint8extended(o.original, 10)) # e.edit AS simhash
) AS s
"""
"""Rows as ingest stores them. The simhashes of a site's pages differ by 24 bits on average, those
of two sites by 30, like those of real pages. A fifth are copies, of which half differ by 1 to 4
bits; of some pages there are dozens."""


@contextmanager
def database(dsn: str | None) -> Iterator[str]:
    """The DSN of a database with the schema; None starts a temporary embedded server."""
    with ExitStack() as stack:
        if dsn is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgsimhash-bench-")))
            dsn = embedded.start(home)
            stack.callback(embedded.leave, home)
        migrate.upgrade(dsn)
        yield dsn


@contextmanager
def without_indexes(connection: psycopg.Connection, table: str) -> Iterator[None]:
    """Drop the indexes of a table but its primary key, and build them again afterwards."""
    made = connection.execute(
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index "
        "WHERE indrelid = %s::regclass AND NOT indisprimary",
        [table],
    ).fetchall()
    for name, _ in made:
        connection.execute(f"DROP INDEX {name}".encode())
    yield
    for _, definition in made:
        connection.execute(definition.encode())
    connection.execute("VACUUM (ANALYZE)")


def fill_pages(
    connection: psycopg.Connection, rows: int, collection: str = "default", schema: str = SCHEMA
) -> None:
    """Load pages into a new collection as docs/sql-write.md does, vacuumed and analysed."""
    (collection_id, first) = connection.execute(
        in_schema(
            "SELECT collection_id, (SELECT coalesce(max(page_id), 0) / 5 * 5 + 6 "
            "FROM pgsimhash.pages) FROM pgsimhash.collections WHERE name = %s",
            schema,
        ),
        [collection],
    ).fetchone() or (0, 0)
    scope = {
        "collection_id": collection_id,
        "first": first,
        "last": first + rows - 1,
        "rows": rows,
    }
    with (
        psycopg.connect(connection.info.dsn, autocommit=True) as maker,
        without_indexes(connection, f"{schema}.pages"),
    ):
        made = psycopg.ClientCursor(maker)
        columns = made.execute(MADE + "LIMIT 0", scope).description or ()
        names = ", ".join(column.name for column in columns)
        query = made.mogrify(MADE, scope)
        with (
            made.copy(f"COPY ({query}) TO STDOUT".encode()) as rows_made,
            connection.cursor().copy(f"COPY {schema}.pages ({names}) FROM STDIN".encode()) as load,
        ):
            for chunk in rows_made:
                load.write(chunk)
    connection.execute(
        in_schema(
            "SELECT setval(pg_get_serial_sequence('pgsimhash.pages', 'page_id'), %s)", schema
        ),
        [scope["last"]],
    )


def random_simhashes(rows: int, rng: np.random.Generator) -> Simhashes:
    return rng.integers(0, 2**64, rows, dtype=np.uint64)


def new_pages(count: int) -> list[tuple[str, int]]:
    """URLs and simhashes of pages that nothing is near."""
    values = random_simhashes(count, np.random.default_rng()).tolist()
    return [(f"https://new.example/{value}", value) for value in values]


def near_copies(known: Simhashes, count: int, bits: int, rng: np.random.Generator) -> Simhashes:
    """``count`` simhashes, each ``bits`` away from one of ``known``."""
    copies = rng.choice(known, count)
    for number in range(count):
        for bit in rng.choice(64, bits, replace=False):
            copies[number] ^= np.uint64(1 << int(bit))
    return copies


def percentiles(
    run: Callable[[int], object],
    queries: Simhashes,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float]:
    """Milliseconds of one call: median and 99th percentile, after a warm-up."""
    seconds = []
    for number, query in enumerate(queries.tolist()):
        started = clock()
        run(query)
        if number >= len(queries) // 10:
            seconds.append(clock() - started)
    return float(np.median(seconds)) * 1e3, float(np.percentile(seconds, 99)) * 1e3


def cpu_clock(connection: psycopg.Connection) -> Callable[[], float]:
    """A clock of the CPU seconds of this process and of the server's connections; on Linux."""
    clients = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
    files = [Path(f"/proc/{pid}/schedstat") for (pid,) in connection.execute(clients)]

    def now() -> float:
        return time.process_time() + sum(int(file.read_text().split()[0]) for file in files) / 1e9

    return now
