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

FILL: LiteralString = """
INSERT INTO pgsimhash.pages (
    page_id, collection_id, url, simhash, fetched_at, title, canonical_url, language, features,
    tokens, html_bytes, html_digest, text_digest, structure, signature_high, signature_low,
    duplicate_of, distance, indexed
)
SELECT
    n, %(collection_id)s, u.url, hashint8extended(n - c.own, 1) # (5 * c.own),
    now() - interval '100 days' - interval '1 s' * (%(last)s - n),
    'The title of page ' || n || ' as sites write them', u.url, 'en', 200 + n %% 700,
    300 + n %% 900, 20000 + n %% 100000, decode(md5(n::text), 'hex'), hashint8extended(n, 2),
    hashint8extended(n %% 5000, 3), hashint8extended(n - c.own, 4), hashint8extended(n - c.own, 5),
    CASE c.own WHEN 1 THEN n - 1 END, CASE c.own WHEN 1 THEN 2 END, true
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
CROSS JOIN LATERAL (SELECT (n %% 5 = 0)::integer AS own) AS c
CROSS JOIN LATERAL (
    SELECT 'https://www.site' || n %% 5000 || '.example/2026/05/section/an-article-of-some-length-'
        || n AS url
) AS u
ORDER BY n
"""


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


def fill_pages(
    connection: psycopg.Connection, rows: int, collection: str = "default", schema: str = SCHEMA
) -> None:
    """Fill a new collection with pages as ingest stores them, vacuumed and analysed.

    Every fifth is a near-duplicate of the one before it. Indexes are built afterwards, which takes
    a third of the time.
    """
    (collection_id,) = connection.execute(
        in_schema("SELECT collection_id FROM pgsimhash.collections WHERE name = %s", schema),
        [collection],
    ).fetchone() or (0,)
    made = connection.execute(
        in_schema(
            "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index "
            "WHERE indrelid = 'pgsimhash.pages'::regclass AND NOT indisprimary",
            schema,
        )
    ).fetchall()
    for name, _ in made:
        connection.execute(f"DROP INDEX {name}".encode())
    newest_page = in_schema("SELECT max(page_id) FROM pgsimhash.pages", schema)
    (newest,) = connection.execute(newest_page).fetchone() or (0,)
    first = (newest or 0) // 5 * 5 + 6
    scope = {"collection_id": collection_id, "first": first, "last": first + rows - 1}
    connection.execute(in_schema(FILL, schema), scope)
    connection.execute(
        in_schema(
            "SELECT setval(pg_get_serial_sequence('pgsimhash.pages', 'page_id'), %s)", schema
        ),
        [scope["last"]],
    )
    connection.execute("SET maintenance_work_mem = '512MB'")
    for _, definition in made:
        connection.execute(definition.encode())
    connection.execute("VACUUM (ANALYZE)")


def random_simhashes(rows: int, rng: np.random.Generator) -> Simhashes:
    return rng.integers(0, 2**64, rows, dtype=np.uint64)


def near_copies(known: Simhashes, count: int, bits: int, rng: np.random.Generator) -> Simhashes:
    """``count`` simhashes, each ``bits`` away from one of ``known``."""
    copies = rng.choice(known, count)
    for number in range(count):
        for bit in rng.choice(64, bits, replace=False):
            copies[number] ^= np.uint64(1 << int(bit))
    return copies


def percentiles(run: Callable[[int], object], queries: Simhashes) -> tuple[float, float]:
    """Milliseconds of one call: median and 99th percentile, after a warm-up."""
    seconds = []
    for number, query in enumerate(queries.tolist()):
        started = time.perf_counter()
        run(query)
        if number >= len(queries) // 10:
            seconds.append(time.perf_counter() - started)
    return float(np.median(seconds)) * 1e3, float(np.percentile(seconds, 99)) * 1e3
