"""Pairs of pages with their URLs, and files of labelled pairs."""

import random
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from pgsimhash import Store, analysis, connect
from pgsimhash.analysis.pairs import LabelledPair, read_labels
from pgsimhash.errors import ArgumentError
from tests.database import copy_simhashes
from tests.refusals import because
from tests.store.content import page_at
from tests.store.read.test_clusters import FAR, fill


def found(store: Store, distance: int) -> list[tuple[str, str, int]]:
    pairs = list(analysis.page_pairs(store, distance))
    for pair in pairs:
        assert (pair.a_simhash ^ pair.b_simhash).bit_count() == pair.distance <= distance
    return [
        (pair.a.removeprefix("https://"), pair.b.removeprefix("https://"), pair.distance)
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
    with connect(dsn, collection="other", create=True) as other:
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


def test_a_page_deleted_meanwhile_is_omitted_and_a_loop_may_stop(store: Store, dsn: str) -> None:
    fill(store, {"a.example/1": 0, "a.example/2": 0, "a.example/3": 1, "a.example/4": 3})
    pairs = analysis.page_pairs(store, 1)
    assert next(pairs).distance == 0
    with connect(dsn) as other:
        other.delete_page("https://a.example/3")
    assert list(pairs) == []
    pairs = analysis.page_pairs(store, 2)
    next(pairs)
    assert store.add_page("https://a.example/", FAR).kind == "new"
    pairs.close()
    assert store.add_page("https://a.example/", FAR).kind == "unchanged"
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
        ",2,1": "a is empty; write the URL or the path of a page, or a text",
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
