"""Three schemas on the workers of a Citus cluster: deploy, ingest, move one, look up in each.

Run it in a clone after `./run setup`, with the coordinator of a cluster with two workers:

    PGSIMHASH_DSN=postgresql://postgres@localhost/postgres .venv/bin/python examples/citus_tour.py

It deletes nothing: the schemas crawl_a, crawl_b and crawl_c stay.
"""

import os
from pathlib import Path

import psycopg

from pgsimhash import connect, fingerprint
from pgsimhash.schema import migrate
from pgsimhash.sources import read_pages

PAGES = Path(__file__).parent / "pages"
SCHEMAS = ("crawl_a", "crawl_b", "crawl_c")


def node_of(connection: psycopg.Connection, schema: str) -> tuple[str, int]:
    """Return the host and port of the node that has a schema."""
    row = connection.execute(
        "SELECT nodename, nodeport FROM citus_shards WHERE table_name = %s::regclass",
        [f"{schema}.pages"],
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def main() -> None:
    """Deploy three schemas, fill them, move one, and search each."""
    dsn = os.environ["PGSIMHASH_DSN"]
    with psycopg.connect(dsn, autocommit=True) as connection:
        for schema in SCHEMAS:
            migrate.upgrade(dsn, schema=schema, citus=True)
            with connect(dsn, schema=schema) as store:
                verdicts = list(store.ingest_many(read_pages([PAGES])))
            new = sum(verdict.kind == "new" for verdict in verdicts)
            host, port = node_of(connection, schema)
            print(f"{schema}: {new} new of {len(verdicts)} pages, on {host}:{port}")
        moved, (host, port) = SCHEMAS[0], node_of(connection, SCHEMAS[0])
        target = connection.execute(
            "SELECT nodename, nodeport FROM pg_dist_node "
            "WHERE groupid > 0 AND (nodename, nodeport) <> (%s, %s) LIMIT 1",
            [host, port],
        ).fetchone()
        connection.execute("SELECT citus_schema_move(%s, %s, %s)", [moved, *(target or ())])
        query = (PAGES / "tide-pools-print.html").read_bytes()
        for schema in SCHEMAS:
            with connect(dsn, schema=schema) as store:
                matches = store.find(fingerprint(query).simhash)
            host, port = node_of(connection, schema)
            print(f"{schema}: {len(matches)} near tide-pools-print.html, on {host}:{port}")


if __name__ == "__main__":
    main()
