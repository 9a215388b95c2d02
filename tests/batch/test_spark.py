"""Spark gives the results of the search in memory, on a real local Spark."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from pgsimhash import ArgumentError, Store, find_pairs, fingerprint
from pgsimhash.batch import parquet
from pgsimhash.batch.frames import mark_duplicates
from pgsimhash.hashing.bits import from_bigint, to_bigint
from pgsimhash.search.clusters import cluster_simhashes
from pgsimhash.search.memory_index import BlockIndex
from tests.conftest import ROOT
from tests.database import copy_simhashes
from tests.refusals import because

HERE = importlib.util.find_spec("pyspark") is not None and bool(
    os.environ.get("JAVA_HOME") or shutil.which("java")
)
IS_USED = HERE or os.environ.get("PGSIMHASH_TEST_SPARK") == "required"

needs_spark = pytest.mark.skipif(not IS_USED, reason="PySpark or Java is not installed")
pytestmark = [
    needs_spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

if IS_USED:
    from pyspark.sql import SparkSession

    from pgsimhash.batch import spark

Simhashes = NDArray[np.uint64]


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """A local Spark in this process, with two cores and few partitions."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.log.level", "ERROR")
        # For a short life, the first compiler and collector of Java take the least time.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    yield made
    made.stop()


def frame_of(session: Any, *arrays: Simhashes) -> Any:
    """A frame of two partitions, with a null, and each simhash of the second array twice."""
    values = np.concatenate([*arrays, *arrays[1:]]).view(np.int64).tolist()
    rows = [(value,) for value in [*values, None]]
    return session.createDataFrame(rows, "simhash bigint").repartition(2)


