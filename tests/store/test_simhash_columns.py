"""Simhashes come as arrays, columns of data frames or integers; all entrances read them alike."""

from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pgsimhash import Store, connect, find_pairs
from pgsimhash.batch import parquet
from pgsimhash.errors import ArgumentError
from tests.database import simhashes_in
from tests.refusals import because

TOP = 2**64 - 1
SIMHASHES = [1, 2**63, TOP]
BIGINTS = [1, -(2**63), -1]

COLUMNS: dict[str, Any] = {
    "uint64": np.array(SIMHASHES, dtype=np.uint64), "big-endian": np.array(SIMHASHES, dtype=">u8"),
    "strided": np.repeat(np.array(SIMHASHES, dtype=np.uint64), 2)[::2], "int64": np.array(BIGINTS),
    "objects": np.array(SIMHASHES, dtype=object), "list": SIMHASHES, "list of bigints": BIGINTS,
    "pandas UInt64": pd.Series(SIMHASHES, dtype="UInt64"),
    "pandas uint64": pd.Series(SIMHASHES, dtype="uint64", index=[7, 8, 9]),
    "pandas Int64": pd.Series(BIGINTS, dtype="Int64"),
    "pandas object": pd.Series(SIMHASHES, dtype=object),
    "polars UInt64": pl.Series(SIMHASHES, dtype=pl.UInt64),
    "polars Int64": pl.Series(BIGINTS, dtype=pl.Int64),
    "pyarrow uint64": pa.array(SIMHASHES, pa.uint64()),
    "pyarrow chunks": pa.chunked_array([pa.array(BIGINTS, pa.int64())]),
}  # fmt: skip

WRONG: dict[str, Any] = {
    "pandas NA": pd.Series([1, None], dtype="UInt64"),
    "polars null": pl.Series([1, None], dtype=pl.UInt64),
    "pyarrow null": pa.array([1, None], pa.uint64()), "None": [1, None], "list of floats": [1, 1.5],
    "float": np.array([[1], [1.5]]).ravel(), "bool": [1, True], "text": [1, "2"],
    "too large": [1, 2**64], "too small": [1, -(2**63) - 1],
    "object": np.array([1, None], dtype=object),
}  # fmt: skip


def test_every_entrance_reads_them(store: Store, dsn: str, tmp_path: Path) -> None:
    with connect(dsn, collection="other", create=True) as other:
        other.add_page("https://a.example/", 3)
    list(store.add_pages([(f"https://a.example/{n}", n) for n in SIMHASHES], distance=0))
    known = simhashes_in(store)
    assert known.dtype == np.uint64
    assert sorted(known.tolist()) == SIMHASHES
    for name, column in COLUMNS.items():
        matches = store.find_many(column, 0)
        assert matches.queries.tolist() == [0, 1, 2], name
        assert matches.simhashes.tolist() == SIMHASHES, name
        path = tmp_path / f"{name}.parquet"
        assert parquet.write_archive(path, column) == 3, name
        assert np.concatenate(list(parquet.read_simhashes(path))).tolist() == SIMHASHES, name
        assert parquet.find_many(path, column, 0).simhashes.tolist() == SIMHASHES, name
        assert find_pairs(column, 2).low.tolist() == [1], name


def test_none_are_none(store: Store, tmp_path: Path) -> None:
    assert len(simhashes_in(store)) == 0
    for name, column in COLUMNS.items():
        assert len(store.find_many(column[:0]).queries) == 0, name
        assert parquet.write_archive(tmp_path / f"{name}.parquet", column[:0]) == 0, name
        assert len(find_pairs(column[:0]).low) == 0, name


def test_a_row_that_is_no_simhash_is_named_before_any_write(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "simhashes.parquet"
    uses = store.find_many, partial(parquet.write_archive, path), find_pairs
    for (name, column), use in product(WRONG.items(), uses):
        row = "row 0" if name == "float" else "row 1"
        with pytest.raises(ArgumentError, match=row, check=because("invalid_argument")):
            pytest.fail(f"{name}: {use(column)}")
    assert not path.exists()


def test_anything_else_is_refused(store: Store) -> None:
    others: list[Any] = ["12", b"12", 7, None, {1: 2}, np.array([[1]], dtype=np.uint64)]
    uses: list[Callable[[Any], Any]] = [store.find_many, find_pairs]
    for values, use in product(others, uses):
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            pytest.fail(f"{values}: {use(values)}")
