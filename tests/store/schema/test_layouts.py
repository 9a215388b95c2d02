"""Every layout in the database gives the results of Python and of a full scan."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import psycopg
import pytest

from pgsimhash import analysis, connect, hamming_distance
from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.bits import from_bigint, to_bigint
from pgsimhash.search.layout import DEFAULT_LAYOUT, LAYOUTS, Layout, get_layout
from tests.store.schema.test_sql import EDGES, explained, sample

ALL = [*LAYOUTS.values(), get_layout("7 choose 4")]
every_layout = pytest.mark.parametrize(
    "layout", ALL, ids=lambda layout: layout.name.replace(" ", "-")
)


def add(connection: psycopg.Connection, collection: str, simhashes: list[int]) -> int:
    row = connection.execute(
        "SELECT pgsimhash.add_simhashes(%s, %s::bigint[])",
        [collection, [to_bigint(simhash) for simhash in simhashes]],
    ).fetchone()
    assert row is not None
    return int(row[0])


@every_layout
def test_the_server_fills_the_same_columns_and_probes_as_python(
    connection: psycopg.Connection, layout: Layout
) -> None:
    connect(connection, layout=layout.name)
    simhashes = sample(300)
    assert add(connection, "default", simhashes) == len(simhashes)
    assert add(connection, "default", simhashes[:9]) == 0
    names = ", ".join(permutation.column for permutation in layout.permutations)
    rows = connection.execute(
        f"SELECT collection_id, simhash, {names} FROM pgsimhash.{layout.table}"
    ).fetchall()
    expected = layout.prefixes(np.array(simhashes, dtype=np.uint64), rows[0][0])
    stored = {from_bigint(simhash): prefixes for _, simhash, *prefixes in rows}
    assert stored == dict(zip(simhashes, expected.tolist(), strict=True))
    for permutation in layout.permutations[:: len(layout.permutations) // 2]:
        for radius, simhash in product((-1, 0, 1, 2, 3), EDGES[::3]):
            row = connection.execute(
                f"SELECT pgsimhash.probes{layout.suffix}(%s::bigint, %s, %s, 5)",
                [to_bigint(simhash), permutation.number, radius],
            ).fetchone()
            assert row is not None
            assert len(row[0]) == permutation.probes(radius)
            prefix = permutation.prefix(simhash)
            assert set(row[0]) == {
                (5 << 40) + (prefix ^ flip) for flip in permutation.flips(radius)
            }
    for distance in layout.distances:
        radii = f"SELECT pgsimhash.radii{layout.suffix}(%s)"
        assert connection.execute(radii, [distance]).fetchone() == (list(layout.radii(distance)),)


@every_layout
def test_lookups_return_what_a_full_scan_returns(
    connection: psycopg.Connection, layout: Layout
) -> None:
    connect(connection, layout=layout.name)
    rng = random.Random(layout.name)
    centres = [rng.getrandbits(64) for _ in range(6)] + EDGES[:3]
    known = list(
        dict.fromkeys(
            centre ^ sum(1 << bit for bit in rng.sample(range(64), rng.randint(0, 10)))
            for centre in centres
            for _ in range(60)
        )
    )
    add(connection, "default", known)
    connect(connection, collection="other", layout=layout.name)
    add(connection, "other", [simhash ^ 1 for simhash in known])
    for distance in layout.distances if layout is DEFAULT_LAYOUT else layout.distances[:9]:
        expected = [
            (number, simhash, hamming_distance(simhash, query))
            for number, query in enumerate(centres, start=1)
            for simhash in sorted(known)
            if hamming_distance(simhash, query) <= distance
        ]
        batch = connection.execute(
            "SELECT * FROM pgsimhash.near_duplicates(%s::bigint[], %s)",
            [[to_bigint(query) for query in centres], distance],
        ).fetchall()
        assert sorted((n, from_bigint(simhash), bits) for n, simhash, bits in batch) == expected
        single = [
            (number, from_bigint(simhash), bits)
            for number, query in enumerate(centres, start=1)
            for simhash, bits in connection.execute(
                "SELECT * FROM pgsimhash.near_duplicates(%s::bigint, %s)",
                [to_bigint(query), distance],
            ).fetchall()
        ]
        assert sorted(single) == expected
        for number, query in enumerate(centres, start=1):
            row = connection.execute(
                "SELECT pgsimhash.has_near_duplicate(%s::bigint, %s)", [to_bigint(query), distance]
            ).fetchone()
            assert row == (any(number == found for found, _, _ in expected),)


@every_layout
@pytest.mark.one_server("it reads a plan")
def test_lookups_read_only_the_indexes(dsn: str, layout: Layout) -> None:
    """Every branch is an index-only scan, before and after ANALYZE."""
    rng = random.Random(1)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connect(connection, layout=layout.name)
        add(connection, "default", [rng.getrandbits(64) for _ in range(5_000)])
        plans = explained(connection)
        # Starting a parallel worker takes longer than the lookup, for any size of the table.
        for setting in ("setup_cost", "tuple_cost"):
            connection.execute(f"SET parallel_{setting} = 0")
        connection.execute("SET min_parallel_index_scan_size = 0")
        count = len(layout.permutations)
        for prepare in ("SELECT 1", f"VACUUM ANALYZE pgsimhash.{layout.table}"):
            connection.execute(prepare)
            for distance, call in product(
                {0, 3, layout.distances[-1]},
                ("near_duplicates(7, %s)", "near_duplicates(ARRAY[7, 8], %s)"),
            ):
                plans.clear()
                connection.execute(f"SELECT * FROM pgsimhash.{call}", [distance])
                plan = next(text for text in plans if "Append" in text)
                assert plan.count(f"Index Only Scan using {layout.table}_") == count, plan
                assert "Seq Scan on pages" not in plan
                assert "Gather" not in plan
                plans.clear()
                connection.execute("SELECT pgsimhash.has_near_duplicate(7, %s)", [distance])
                lookups = [text for text in plans if f"{layout.table}_" in text]
                assert len(lookups) == count
                for text in lookups:
                    assert f"Index Only Scan using {layout.table}_" in text
                    assert "Gather" not in text


def test_a_store_works_the_same_with_another_layout(dsn: str) -> None:
    with connect(dsn, collection="sixteen", layout="16+16+16+16") as store:
        assert store.layout == "16+16+16+16"
        verdicts = store.add_many(
            [("https://a.example/1", 0), ("https://a.example/2", 7), ("https://a.example/3", 2**40)]
        )
        assert [(verdict.verdict, verdict.distance) for verdict in verdicts] == [
            ("new", None),
            ("duplicate", 3),
            ("duplicate", 1),
        ]
        assert [match.url for match in store.find(0)] == [
            "https://a.example/1",
            "https://a.example/3",
            "https://a.example/2",
        ]
        assert sorted(analysis.simhashes(store).tolist()) == [0, 7, 2**40]
        assert store.exists(2**40 + 1, distance=1)
        assert store.delete("https://a.example/2").versions == 1
        assert sorted(analysis.simhashes(store).tolist()) == [0, 2**40]
        assert [status.simhashes for status in store.status()] == [2]


def test_a_collection_starts_with_a_distance_that_its_layout_answers(dsn: str) -> None:
    with connect(dsn, collection="halves", layout="32+32") as store:
        assert store.status()[0].default_distance == 7
        with pytest.raises(ArgumentError, match="0 to 7"):
            store.find(1, distance=8)


def test_the_layout_of_new_collections_can_be_chosen_for_the_database(dsn: str) -> None:
    from pgsimhash.store.layouts import set_default_layout

    with psycopg.connect(dsn, autocommit=True) as connection:
        set_default_layout(connection, LAYOUTS["5 choose 2"])
        set_default_layout(connection, LAYOUTS["5 choose 2"])
        assert connect(connection, collection="first").layout == "5 choose 2"
        connection.execute(
            "INSERT INTO pgsimhash.collections (name, scheme) VALUES ('by SQL', 'mine')"
        )
        rows = connection.execute("SELECT DISTINCT layout FROM pgsimhash.collections").fetchall()
        assert rows == [("5 choose 2",)]
