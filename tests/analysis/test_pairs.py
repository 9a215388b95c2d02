"""Pairs of pages with their URLs, samples, pairs to label, and files of labelled pairs."""

import csv
import io
import random
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pgsimhash import Store, analysis, connect
from pgsimhash.analysis import LabelledPair
from pgsimhash.analysis.pairs import NearSample, Sample, near_sample, read_labels, unlabelled_csv
from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.bits import hamming_distance
from tests.database import copy_simhashes
from tests.refusals import because
from tests.store.content import page_at
from tests.store.read.test_clusters import FAR, fill


def clustered(count: int) -> NDArray[np.uint64]:
    """Simhashes, many of them near others."""
    rng = np.random.default_rng(1)
    centres = rng.integers(0, 2**64, size=9, dtype=np.uint64)
    flips = rng.integers(0, 2**64, size=(4, count), dtype=np.uint64)
    noise = np.bitwise_and.reduce(flips[:3], axis=0)
    return np.asarray(centres[rng.integers(0, 9, size=count)] ^ noise)


def compare(simhashes: NDArray[np.uint64], *options: int, titles: Any = None) -> NearSample:
    count = len(simhashes)
    return near_sample(Sample(names(count), simhashes, list(titles or [None] * count)), *options)


def names(count: int) -> list[str]:
    return [f"https://a.example/{number}" for number in range(count)]


def test_every_pair_up_to_16_bits_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    simhashes = clustered(90)
    true = Counter(hamming_distance(a, b) for a, b in combinations(simhashes.tolist(), 2))
    for rows in (128, 7):
        monkeypatch.setattr("pgsimhash.analysis.pairs._ROWS", rows)
        near = compare(simhashes, 8)
        assert near.pages == 90
        assert near.histogram.tolist() == [true[bits] for bits in range(17)]


def test_borderline_pairs_are_real_and_around_the_distance() -> None:
    simhashes = clustered(300)
    by_name = dict(zip(names(300), simhashes.tolist(), strict=True))
    near = compare(simhashes, 8, 50)
    assert len(near.borderline) == len({(pair.a, pair.b) for pair in near.borderline}) == 50
    for pair in near.borderline:
        assert hamming_distance(by_name[pair.a], by_name[pair.b]) == pair.distance
        assert abs(pair.distance - 8) <= 2
    # Missing pairs of one distance come from others.
    simhashes = np.array([0, 0b1, *[(2**7 - 1) << shift for shift in (1, 20, 40)]], dtype=np.uint64)
    near = compare(simhashes, 7, 5)
    assert [pair.distance for pair in near.borderline] == [7, 7, 7, 8, 8]


def scattered(big: int, small: int) -> tuple[NDArray[np.uint64], list[int]]:
    """Simhashes of one big cluster and of many pairs, each 8 bits apart, and their clusters."""
    rng = np.random.default_rng(4)
    centres = rng.integers(0, 2**64, size=small + 1, dtype=np.uint64).tolist()
    eight = [sum(1 << int(bit) for bit in rng.choice(64, 8, replace=False)) for _ in range(big)]
    values = [centres[0] ^ flips for flips in eight] + [centres[0]]
    clusters = [0] * len(values)
    for number, centre in enumerate(centres[1:], 1):
        values += [centre, centre ^ eight[number]]
        clusters += [number, number]
    order = rng.permutation(len(values))
    return np.array(values, dtype=np.uint64)[order], [clusters[at] for at in order.tolist()]


def test_borderline_pairs_are_spread_over_clusters() -> None:
    """For any size of the big cluster, and any number of chosen pairs."""
    values, cluster_of = scattered(1000, 40)
    by_name = dict(zip(names(len(values)), cluster_of, strict=True))
    for seed in range(5):
        near = compare(values, 8, 20, seed)
        assert near.histogram[8] > 1000
        asked = Counter(by_name[pair.a] for pair in near.borderline)
        assert sum(asked.values()) == 20
        assert max(asked.values()) == 1
        near = compare(values, 8, 60, seed)
        asked = Counter(by_name[pair.a] for pair in near.borderline)
        assert set(asked) == set(range(41))
        assert [asked[number] for number in range(1, 41)] == [1] * 40
    # Ten pages with one simhash and ten with another are one question, not a hundred.
    values = np.array([0] * 10 + [0xFF] * 10 + [0xFF << 20, 0xFF << 40], dtype=np.uint64)
    near = compare(values, 8, 3)
    simhashes = [{int(values[int(p.rsplit("/")[-1])]) for p in (x.a, x.b)} for x in near.borderline]
    assert len(simhashes) == 3
    assert set.union(*simhashes) == {0, 0xFF, 0xFF << 20, 0xFF << 40}


