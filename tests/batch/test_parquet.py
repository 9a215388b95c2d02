"""Parquet files preserve their contents, in bounded memory; other files are refused."""

import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from pgsimhash import ArgumentError, Store
from pgsimhash.batch import parquet
from pgsimhash.pages.records import Matches, Verdict
from pgsimhash.sources import read_pages
from tests.conftest import ROOT
from tests.database import copy_simhashes
from tests.programs import python
from tests.refusals import because
from tests.search.test_pairs import near_to

PAGES = ROOT / "examples" / "pages"

Simhashes = NDArray[np.uint64]


def made(count: int, seed: int = 1) -> Simhashes:
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "it.parquet"


def simhashes_in(path: Path) -> list[int]:
    return [value for array in parquet.read_simhashes(path) for value in array.tolist()]


def verdicts_in(path: Path) -> list[Verdict]:
    return [Verdict(**row) for row in pq.read_table(path).to_pylist()]


def test_simhashes_round_trip(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "SIMHASH_ROWS", 1000)
    values = made(5500)
    values[:2] = 0, 2**64 - 1
    assert parquet.write_archive(path, values) == 5500
    read = list(parquet.read_simhashes(path))
    assert [len(array) for array in read] == [1000] * 5 + [500]
    assert np.array_equal(np.concatenate(read), np.sort(values))
    assert pq.ParquetFile(path).metadata.num_row_groups == 6
    assert pq.read_schema(path).equals(parquet.SIMHASHES)
    # Files of other programs may have more columns.
    pl.DataFrame({"more": ["x"], "simhash": pl.Series([5], dtype=pl.UInt64)}).write_parquet(path)
    assert simhashes_in(path) == [5]


def as_rows(matches: Matches) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in matches), strict=True))


def test_an_archive_is_sorted_and_small(path: Path) -> None:
    """The bound is the logarithm of the number of sets: 64 - log2(n) + log2(e) bits each."""
    count = 200_000
    values = made(count)
    assert parquet.write_archive(path, np.append(values, values[:20_000])) == count
    assert simhashes_in(path) == sorted(values.tolist())
    bound = (64 - np.log2(count) + np.log2(np.e)) / 8
    assert bound < path.stat().st_size / count < 1.05 * bound


@pytest.mark.parametrize("distance", [0, 1, 3, 8, 12])
def test_find_many_is_exact(distance: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "SIMHASH_ROWS", 500)
    known, rng = made(5_000), np.random.default_rng(distance)
    copies = [near_to(known[:50], bits, rng) for bits in (1, 3, 6, 12)]
    batch = np.concatenate([known[:20], *copies, known[5:9], made(9, seed=2)])
    parquet.write_archive(path, known)
    matches = parquet.find_many(path, batch, distance)
    expected = sorted(
        (query, bits, int(value))
        for query, asked in enumerate(batch)
        for value, bits in zip(known, np.bitwise_count(known ^ asked).tolist(), strict=True)
        if bits <= distance
    )
    assert [(query, bits, value) for query, value, bits in as_rows(matches)] == expected
    assert len(expected) >= 24
    # Any file of simhashes can be searched, also an unsorted one.
    pq.write_table(pa.table({"simhash": known}), path)
    assert as_rows(parquet.find_many(path, batch, distance)) == as_rows(matches)


def test_collections_are_saved_as_archives(store: Store, dsn: str, path: Path) -> None:
    assert parquet.save_simhashes(store, path) == 0
    assert list(parquet.read_simhashes(path)) == []
    other = path.with_name("other.parquet")
    assert list(parquet.write_verdicts(other, [])) == verdicts_in(other) == []
    assert parquet.write_clusters(path, store.clusters()) == 0
    assert pq.read_table(path).num_rows == 0
    values = made(3000)
    copy_simhashes(dsn, np.concatenate([values, values[:100]]))
    assert parquet.save_simhashes(store, path) == 3000
    assert simhashes_in(path) == sorted(values.tolist())
    matches = parquet.find_many(path, values, 8)
    assert sorted(as_rows(matches)) == sorted(as_rows(store.find_many(values, 8)))


