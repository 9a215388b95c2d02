"""Files of labelled pairs: accepted forms, and the errors of invalid ones."""

from collections.abc import Callable
from pathlib import Path

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
    words = [" Duplicate ", "near-dup", "distinct", "DIFFERENT", "graded"]
    rows = "\n".join(f"1,{number},{word}" for number, word in enumerate(words, 2))
    found = [pair.label for pair in reader(f"a,b,label\n{rows}\n")]
    assert found == ["copy", "copy", "distinct", "distinct", "graded"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_spreadsheet_may_have_saved_it(reader: Reader, delimiter: str) -> None:
    text = "A,B,Label\r\n1,2,duplicate\r\n,,\r\n".replace(",", delimiter)
    assert reader(text, "utf-8-sig") == [LabelledPair("1", "2", "copy")]


def test_a_row_without_a_label_waits_for_one(reader: Reader) -> None:
    assert reader("a,b,label\n1,2,\n1,3,different\n") == [LabelledPair("1", "3", "distinct")]
    message = complaint(reader, "a,b,label\n1,2,\n1,3,graded\n")
    assert "no pair is labelled duplicate or different (1 rows have no label yet)" in message


def test_an_invalid_row_is_reported_with_its_line_and_the_fix(reader: Reader) -> None:
    for row, message in {
        "1,2,1": "'1' is not a label; write one of near-dup, duplicate, same, distinct,",
        ",2,1": "a is empty; write the URL, the path or the id of a page, or a text",
        "2,2,1": "a and b are the same; name two pages, or two texts",
        "8,9,different": "the pair is distinct here and copy in line 2; keep one of them",
        "1,2,3,4": "4 values for 3 columns; put a value that contains the delimiter in",
        '1,"2,1': "unexpected end of data; close each double quote",
    }.items():
        assert f"line 3: {message}" in complaint(reader, f"a,b,label\n8,9,duplicate\n{row}\n")


def test_all_invalid_rows_are_reported_together_up_to_a_limit(reader: Reader) -> None:
    said = complaint(reader, "a,b,label\n" + "1,2,what\n" * 1000)
    assert "line 2:" in said
    assert "line 11:" in said
    assert "and 990 more" in said
    assert len(said.splitlines()) == 11


def test_an_invalid_file_is_reported(reader: Reader, tmp_path: Path) -> None:
    assert "the column b is missing" in complaint(reader, "a,label\n1,2\n")
    assert "the column a is missing" in complaint(reader, "")
    text = "a,b,label\n1,2,duplicate\nä,2,different\n"
    assert "line 3: not UTF-8; save the file" in complaint(reader, text, "cp1252")
    with pytest.raises(ArgumentError, match="No such file"):
        read_labels(tmp_path / "nowhere.csv")