def test_titles_are_of_the_pages_and_no_formula(tmp_path: Path) -> None:
    values = np.array([0, 0xFF, 0xFF00], dtype=np.uint64)
    titles = ["=HYPERLINK(A1)", 'A,  "quoted"\n title' + "x" * 400, None]
    near = compare(values, 8, titles=titles)
    told = dict(zip(names(3), titles, strict=True))
    assert len(near.borderline) == 2
    for pair in near.borderline:
        assert (pair.a_title, pair.b_title) == (told[pair.a], told[pair.b])
    path = tmp_path / "borderline.csv"
    path.write_text(unlabelled_csv(near.borderline))
    with pytest.raises(ArgumentError, match="2 rows have no label yet"):
        read_labels(path)
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [int(row["distance"]) for row in rows] == [pair.distance for pair in near.borderline]
    cells = {row[f"{side}_title"] for row in rows for side in "ab"}
    assert cells == {"'=HYPERLINK(A1)", ('A, "quoted" title' + "x" * 400)[:300], ""}


def test_the_same_seed_chooses_the_same_pairs() -> None:
    first, same, other = (compare(clustered(300), 8, 20, seed).borderline for seed in (1, 1, 2))
    assert first == same != other
    near = compare(np.empty(0, dtype=np.uint64), 8)
    assert near.histogram.sum() == len(near.borderline) == near.pages == 0
    with pytest.raises(ArgumentError, check=because("invalid_argument")):
        compare(np.zeros(2, dtype=np.uint64), 17)


def test_a_sample_is_the_same_for_the_same_seed_and_another_for_another(store: Store) -> None:
    known = {f"https://a.example/{n}": n << 50 for n in range(200)}
    list(store.add_many([("https://a.example/7", 3), *known.items()], distance=0))
    first, again, other = (analysis.sample(store, 20, seed) for seed in (1, 1, 2))
    assert first[0] == again[0]
    assert first[1].tolist() == again[1].tolist()
    assert set(first[0]) != set(other[0])
    whole = analysis.sample(store, 1000)
    for size, (urls, simhashes, titles) in ((20, first), (20, other), (200, whole)):
        assert simhashes.dtype == np.uint64
        assert len(set(urls)) == len(urls) == size
        assert simhashes.tolist() == [known[url] for url in urls]
        assert titles == [None] * size


def found(store: Store, distance: int) -> list[tuple[str, str, int]]:
    pairs = list(analysis.page_pairs(store, distance))
    for pair in pairs:
        assert (pair.a.simhash ^ pair.b.simhash).bit_count() == pair.distance <= distance
    return [
        (pair.a.url.removeprefix("https://"), pair.b.url.removeprefix("https://"), pair.distance)
        for pair in pairs
    ]


def some_pages(seed: int) -> dict[str, int]:
    rng = random.Random(seed)
    centres = [rng.getrandbits(64) for _ in range(20)]
    return {
        f"a.example/{number}": rng.choice(centres)
        ^ sum(1 << bit for bit in rng.sample(range(64), rng.choice([0, 0, 1, 2, 3])))
        for number in range(300)
    }


