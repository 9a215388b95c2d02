"""Every layout, deployed as a schema, gives the results of Python and of a full scan."""

import random
import re
from collections.abc import Iterator
from itertools import accumulate, product
from math import comb

import psycopg
import pytest

from pgsimhash import StoreError, connect, hamming_distance
from pgsimhash.db.schema_names import SCHEMA_FILES, read_sql
from pgsimhash.hashing.bits import from_bigint, to_bigint
from pgsimhash.schema import migrate
from pgsimhash.schema.scripts import in_layout
from pgsimhash.search.layout import (
    COLLECTION_SHIFT,
    DEFAULT_LAYOUT,
    LAYOUTS,
    PROBES_MAX,
    Block,
    Layout,
    Permutation,
    get_layout,
)
from pgsimhash.testing import fresh_database
from tests.database import explained
from tests.search.test_layout import prefix
from tests.store.schema.test_sql import EDGES, insert, new_collection, sample


def schema_for(layout: str) -> str:
    return "layout_" + re.sub(r"\W+", "_", layout)


@pytest.fixture(scope="module")
def layouts_dsn(server_dsn: str) -> Iterator[str]:
    """A database with a schema for each layout."""
    with fresh_database(server_dsn) as dsn:
        yield dsn


@pytest.fixture(
    scope="module", params=LAYOUTS.values(), ids=lambda layout: layout.name.replace(" ", "-")
)
def layout(request: pytest.FixtureRequest, layouts_dsn: str) -> Layout:
    deployed: Layout = request.param
    migrate.upgrade(layouts_dsn, schema=schema_for(deployed.name), layout=deployed.name)
    return deployed


@pytest.fixture
def connection(layouts_dsn: str, layout: Layout) -> Iterator[psycopg.Connection]:
    """A connection with the schema of the layout in its search_path; nothing is committed."""
    with psycopg.connect(layouts_dsn) as opened:
        opened.execute(f"SET search_path TO {schema_for(layout.name)}".encode())
        yield opened
        opened.rollback()


