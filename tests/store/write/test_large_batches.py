"""Batches whose pages are all near one another, and what tells whether a batch was stored."""

from __future__ import annotations

import psycopg

from pgsimhash import Store, connect


def test_of_thousands_of_pages_with_one_simhash_the_first_is_indexed(
    connection: psycopg.Connection,
) -> None:
    connection.execute("INSERT INTO pgsimhash.collections (name, scheme) VALUES ('default', 'x')")
    verdicts = connection.execute(
        "SELECT verdict, count(*) FROM pgsimhash.add_pages("
        "ARRAY(SELECT 'https://a.example/' || g FROM generate_series(1, 2000) AS g), "
        "array_fill(1::bigint, ARRAY[2000])) GROUP BY verdict ORDER BY count(*)"
    ).fetchall()
    assert verdicts == [("new", 1), ("duplicate", 1999)]
    (indexed,) = connection.execute(
        "SELECT count(*) FROM pgsimhash.pages WHERE indexed"
    ).fetchone() or (0,)
    assert indexed == 1


def test_a_run_counts_only_in_its_collection(dsn: str, store: Store) -> None:
    """A rebuild keeps the ids of runs, so two collections have the same."""
    run = store.start_run("night")
    store.add("https://a.example/", 1)
    with connect(dsn, collection="other") as other, psycopg.connect(dsn) as connection:
        connection.execute(
            "INSERT INTO pgsimhash.runs (run_id, collection_id, label, pages) "
            "SELECT %s, collection_id, 'night', 5 FROM pgsimhash.collections WHERE name = 'other'",
            [run],
        )
        for opened, pages in ((store, 1), (other, 5)):
            stored = connection.execute(
                "SELECT pgsimhash._batch_stored(%s, %s, %s, '{}', '{}')",
                [opened.opened.collection_id, run, pages],
            ).fetchone()
            assert stored == (True,)


def test_ids_continue_above_inserted_ones(store: Store, connection: psycopg.Connection) -> None:
    connection.execute(
        "INSERT INTO pgsimhash.pages (collection_id, page_id, url, simhash) "
        "SELECT collection_id, 10::bigint ^ 12, 'https://a.example/', 1 FROM pgsimhash.collections"
    )
    connection.commit()
    verdict = store.add("https://b.example/", 1)
    assert verdict.duplicate_of == "https://a.example/"
    assert verdict.page_id == 10**12 + 1