def test_pairs_go_by_first_pages(dsn: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgsimhash.analysis.pairs._PAIRS", 7)
    former, known = some_pages(1), some_pages(2)
    fill(store, former)
    fill(store, known)
    with connect(dsn, collection="other") as other:
        fill(other, {f"b.example/{n}": value for n, value in enumerate(known.values())})
    # A page that reverts to an earlier simhash gets no new version.
    unchanged = [url for url in known if known[url] == former[url]]
    first: dict[int, str] = {}
    for url in [*unchanged, *(url for url in known if url not in unchanged)]:
        first.setdefault(known[url], url)
    shared = {(frozenset((first[value], url)), 0) for url, value in known.items()}
    for distance in (0, 6):
        expected = {
            (frozenset((first[a], first[b])), bits)
            for a, b in combinations(sorted(first), 2)
            if 0 < (bits := (a ^ b).bit_count()) <= distance
        } | {(pages, bits) for pages, bits in shared if len(pages) == 2}
        pairs = found(store, distance)
        assert len(pairs) == len(expected) > 90
        assert {(frozenset((a, b)), bits) for a, b, bits in pairs} == expected


def test_a_hot_simhash_makes_as_many_pairs_as_it_has_other_pages(store: Store, dsn: str) -> None:
    fill(store, {"a.example/first": FAR, "a.example/near": FAR ^ 1})
    copy_simhashes(dsn, np.full(5000, FAR, dtype=np.uint64))
    pairs = found(store, 3)
    assert Counter(bits for *_, bits in pairs) == {0: 5000, 1: 1}
    assert {a for a, _, bits in pairs if bits == 0} == {"a.example/first"}


def test_titles_come_along(store: Store) -> None:
    words = " ".join(f"word{n} and" for n in range(60))
    for name in "ab":
        store.ingest(f"https://a.example/{name}", f"<title>Page {name}</title><p>{words}</p>")
    known = page_at(store, "https://a.example/a")
    (pair,) = analysis.page_pairs(store)
    simhash = f"{known.simhash:016x}"
    assert pair.as_json() == {
        **{"a": "https://a.example/a", "b": "https://a.example/b", "distance": 0},
        **{"a_title": "Page a", "b_title": "Page b"},
        **{"a_simhash": simhash, "b_simhash": simhash},
    }


def test_a_page_deleted_meanwhile_is_left_out_and_a_loop_may_stop(store: Store, dsn: str) -> None:
    fill(store, {"a.example/1": 0, "a.example/2": 0, "a.example/3": 1, "a.example/4": 3})
    pairs = analysis.page_pairs(store, 1)
    assert next(pairs).distance == 0
    with connect(dsn) as other:
        other.delete("https://a.example/3")
    assert list(pairs) == []
    pairs = analysis.page_pairs(store, 2)
    next(pairs)
    assert store.add("https://a.example/", FAR).verdict == "new"
    pairs.close()
    assert store.add("https://a.example/", FAR).verdict == "unchanged"
    assert len(list(analysis.page_pairs(store, 2))) == 2


def read(folder: Path, text: str, encoding: str = "utf-8") -> list[LabelledPair]:
    path = folder / "pairs.csv"
    path.write_text(text, encoding=encoding)
    return read_labels(path)


def complaint(folder: Path, text: str, encoding: str = "utf-8") -> str:
    with pytest.raises(ArgumentError, check=because("invalid_file")) as caught:
        read(folder, text, encoding)
    return str(caught.value)


def test_pairs_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    labels = read(
        tmp_path, "a,b,label,kind,note\n1,2,near-dup,print,x\n1,3,distinct,,\n2,3,graded,,\n"
    )
    assert labels == [
        LabelledPair("1", "2", "copy", "print"), LabelledPair("1", "3", "distinct"),
        LabelledPair("2", "3", "graded"),
    ]  # fmt: skip
    assert len(read(tmp_path, "a,b,label\n1,2,duplicate\n2,1,near-dup\n")) == 1
    words = [" Duplicate ", "near-dup", "distinct", "DIFFERENT", "graded"]
    rows = "\n".join(f"1,{number},{word}" for number, word in enumerate(words, 2))
    found = [pair.label for pair in read(tmp_path, f"a,b,label\n{rows}\n")]
    assert found == ["copy", "copy", "distinct", "distinct", "graded"]
    # A row without a label waits for one.
    assert read(tmp_path, "a,b,label\n1,2,\n1,3,different\n") == [
        LabelledPair("1", "3", "distinct")
    ]
    message = complaint(tmp_path, "a,b,label\n1,2,\n1,3,graded\n")
    assert "no pair is labelled duplicate or different (1 rows have no label yet)" in message
    # A spreadsheet may have saved it.
    for delimiter in ",;\t":
        text = "A,B,Label\r\n1,2,duplicate\r\n,,\r\n".replace(",", delimiter)
        assert read(tmp_path, text, "utf-8-sig") == [LabelledPair("1", "2", "copy")]


def test_invalid_rows_are_reported_with_their_lines_and_the_fix(tmp_path: Path) -> None:
    for row, message in {
        "1,2,1": "'1' is not a label; write one of near-dup, duplicate, same, distinct,",
        ",2,1": "a is empty; write the URL, the path or the id of a page, or a text",
        "2,2,1": "a and b are the same; name two pages, or two texts",
        "8,9,different": "the pair is different here and duplicate in line 2; keep one of them",
        "1,2,3,4": "4 values for 3 columns; put a value that contains the delimiter in",
        '1,"2,1': "unexpected end of data; close each double quote",
    }.items():
        assert f"line 3: {message}" in complaint(tmp_path, f"a,b,label\n8,9,duplicate\n{row}\n")
    said = complaint(tmp_path, "a,b,label\n" + "1,2,what\n" * 1000)
    assert "line 2:" in said
    assert "line 11:" in said
    assert "and 990 more" in said
    assert len(said.splitlines()) == 11


def test_an_invalid_file_is_reported(tmp_path: Path) -> None:
    assert "the column b is missing" in complaint(tmp_path, "a,label\n1,2\n")
    assert "the column a is missing" in complaint(tmp_path, "")
    text = "a,b,label\n1,2,duplicate\nä,2,different\n"
    assert "line 3: not UTF-8; save the file" in complaint(tmp_path, text, "cp1252")
    with pytest.raises(ArgumentError, match="No such file"):
        read_labels(tmp_path / "nowhere.csv")
