"""Files of labelled pairs: accepted forms, and the errors of invalid ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pgsimhash.analysis.labels import LabelledPair, read_labels
from pgsimhash.errors import ArgumentError
from tests.refusals import because

Reader = Callable[..., list[LabelledPair]]


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    """Read text like a file."""

    def read(text: str, encoding: str = "utf-8") -> list[LabelledPair]:
        path = tmp_path / "pairs.csv"
        path.write_text(text, encoding=encoding)
        return read_labels(path)

    return read


def complaint(reader: Reader, text: str, encoding: str = "utf-8") -> str:
    with pytest.raises(ArgumentError, check=because("invalid_file")) as caught:
        reader(text, encoding)
    return str(caught.value)


def test_pairs_come_in_the_order_of_the_file(reader: Reader) -> None:
    labels = reader("a,b,label,kind,note\n1,2,near-dup,print,x\n1,3,distinct,,\n2,3,graded,,\n")
    assert labels == [
        LabelledPair("1", "2", "copy", "print"),
        LabelledPair("1", "3", "distinct"),
        LabelledPair("2", "3", "graded"),
    ]
    assert len(reader("a,b,label\n1,2,duplicate\n2,1,near-dup\n")) == 1


@pytest.mark.parametrize(
    ("word", "label"),
    [
        *[(word, "copy") for word in ("near-dup", "duplicate", " Duplicate ")],
        *[(word, "distinct") for word in ("distinct", "different", "DIFFERENT")],
        ("graded", "graded"),
    ],
)
def test_each_label_has_its_words(reader: Reader, word: str, label: str) -> None:
    assert [pair.label for pair in reader(f"a,b,label\n1,2,{word}\n3,4,distinct\n")[:1]] == [label]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_spreadsheet_may_have_saved_it(reader: Reader, delimiter: str) -> None:
    text = "A,B,Label\r\n1,2,duplicate\r\n,,\r\n".replace(",", delimiter)
    assert reader(text, "utf-8-sig") == [LabelledPair("1", "2", "copy")]


def test_a_row_without_a_label_waits_for_one(reader: Reader) -> None:
    assert reader("a,b,label\n1,2,\n1,3,different\n") == [LabelledPair("1", "3", "distinct")]
    message = complaint(reader, "a,b,label\n1,2,\n1,3,graded\n")
    assert "no pair is labelled near-dup or distinct (1 rows have no label yet)" in message


@pytest.mark.parametrize("frame", ["dict", "pandas", "polars", "pyarrow"])
def test_pairs_come_from_data_frames(frame: str) -> None:
    columns = {
        "a": ["1", "1", "2"],
        "b": ["2", "3", "3"],
        "label": ["duplicate", "different", None],
        "kind": ["print", None, None],
        "note": [1, 2, 3],
    }
    source: Any = columns
    if frame == "pyarrow":
        source = pytest.importorskip("pyarrow").table(columns)
    elif frame != "dict":
        source = pytest.importorskip(frame).DataFrame(columns)
    assert read_labels(source) == [
        LabelledPair("1", "2", "copy", "print"),
        LabelledPair("1", "3", "distinct"),
    ]
    with pytest.raises(ArgumentError, match="the data frame: the column label is missing"):
        read_labels({"a": ["1"], "b": ["2"]})


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1,2,same", "line 3: 'same' is not a label; write one of near-dup, duplicate, distinct,"),
        (",2,1", "line 3: a is empty; write the URL, the path or the id of a page"),
        ("2,2,1", "line 3: a and b are the same page; name two"),
        ("8,9,different", "line 3: the pair is distinct here and copy in line 2; keep one of them"),
        ("1,2,3,4", "line 3: 4 values for 3 columns; put a value that contains the delimiter in"),
        ('1,"2,1', "line 3: unexpected end of data; close each double quote"),
    ],
)
def test_an_invalid_row_is_reported_with_its_line_and_the_fix(
    reader: Reader, row: str, said: str
) -> None:
    assert said in complaint(reader, f"a,b,label\n8,9,duplicate\n{row}\n")


def test_all_invalid_rows_are_reported_together_up_to_a_limit(reader: Reader) -> None:
    said = complaint(reader, "a,b,label\n" + "1,2,what\n" * 1000)
    assert "line 2:" in said
    assert "line 11:" in said
    assert "and 990 more" in said
    assert len(said.splitlines()) == 11


@pytest.mark.parametrize(
    ("text", "encoding", "said"),
    [
        ("a,label\n1,2\n", "utf-8", "the column b is missing"),
        ("", "utf-8", "the column a is missing"),
        ("a,b,label\n1,2,duplicate\nä,2,different\n", "cp1252", "line 3: not UTF-8; save the file"),
    ],
)
def test_an_invalid_file_is_reported(reader: Reader, text: str, encoding: str, said: str) -> None:
    assert said in complaint(reader, text, encoding)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="No such file"):
        read_labels(tmp_path / "nowhere.csv")