def test_verdicts_and_clusters(store: Store, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS", 10)
    pages = [*read_pages([PAGES]), ("nowhere", b"<p>none"), ("https://a.example/", b"%PDF-1.7")]
    verdicts = list(parquet.write_verdicts(path, store.ingest_many(pages)))
    assert verdicts_in(path) == verdicts
    assert {one.kind for one in verdicts} >= {"new", "duplicate", "too_short", "failed"}
    assert (len(verdicts), pq.ParquetFile(path).metadata.num_row_groups) == (26, 3)
    clusters = list(store.clusters())
    assert parquet.write_clusters(path, store.clusters()) == len(clusters) == 8
    assert [tuple(row.values()) for row in pq.read_table(path).to_pylist()] == [
        (cluster.cluster_id, page.page_id, page.url, page.simhash, page is cluster.canonical)
        for cluster in clusters
        for page in cluster.pages
    ]


def test_all_yielded_verdicts_and_all_their_fields_are_in_the_file(path: Path) -> None:
    def verdicts() -> Iterator[Verdict]:
        yield from [Verdict(f"https://a.example/{n}", "new", "first_seen", n) for n in range(5)]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(parquet.write_verdicts(path, verdicts()))
    assert [one.simhash for one in verdicts_in(path)] == [0, 1, 2, 3, 4]
    with pytest.raises(ArgumentError, match="the file exists", check=because("invalid_file")):
        next(parquet.write_verdicts(path, verdicts()))
    assert len(verdicts_in(path)) == 5
    path.unlink()
    written = parquet.write_verdicts(path, verdicts())
    assert [next(written).simhash, next(written).simhash] == [0, 1]
    written.close()
    assert [one.simhash for one in verdicts_in(path)] == [0, 1]
    assert [field.name for field in parquet.VERDICTS] == [
        one.name for one in fields(Verdict) if one.name != "markdown"
    ]
    strange = Verdict("file:///\udcff", "another", "some_day", 2**64 - 1, 12, keep=True)  # type: ignore[arg-type]
    path.unlink()
    list(parquet.write_verdicts(path, [strange]))
    (back,) = verdicts_in(path)
    assert (back.url, back.kind, back.simhash) == ("file:///\\udcff", "another", 2**64 - 1)


def test_of_two_writers_of_one_file_neither_loses_its_verdicts(path: Path) -> None:
    verdicts = [Verdict(f"https://a.example/{n}", "new", "first_seen", n) for n in range(5)]
    first, second = (parquet.write_verdicts(path, verdicts[:n]) for n in (2, 5))
    next(first), next(second)
    assert len(list(first)) == 1
    with pytest.raises(ArgumentError, match="another program wrote it meanwhile; this") as error:
        list(second)
    other = Path(str(error.value).rpartition(" ")[2])
    assert {*path.parent.iterdir()} == {path, other}
    assert [len(verdicts_in(each)) for each in (path, other)] == [2, 5]
    assert other.suffix == path.suffix


def test_a_disk_that_fills_up_and_an_unwritable_file(path: Path) -> None:
    parquet.write_archive(path, np.arange(9, dtype=np.uint64))
    before = path.read_bytes()
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, most))
    try:
        with pytest.raises(ArgumentError, match=r"cannot be written: .*File too large"):
            parquet.write_archive(path, made(1 << 17))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    # An unwritable file is reported before the first verdict is read.
    verdicts = iter([Verdict("https://a.example/", "new", "first_seen")])
    with pytest.raises(ArgumentError, match="cannot be written", check=because("invalid_file")):
        list(parquet.write_verdicts(path.parent / "none" / "it.parquet", verdicts))
    assert len(list(verdicts)) == 1


UNREADABLE = [
    (pa.table({"simhash": pa.array([1, 2], pa.int64())}), "'simhash' of .* is int64, not uint64"),
    (pa.table({"simhash": pa.array(["00ff"])}), "is string, not uint64"),
    (pa.table({"simhash": pa.array([1, None], pa.uint64())}), "has a null"),
    (pa.table({"other": [1], "more": [2]}), "one column .*it has other, more"),
    (pa.Table.from_arrays([pa.array([1], pa.uint64())] * 2, ["simhash"] * 2), "have one column"),
]


@pytest.mark.parametrize(
    "read",
    [parquet.read_simhashes, lambda path: parquet.find_many(path, np.arange(3, dtype=np.uint64))],
)
def test_an_invalid_parquet_file_is_refused(read: Callable[[Path], Any], path: Path) -> None:
    def refused(why: str) -> None:
        with pytest.raises(ArgumentError, match=why, check=because("invalid_file")):
            list(read(path))

    refused("No such file")
    path.mkdir()
    refused("cannot be read")
    path.rmdir()
    for content in (b"", b"PAR1", b"{}" * 100):
        path.write_bytes(content)
        refused("cannot be read as a Parquet file")
    for table, why in UNREADABLE:
        pq.write_table(table, path)
        refused(why)
    parquet.write_archive(path, made(100_000))
    data = path.read_bytes()
    for damaged in (data[: len(data) // 2], data[:4] + bytes(56) + data[60:]):
        path.write_bytes(damaged)
        refused("is damaged|cannot be read")


def test_one_flipped_bit_never_gives_other_simhashes(path: Path) -> None:
    values = np.sort(made(50))
    parquet.write_archive(path, values)
    data = path.read_bytes()
    refused = 0
    for place in range(0, 8 * len(data), 3):
        damaged = bytearray(data)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            read = np.concatenate([values[:0], *parquet.read_simhashes(path)])
        except ArgumentError:
            refused += 1
        else:
            assert np.array_equal(read, values)
    # Most of the file is simhashes; bytes without effect are in headers and in the footer.
    assert refused > 4 / 3 * len(data)


MEMORY = """
import resource, sys
from pgsimhash.batch import parquet
from pgsimhash.pages.records import Verdict
path, count = sys.argv[1], int(sys.argv[2])
urls = (f"https://example.com/a/rather/long/address/{n}" for n in range(count))
verdicts = (Verdict(url, "near", "within_distance", 5, 4, url) for url in urls)
assert sum(1 for _ in parquet.write_verdicts(path, verdicts)) == count
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.skipif(sys.platform == "darwin", reason="ru_maxrss is in other units")
def test_memory_does_not_grow_with_the_rows(path: Path) -> None:
    few, many = (
        int(python(MEMORY, path.with_name(f"{count}.parquet"), str(count)))
        for count in (70_000, 210_000)
    )
    assert many < few * 1.35
