"""Read the rows of a collection with plain SQL."""

from typing import Any

from pgsimhash import Store
from pgsimhash.db.statements import fetch
from pgsimhash.pages.records import StoredPage
from tests.database import run_sql

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


def content(
    dsn: str, collection: str, *, numbered: bool = False, schema: str = "pgsimhash"
) -> list[tuple[Any, ...]]:
    statement = (NUMBERED if numbered else CONTENT).replace("pgsimhash.", f"{schema}.")
    return run_sql(dsn, statement, [collection])


def urls(dsn: str) -> list[str]:
    """The URLs of the pages in the collection `default`."""
    return [row[0] for row in content(dsn, "default")]


def page_at(store: Store, url: str) -> StoredPage:
    """The present version of a page, which must be known."""
    found = store.get(url)
    assert found is not None
    return found


def original_of(store: Store, url: str) -> tuple[str | None, int | None]:
    """The original of a known page, and its distance."""
    found = page_at(store, url)
    return found.duplicate_of, found.distance


def transactions(dsn: str) -> int:
    """The number of transactions that stored the pages."""
    ((count,),) = run_sql(dsn, "SELECT count(DISTINCT xmin::text) FROM pgsimhash.pages")
    return int(count)


def indexed(dsn: str, collection: str, *, schema: str = "pgsimhash") -> list[int]:
    """The ids of the indexed pages."""
    statement = f"""
        SELECT p.page_id
        FROM {schema}.collections AS c
        JOIN {schema}.pages AS p USING (collection_id)
        WHERE c.name = %s AND p.indexed
        ORDER BY p.page_id
    """
    return [page_id for (page_id,) in run_sql(dsn, statement, [collection])]


def rebuild_apart(store: Store, into: str, **options: Any) -> None:
    """Rebuild a collection into another; the first one keeps its name."""
    opened = store.collection
    store.rebuild(into, **options)
    names = {"old_name": opened.name, "new_name": into, "swap": True}
    with store._session.connection_to_read() as connection:
        fetch(connection, "rename_collection", names)
    store._session.collection = opened
