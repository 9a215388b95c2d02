"""Read the rows of a collection with plain SQL."""

from __future__ import annotations

from typing import Any

import psycopg

from pgsimhash import Store, maintenance
from pgsimhash.db.statements import query

# The content of a page in a collection, without its ids.
CONTENT = """
SELECT
    p.url, p.simhash, p.fetched_at, p.title, p.canonical_url, p.language, p.features, p.tokens,
    p.html_bytes, p.html_digest, p.structure, p.signature_high, p.signature_low, p.markdown,
    o.url, p.distance, s.seen_at
FROM pgsimhash.collections AS c
JOIN pgsimhash.pages AS p USING (collection_id)
LEFT JOIN pgsimhash.pages AS o
    ON o.collection_id = p.collection_id AND o.page_id = p.duplicate_of
LEFT JOIN pgsimhash.last_seen AS s
    ON s.collection_id = p.collection_id AND s.page_id = p.page_id
WHERE c.name = %s
ORDER BY p.page_id
"""

# With the ids of pages and runs.
NUMBERED = CONTENT.replace("SELECT\n", "SELECT p.page_id, p.run_id, p.duplicate_of, ")


def content(dsn: str, collection: str, *, numbered: bool = False) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(NUMBERED if numbered else CONTENT, [collection]).fetchall()


def simhash_rows(dsn: str, collection: str) -> set[tuple[int, bool]]:
    """The rows of all simhash tables: each value, and whether it is standalone."""
    with psycopg.connect(dsn) as connection:
        tables = connection.execute("SELECT 'simhashes' || suffix FROM pgsimhash.layouts")
        return {
            row
            for (table,) in tables.fetchall()
            for row in connection.execute(
                f"SELECT s.simhash, s.standalone FROM pgsimhash.{table} AS s "
                "JOIN pgsimhash.collections AS c USING (collection_id) WHERE c.name = %s",
                [collection],
            )
        }


def rebuild_apart(store: Store, into: str, **options: Any) -> None:
    """Rebuild a collection into another; the first one keeps its name."""
    opened = store.opened
    maintenance.rebuild(store, into, **options)
    names = {"old": opened.name, "new": into, "swap": True}
    with store.session.read() as connection:
        connection.execute(query("rename_collection", connection), names)
    store.session.collection = opened
