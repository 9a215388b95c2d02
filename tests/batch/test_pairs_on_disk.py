"""Pairs on disk equal those in memory; interruptions repeat and lose nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pgsimhash.batch import pairs_on_disk as module
from pgsimhash.batch.pairs_on_disk import pairs_on_disk
from pgsimhash.errors import ArgumentError
from pgsimhash.search import prefix_pairs as block_pairs
from pgsimhash.search.pairs import find_pairs
from tests.refusals import because

Rows = list[tuple[int, int, int]]


def rows(blocks: Any) -> Rows:
    return [row for one in blocks for row in zip(*(side.tolist() for side in one), strict=True)]


def near_copies(seed: int, originals: int = 300, hot: int = 0) -> NDArray[np.uint64]:
    """Simhashes with three copies each, some in a frequent prefix, and some repeated."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2**64, originals, dtype=np.uint64)
    values[:hot] >>= np.uint64(20)
    flips = np.uint64(1) << rng.integers(0, 64, (3, originals, 3), dtype=np.uint64)
    copies = np.bitwise_xor.reduce(flips, axis=2) ^ values
    return np.concatenate([values, *copies, values[:10]])


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    hot=st.integers(0, 100),
    distance=st.integers(0, 6),
    memory=st.sampled_from([40 * 99, 40 * 333, 1 << 28]),
    cut=st.integers(0, 500),
)
def test_the_pairs_are_those_found_in_memory(
    seed: int, hot: int, distance: int, memory: int, cut: int
) -> None:
    values = near_copies(seed, 100, hot)
    arrays = [values[:cut], values[cut:]]
    with TemporaryDirectory() as folder:
        found = rows(pairs_on_disk(arrays, folder, distance, memory=memory))
        again = rows(pairs_on_disk(values, folder, distance))
    assert sorted(found) == rows([find_pairs(values, distance)])
    assert again == found


def test_an_interrupted_search_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = near_copies(1)
    passes: list[int] = []
    each = block_pairs.pairs_by

    def counted(permutation: Any, layout: Any, part: Any, *more: Any) -> Any:
        passes.append(len(part))
        if len(passes) in (5, 9):
            raise KeyboardInterrupt
        return each(permutation, layout, part, *more)

    expected = rows([find_pairs(values, 3)])
    monkeypatch.setattr(module, "pairs_by", counted)
    before: Rows = []
    for _ in range(2):
        blocks = pairs_on_disk(values, tmp_path / "work", 3, memory=40 * 200)
        with pytest.raises(KeyboardInterrupt):
            before.extend(row for block in blocks for row in rows([block]))
    found = rows(pairs_on_disk(values, tmp_path / "work", 3, memory=40 * 200))
    assert sorted(found) == expected
    assert set(before) < set(found)
    # Each part is read once per permutation, besides the interrupted ones.
    permutations = (sum(passes) - passes[4] - passes[8]) / len(np.unique(values))
    assert permutations.is_integer()
    assert len(passes) > 3 * permutations


def test_a_half_written_file_does_not_count(tmp_path: Path) -> None:
    values = near_copies(2)
    expected = rows(pairs_on_disk(values, tmp_path, 3))
    for path in tmp_path.iterdir():
        if path.name.count("-") > 3:
            path.rename(path.with_name(f"{path.name}.unfinished"))
    assert rows(pairs_on_disk(values, tmp_path, 3)) == expected
    (tmp_path / "work.json").unlink()
    (tmp_path / "simhashes").write_bytes(b"half")
    assert rows(pairs_on_disk(values, tmp_path, 3)) == expected


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:160],
        lambda data: data[:-8] + bytes([data[-8] ^ 1]) + data[-7:],
        lambda data: data[:64] + bytes([data[64] ^ 1]) + data[65:],
        lambda _: b"",
    ],
    ids=["truncated", "last bit", "another bit", "empty"],
)
def test_damaged_files_are_written_again(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    values = near_copies(6)
    expected = rows(pairs_on_disk(values, tmp_path, 3))
    paths = [path for path in tmp_path.iterdir() if path.name != "work.json"]
    assert len(paths) > 4
    for path in paths:
        intact = path.read_bytes()
        path.write_bytes(damage(intact))
        assert rows(pairs_on_disk(values, tmp_path, 3)) == expected
        assert path.read_bytes() == intact


def test_files_of_other_pairs_and_half_a_description_do_not_count(tmp_path: Path) -> None:
    values = near_copies(6)
    expected = rows(pairs_on_disk(values, tmp_path / "it", 3))
    list(pairs_on_disk(near_copies(7), tmp_path / "other", 3))
    for path in (tmp_path / "other").glob("*-*"):
        path.replace(tmp_path / "it" / path.name)
    assert rows(pairs_on_disk(values, tmp_path / "it", 3)) == expected
    work = tmp_path / "it" / "work.json"
    work.write_bytes(work.read_bytes()[:40])
    assert rows(pairs_on_disk(values, tmp_path / "it", 3)) == expected


def test_other_simhashes_with_the_same_sum_and_xor_are_refused(tmp_path: Path) -> None:
    values = near_copies(3)
    list(pairs_on_disk(values, tmp_path, 3))
    others = values.copy()
    # Flip a bit that only one of the two has.
    others[20:22] ^= np.uint64(int(differing := values[20] ^ values[21]) & -int(differing))
    assert others.sum() == values.sum()
    assert np.bitwise_xor.reduce(others) == np.bitwise_xor.reduce(values)
    with pytest.raises(ArgumentError, check=because("other_work")):
        pairs_on_disk(others, tmp_path, 3)


@pytest.mark.parametrize(
    ("values", "distance"),
    [(near_copies(4), 3), (near_copies(3), 4), (near_copies(3)[:-1], 3)],
)
def test_a_folder_with_other_pairs_is_refused(
    values: NDArray[np.uint64], distance: int, tmp_path: Path
) -> None:
    list(pairs_on_disk(near_copies(3), tmp_path, 3))
    with pytest.raises(ArgumentError, match="another folder", check=because("other_work")):
        pairs_on_disk(values, tmp_path, distance)
    assert rows(pairs_on_disk(near_copies(3), tmp_path, 3))


def test_invalid_searches_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, check=because("invalid_distance")):
        pairs_on_disk(near_copies(1), tmp_path / "work", 13)
    assert not (tmp_path / "work").exists()
    with pytest.raises(ArgumentError, check=because("invalid_simhash")):
        pairs_on_disk([np.arange(3)], tmp_path / "work")  # type: ignore[list-item]
    assert rows(pairs_on_disk([], tmp_path / "none")) == []


def test_the_progress_is_reported(tmp_path: Path) -> None:
    values = near_copies(5, 5000)
    told: list[tuple[int, int]] = []
    blocks = pairs_on_disk(
        values, tmp_path, 3, memory=40 * 3000, progress=lambda *here: told.append(here)
    )
    found = rows(blocks)
    done, totals = [one for one, _ in told], {total for _, total in told}
    assert done == sorted(done)
    assert totals == {done[-1]}
    assert len(set(done)) > 20
    told.clear()
    again = pairs_on_disk(values, tmp_path, 3, progress=lambda *here: told.append(here))
    assert rows(again) == found
    assert told[-1] == (done[-1], done[-1])