def test_the_server_fills_the_same_columns_and_probes_as_python(
    connection: psycopg.Connection, layout: Layout
) -> None:
    assert connection.execute("SELECT layout()").fetchone() == (layout.name,)
    simhashes = sample(300)
    schema = schema_for(layout.name)
    collection_id = new_collection(connection, "default", schema)
    insert(connection, collection_id, simhashes, schema)
    names = ", ".join(f"prefix_{permutation.number}" for permutation in layout.permutations)
    rows = connection.execute(f"SELECT simhash, {names} FROM pages".encode()).fetchall()
    scope = collection_id << COLLECTION_SHIFT
    stored = {from_bigint(simhash): prefixes for simhash, *prefixes in rows}
    assert stored == {
        simhash: [scope + prefix(permutation, simhash) for permutation in layout.permutations]
        for simhash in simhashes
    }
    for permutation in layout.permutations[:: len(layout.permutations) // 2]:
        for radius, simhash in product((-1, 0, 1, 2, 3), EDGES[::3]):
            values = [to_bigint(simhash), permutation.number, radius]
            asked = connection.execute("SELECT probes(%s::bigint, %s, %s, 5)", values)
            ((probes,),) = asked.fetchall()
            own = prefix(permutation, simhash)
            assert sorted(probes) == sorted(
                (5 << 40) + (own ^ flip) for flip in permutation.flips(radius)
            )
    for distance in layout.distances:
        radii = connection.execute("SELECT radii(%s)", [distance]).fetchone()
        assert radii == (list(layout.radii(distance)),)
    beyond = layout.distances[-1] + 1
    assert connection.execute("SELECT radii(%s)", [beyond]).fetchone() == (None,)


def test_lookups_return_what_a_full_scan_returns(
    connection: psycopg.Connection, layout: Layout
) -> None:
    rng = random.Random(layout.name)
    centres = [rng.getrandbits(64) for _ in range(6)] + EDGES[:3]
    known = list(
        dict.fromkeys(
            centre ^ sum(1 << bit for bit in rng.sample(range(64), rng.randint(0, 10)))
            for centre in centres
            for _ in range(60)
        )
    )
    # Several pages can have one simhash.
    schema = schema_for(layout.name)
    own_id, other_id = (new_collection(connection, name, schema) for name in ("default", "other"))
    insert(connection, own_id, known + known[:20], schema)
    insert(connection, other_id, [simhash ^ 1 for simhash in known], schema)
    for distance in layout.distances if layout is DEFAULT_LAYOUT else layout.distances[:9]:
        expected = [
            (number, simhash, hamming_distance(simhash, query))
            for number, query in enumerate(centres, start=1)
            for simhash in sorted(known)
            if hamming_distance(simhash, query) <= distance
        ]
        batch = connection.execute(
            "SELECT * FROM find_many(%s::bigint[], %s)",
            [[to_bigint(query) for query in centres], distance],
        ).fetchall()
        assert sorted((n, from_bigint(simhash), bits) for n, simhash, bits in batch) == expected
        single = [
            (number, from_bigint(simhash), bits)
            for number, query in enumerate(centres, start=1)
            for simhash, bits in connection.execute(
                "SELECT * FROM find(%s::bigint, %s)", [to_bigint(query), distance]
            ).fetchall()
        ]
        assert sorted(single) == expected
        for number, query in enumerate(centres, start=1):
            row = connection.execute(
                "SELECT has_near(%s::bigint, %s)", [to_bigint(query), distance]
            ).fetchone()
            assert row == (any(number == found for found, _, _ in expected),)


@pytest.mark.one_server("it reads a plan")
@pytest.mark.parametrize("name", ["22+21+21", "16+16+16+16", "6 choose 3"])
def test_lookups_read_only_the_indexes(empty_dsn: str, name: str) -> None:
    """Every branch is an index-only scan, before and after ANALYZE."""
    rng, layout = random.Random(1), get_layout(name)
    migrate.upgrade(empty_dsn, layout=name)
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("SET search_path TO pgsimhash")
        collection_id = new_collection(connection, "default")
        insert(connection, collection_id, [rng.getrandbits(64) for _ in range(5_000)])
        plans = explained(connection)
        # Starting a parallel worker takes longer than the lookup, for any size of the table.
        for setting in ("setup_cost", "tuple_cost"):
            connection.execute(f"SET parallel_{setting} = 0".encode())
        connection.execute("SET min_parallel_index_scan_size = 0")
        count = len(layout.permutations)
        scan = "Index Only Scan using pages_prefix_"
        for prepare in ("SELECT 1", "VACUUM ANALYZE pages"):
            connection.execute(prepare.encode())
            for distance, call in product(
                {0, 3, layout.distances[-1]},
                ("find(7, %s)", "find_many(ARRAY[7, 8], %s)"),
            ):
                plans.clear()
                connection.execute(f"SELECT * FROM {call}".encode(), [distance])
                plan = next(text for text in plans if "Append" in text)
                assert plan.count(scan) == count, plan
                assert "Seq Scan on pages" not in plan
                assert "Gather" not in plan
                plans.clear()
                connection.execute("SELECT has_near(7, %s)", [distance])
                (plan,) = [text for text in plans if "pages_prefix_" in text]
                assert plan.count(scan) == count, plan
                assert "Gather" not in plan


def test_the_masks_are_those_of_python(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        for width in range(1, COLLECTION_SHIFT + 1):
            permutation = Permutation(1, (Block(width, 0),))
            counts = accumulate(comb(width, count) for count in range(width + 1))
            radii = [radius for radius, count in enumerate(counts) if count <= PROBES_MAX]
            for radius in (-1, *radii):
                ((flips,),) = connection.execute(
                    "SELECT pgsimhash._flips_1(%s, %s)", [width, radius]
                ).fetchall()
                assert sorted(flips) == permutation.flips(radius)


def test_the_files_are_filled_for_a_layout() -> None:
    files = "".join(map(read_sql, SCHEMA_FILES))
    default, other = (in_layout(files, layout) for layout in (DEFAULT_LAYOUT, LAYOUTS["32+32"]))
    assert {*re.findall(r"\$\{.*?\}", default + other)} == {"${build}"}
    for only in ("22+21+21", "prefix_3", "4194303", "2097151", "_flips(21", "bits 20 to 0"):
        assert only in default
        assert only not in re.sub("-- .*", "", other)


def test_the_layout_of_a_schema_stays(dsn: str) -> None:
    migrate.upgrade(dsn, layout="22+21+21")
    for name in ("16+16+16+16", "5 choose 2"):
        with pytest.raises(StoreError, match=r"has layout '22\+21\+21', .*--into-schema"):
            migrate.upgrade(dsn, layout=name)
    migrate.upgrade(dsn, schema="crawl", layout="16+16+16+16")
    migrate.upgrade(dsn, schema="crawl")
    with connect(dsn) as one, connect(dsn, schema="crawl") as other:
        assert (one.collection.layout, other.collection.layout) == ("22+21+21", "16+16+16+16")