def with_copies(seed: int, originals: int, hot: int = 0) -> Simhashes:
    """Random simhashes, many with the same prefix, and copies of some within three bits."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2**64, originals, dtype=np.uint64)
    values[:hot] = values[:hot] >> np.uint64(24) | np.uint64(0xABCDEF << 40)
    chosen = values[:: max(1, originals // 300)]
    flips = np.uint64(1) << rng.integers(0, 64, (len(chosen), 3), dtype=np.uint64)
    return np.concatenate([values, chosen ^ np.bitwise_xor.reduce(flips, axis=1)])


def as_rows(frame: Any) -> list[tuple[int, ...]]:
    """The rows in order, with unsigned simhashes."""
    return sorted(
        (from_bigint(low), from_bigint(high), *others) for low, high, *others in frame.collect()
    )


def in_memory(values: Simhashes, distance: int) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in find_pairs(values, distance)), strict=True))


@pytest.mark.parametrize(("distance", "count", "hot", "partitions"), [
    (0, 2_000, 0, None), (8, 2_000, 0, None), (3, 30_000, 20_000, 3),
])  # fmt: skip
def test_the_pairs_are_those_in_memory_also_of_a_prefix_that_most_share(
    distance: int, count: int, hot: int, partitions: int | None, session: Any
) -> None:
    values = with_copies(distance, count, hot)
    frame = frame_of(session, values, values[:50])
    found = as_rows(spark.pairs(frame, distance, partitions=partitions))
    assert found == in_memory(values, distance)
    assert len(found) >= 100 * (distance > 0)


def test_an_empty_frame_has_no_pairs(session: Any) -> None:
    nothing = frame_of(session, np.empty(0, dtype=np.uint64))
    assert spark.pairs(nothing, 3).collect() == []
    assert spark.clusters(spark.pairs(nothing, 3)).collect() == []
    assert spark.find(nothing, nothing, 3).collect() == []


@pytest.mark.parametrize("distance", [0, 8])
def test_a_batch_finds_all_known_simhashes(distance: int, session: Any) -> None:
    known = with_copies(1, 3_000)
    batch = np.concatenate([known[2_900:], with_copies(2, 100)])
    batch[:50] ^= np.uint64(5)
    found = spark.find(
        frame_of(session, batch, batch[:9]), frame_of(session, known, known[:9]), distance
    )
    queries = np.unique(batch)
    near = BlockIndex(known).near(queries, distance)
    expected = [
        (int(queries[number]), int(value), int(queries[number] ^ value).bit_count())
        for number, value in zip(*near, strict=True)
    ]
    assert as_rows(found) == sorted(expected)
    assert len(expected) > 50


def test_clusters_are_those_in_memory(session: Any) -> None:
    """Including a chain, in which each simhash is near the next one only."""
    chain = np.array([(1 << 3 * n) - 1 for n in range(20)], dtype=np.uint64)
    values = np.unique(np.concatenate([with_copies(3, 1_000), chain]))
    pairs = find_pairs(values, 3)
    roots = cluster_simhashes(values, [pairs])
    shared = np.isin(roots, roots[roots != values])
    expected = list(zip(values[shared].tolist(), roots[shared].tolist(), strict=True))
    found = spark.clusters(spark.pairs(frame_of(session, values), 3))
    assert as_rows(found) == expected
    assert (int(chain[-1]), 0) in expected


def test_exchange_with_a_store(store: Store, dsn: str, session: Any, tmp_path: Path) -> None:
    borders = np.array([0, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    values = np.append(with_copies(4, 5_000), borders)
    copy_simhashes(dsn, values)
    parquet.save_simhashes(store, tmp_path / "it.parquet")
    frame = spark.read_simhashes(session, str(tmp_path / "it.parquet"))
    assert frame.dtypes == [("simhash", "bigint")]
    parquet.write_archive(tmp_path / "back.parquet", frame.toArrow()["simhash"])
    back = np.concatenate(list(parquet.read_simhashes(tmp_path / "back.parquet")))
    assert np.array_equal(back, np.unique(values))


def test_texts_and_pages_get_the_same_simhashes_as_elsewhere(session: Any) -> None:
    story = " ".join(f"word{number}" for number in range(40))
    texts = [story, f"{story} again", "another story", None]
    frame = session.createDataFrame(list(enumerate(texts)), "id int, text string")
    found = spark.fingerprint(frame, "text").orderBy("id").collect()
    with pytest.warns(UserWarning, match="1 of 3 texts"):
        marked = mark_duplicates(pd.DataFrame({"text": texts}), "text")
    assert [row.simhash for row in found] == [
        None if pd.isna(one) else to_bigint(int(one)) for one in marked["simhash"]
    ]
    assert [row.reason for row in found] == [None, None, "too_short", "null"]
    assert [row.text for row in found] == texts
    paths = sorted((ROOT / "examples" / "pages").glob("*.html"))[:6]
    rows = [(path.as_uri(), path.read_bytes()) for path in paths]
    frame = session.createDataFrame(
        [*rows, ("https://a.example/", b"%PDF-1.7")], "url string, html binary"
    )
    for scheme in ("pgsimhash-article-1", "pgsimhash-interop-1"):
        pages = spark.fingerprint(frame, "html", kind="html", scheme=scheme, url_column="url")
        by_url = {row.url: (row.simhash, row.reason) for row in pages.collect()}
        for url, html in rows:
            assert by_url[url] == (to_bigint(fingerprint(html, url, scheme=scheme).simhash), None)
        assert by_url["https://a.example/"] == (None, "not_html")


def test_an_invalid_frame_of_simhashes_is_refused(session: Any) -> None:
    frame = session.createDataFrame([("a", 1)], "text string, number int")
    kind: Any = "pdf"
    calls: list[Callable[[], object]] = [
        lambda: spark.pairs(frame),
        lambda: spark.pairs(frame, column="number"),
        lambda: spark.pairs(frame_of(session, np.empty(0, dtype=np.uint64)), 13),
        lambda: spark.find(frame, frame),
        lambda: spark.fingerprint(frame, "nothing"),
        lambda: spark.fingerprint(frame, "number"),
        lambda: spark.fingerprint(frame, "text", kind=kind),
        lambda: spark.fingerprint(frame, "text", url_column="number"),
        lambda: spark.fingerprint(frame.withColumnRenamed("number", "simhash"), "text"),
    ]
    for call in calls:
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            call()
    with pytest.raises(ArgumentError, check=because("unknown_scheme")):
        spark.fingerprint(frame, "text", scheme="nobody-1")
