"""Near pairs among pages without labels."""

from __future__ import annotations

import csv
import io
import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pgsimhash.analysis import near_pairs
from pgsimhash.analysis.labels import read_labels
from pgsimhash.analysis.near_pairs import sample_near_pairs, unlabelled_csv
from pgsimhash.bits import hamming_distance
from pgsimhash.errors import ArgumentError
from tests.refusals import because


def clustered(count: int) -> NDArray[np.uint64]:
    """Simhashes of which many are near others."""
    rng = np.random.default_rng(1)
    centres = rng.integers(0, 2**64, size=9, dtype=np.uint64)
    flips = rng.integers(0, 2**64, size=(4, count), dtype=np.uint64)
    noise = np.bitwise_and.reduce(flips[:3], axis=0)
    return np.asarray(centres[rng.integers(0, 9, size=count)] ^ noise)


def names(count: int) -> list[str]:
    return [f"https://a.example/{number}" for number in range(count)]


def test_every_pair_up_to_16_bits_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    simhashes = clustered(90)
    true = Counter(hamming_distance(a, b) for a, b in itertools.combinations(simhashes.tolist(), 2))
    for rows, columns in ((128, 1 << 14), (7, 11), (11, 7)):
        monkeypatch.setattr(near_pairs, "_ROWS", rows)
        monkeypatch.setattr(near_pairs, "_COLUMNS", columns)
        near = sample_near_pairs(names(90), simhashes, 8)
        assert near.pages == 90
        assert near.histogram.tolist() == [true[bits] for bits in range(17)]


def test_borderline_pairs_are_real_and_around_the_distance() -> None:
    simhashes = clustered(300)
    by_name = dict(zip(names(300), simhashes.tolist(), strict=True))
    near = sample_near_pairs(names(300), simhashes, 8, borderline=50)
    assert len(near.borderline) == len({(pair.a, pair.b) for pair in near.borderline}) == 50
    for pair in near.borderline:
        assert hamming_distance(by_name[pair.a], by_name[pair.b]) == pair.distance
        assert abs(pair.distance - 8) <= 2


def test_each_distance_gets_its_share_of_the_borderline_pairs() -> None:
    shares = Counter(
        pair.distance
        for pair in sample_near_pairs(names(600), clustered(600), 12, borderline=50).borderline
    )
    assert shares == dict.fromkeys(range(10, 15), 10)


def test_what_one_distance_lacks_the_others_give() -> None:
    simhashes = np.array([0, 0b1, *[(2**7 - 1) << shift for shift in (1, 20, 40)]], dtype=np.uint64)
    near = sample_near_pairs(names(5), simhashes, 7, borderline=5)
    assert [pair.distance for pair in near.borderline] == [7, 7, 7, 8, 8]


def test_the_same_seed_chooses_the_same_pairs() -> None:
    def chosen(seed: int) -> object:
        return sample_near_pairs(names(300), clustered(300), 8, 20, seed).borderline

    assert chosen(1) == chosen(1) != chosen(2)


def test_nothing_is_near_in_an_empty_sample() -> None:
    near = sample_near_pairs([], np.empty(0, dtype=np.uint64), 8)
    assert near.histogram.sum() == len(near.borderline) == near.pages == 0


def test_what_is_written_waits_for_labels(tmp_path: Path) -> None:
    near = sample_near_pairs(names(300), clustered(300), 8, borderline=5)
    path = tmp_path / "borderline.csv"
    path.write_text(unlabelled_csv(near.borderline))
    labels = read_labels(path)
    assert (labels.pairs, labels.unlabelled) == ([], 5)
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [int(row["distance"]) for row in rows] == [pair.distance for pair in near.borderline]


def test_wrong_arguments_are_refused() -> None:
    simhashes = np.zeros(2, dtype=np.uint64)
    with pytest.raises(ArgumentError, match="0 to 16"):
        sample_near_pairs(names(2), simhashes, 17)
    with pytest.raises(ArgumentError, check=because("invalid_simhash")):
        sample_near_pairs(names(2), simhashes.view(np.int64), 8)
    with pytest.raises(ValueError, match="one URL for each simhash"):
        sample_near_pairs(names(3), simhashes, 8)
    with pytest.raises(ValueError, match="0 or more"):
        sample_near_pairs(names(2), simhashes, 8, borderline=-1)
