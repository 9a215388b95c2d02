"""`pgsimhash dedup` keeps one of near-duplicate texts, as `mark_duplicates` marks them."""

import gzip
import json
import os
import random
import string
import tracemalloc
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pgsimhash.batch import corpus
from pgsimhash.batch.corpus import dedup
from pgsimhash.batch.frames import mark_duplicates
from pgsimhash.batch.originals import find_originals
from pgsimhash.errors import ArgumentError
from pgsimhash.schemes.registry import TEXT_SCHEME
from pgsimhash.schemes.texts import Cell, read_texts
from tests.cli.conftest import on_a_terminal
from tests.refusals import because

Rows = list[dict[str, Any]]


@pytest.fixture(params=[".parquet", ".jsonl"])
def suffix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made_rows(count: int) -> Rows:
    rng = random.Random(5)
    rows: Rows = []
    for number in range(count):
        words = rng.choices([f"word{n}" for n in range(900)], k=60)
        if number % 3 == 2:
            words = [*rows[rng.randrange(number)]["body"].split(), "more"]
        rows.append({"key": f"k{number}", "body": " ".join(words), "n": number})
    for number, text in ((7, None), (8, "too short"), (9, ""), (count - 1, " too  short ")):
        rows[number]["body"] = text or ("" if number == 9 else None)
    return [row if row["body"] else {**row, "body": row["body"] or None} for row in rows]


def write(path: Path, rows: Rows) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    return path


def read(path: Path) -> Rows:
    if path.suffix == ".parquet":
        rows: Rows = pq.read_table(path).to_pylist()
        return rows
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.filterwarnings("ignore:2 of 398 texts have fewer")
@pytest.mark.parametrize("jobs", [1, 3])
def test_the_first_of_near_duplicates_stays(
    tmp_path: Path, suffix: str, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "ROWS", 50)
    rows = made_rows(400)
    path = write(tmp_path / f"a{suffix}", rows)
    kept, clusters = tmp_path / f"kept{suffix}", tmp_path / f"clusters{suffix}"
    seen: list[tuple[int, int]] = []
    outcome = dedup(
        path, kept, clusters, text="body", id_column="key", jobs=jobs,
        progress=lambda *numbers: seen.append(numbers),
    )  # fmt: skip
    marked = mark_duplicates(pl.DataFrame(rows), "body", id_column="key").to_dicts()
    expected = [row["key"] for row in marked if not row["is_duplicate"]]
    assert [row["key"] for row in read(kept)] == expected
    assert {row["n"] for row in read(kept)} == {int(key[1:]) for key in expected}
    sizes = [row["cluster"] for row in marked]
    assert [(row["cluster"], row["id"], row["distance"]) for row in read(clusters)] == [
        (row["cluster"], row["key"], row["distance"])
        for row in marked
        if sizes.count(row["cluster"]) > 1
    ]
    assert (outcome.rows, outcome.kept, outcome.duplicates) == (
        400,
        len(expected),
        400 - len(expected),
    )
    assert (outcome.too_short, outcome.without_text) == (2, 2)
    assert outcome.clusters == len({row["cluster"] for row in read(clusters)}) > 20
    size = 400 if suffix == ".parquet" else path.stat().st_size
    assert seen[-1] == (size, size)
    assert len(seen) == 8


def test_long_rows_are_read_in_smaller_parts(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / f"a{suffix}", made_rows(400))
    whole = dedup(path, tmp_path / f"whole{suffix}", text="body")
    monkeypatch.setattr(corpus, "BYTES", 20_000)
    seen: list[tuple[int, int]] = []
    outcome = dedup(
        path,
        tmp_path / f"parts{suffix}",
        text="body",
        progress=lambda *numbers: seen.append(numbers),
    )
    assert outcome == whole
    assert len(seen) > 5


def test_parts_of_long_rows_are_small_beside_many_short_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, rng = tmp_path / "a.parquet", random.Random(2)
    with pq.ParquetWriter(path, pa.schema({"text": pa.string()})) as writer:
        for count, words in ((3000, 5), (20, 2000)):
            texts = [" ".join(rng.choices(string.ascii_lowercase, k=words)) for _ in range(count)]
            writer.write_table(pa.table({"text": texts}))
    monkeypatch.setattr(corpus, "BYTES", 20_000)
    seen: list[int] = []
    dedup(path, tmp_path / "kept.parquet", progress=lambda done, _: seen.append(done))
    assert len([done for done in seen if done > 3000]) >= 4


def test_ids_of_any_form_and_numbers_of_rows(tmp_path: Path) -> None:
    story = " ".join(f"word{n}" for n in range(60))
    rows = [{"id": {"a": number}, "text": story} for number in range(3)]
    clusters = tmp_path / "clusters.jsonl"
    for id_column, ids in (("id", [{"a": 0}, {"a": 1}, {"a": 2}]), (None, [0, 1, 2])):
        path = write(tmp_path / "a.jsonl", rows)
        dedup(path, tmp_path / "kept.jsonl", clusters, id_column=id_column)
        assert [row["id"] for row in read(clusters)] == ids
        assert read(tmp_path / "kept.jsonl") == rows[:1]


def test_ids_of_parquet_keep_their_type(tmp_path: Path) -> None:
    story = " ".join(f"word{n}" for n in range(60))
    path, clusters = tmp_path / "a.parquet", tmp_path / "clusters.parquet"
    for ids in (
        pa.array([10**18 + n for n in range(3)], pa.timestamp("ns")),
        pa.array([2**63 + n for n in range(3)], pa.uint64()),
        pa.array([[("a", n)] for n in range(3)], pa.map_(pa.string(), pa.int64())),
        pa.array([f"a longer name {n}" for n in range(3)], pa.string_view()),
        pa.array([b"%d" % n for n in range(3)], pa.binary_view()),
    ):
        for text in (story, None):
            rows = {"id": ids, "text": [story, text, text], "n": range(3)}
            pq.write_table(pa.table(rows), path)
            dedup(path, tmp_path / "kept.parquet", clusters, id_column="id")
            table = pq.read_table(clusters)
            assert table.schema.types == [ids.type, ids.type, pa.uint8()]
            assert table["id"].combine_chunks() == ids[: table.num_rows]
            assert pq.read_table(tmp_path / "kept.parquet")["id"].type == ids.type
            assert table.num_rows == (3 if text else 0)


@pytest.mark.parametrize("titles_are_first", [True, False])
def test_texts_of_all_parts_choose_the_scheme(
    tmp_path: Path, suffix: str, titles_are_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "ROWS", 50)
    monkeypatch.setattr(corpus, "SAMPLE", 7)
    titles = [{"body": f"the title of {n}"} for n in range(220)]
    articles = [{"body": row["body"]} for row in made_rows(240) if row["body"]]
    rows = titles + articles if titles_are_first else articles + titles
    path = write(tmp_path / f"a{suffix}", rows)
    outcome = dedup(path, tmp_path / f"kept{suffix}", text="body")
    assert (outcome.scheme, outcome.duplicates) == ("pgsimhash-text-1", 77)


def test_lines_that_are_packed_empty_or_not_encodable(tmp_path: Path) -> None:
    story = " ".join(f"word{n}" for n in range(60))
    rows = [{"id": "\ud83d", "text": f"{story} \ud83d"}, {"id": "é", "text": story}]
    lines = "\n\n".join(map(json.dumps, rows)) + "\n \n"
    kept, clusters = tmp_path / "kept.jsonl", tmp_path / "clusters.jsonl"
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + lines.encode()))
    assert dedup(path, kept, clusters, id_column="id")[:2] == (2, 1)
    assert [(row["cluster"], row["id"]) for row in read(clusters)] == [
        ("\ud83d", "\ud83d"),
        ("\ud83d", "é"),
    ]
    for packed in ("gz", "GZ", "zst", "bz2", "xz"):
        with pytest.raises(ArgumentError, match="not packed"):
            dedup(path, path.with_name(f"kept.jsonl.{packed}"))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ArgumentError, match="ends early"):
        dedup(path, kept)


def test_a_file_without_rows(tmp_path: Path, suffix: str) -> None:
    path, kept = tmp_path / f"a{suffix}", tmp_path / f"kept{suffix}"
    write(path, [])
    if suffix == ".parquet":
        pq.write_table(pa.table({"text": pa.array([], pa.string())}), path)
    assert dedup(path, kept).rows == len(read(kept)) == 0


def test_a_column_without_a_name(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a{suffix}", [{"": "red oak table"}] * 2)
    assert dedup(path, tmp_path / f"kept{suffix}", text="")[:2] == (2, 1)


def test_errors_name_the_fix(tmp_path: Path, suffix: str) -> None:
    kept, other = tmp_path / f"kept{suffix}", "a.jsonl" if suffix == ".parquet" else "a.parquet"
    values: list[Any] = [0, 7, [], {"a": 1}]
    for value in values:
        path = write(tmp_path / f"a{suffix}", [{"body": value}])
        with pytest.raises(ArgumentError, match=r"'body' of .* has a value of type .*; cast"):
            dedup(path, kept, text="body")
    with pytest.raises(ArgumentError, match="'text'"):
        dedup(path, kept)
    with pytest.raises(ArgumentError, match="give it another name"):
        dedup(path, tmp_path / other)
    with pytest.raises(ArgumentError, match="give it another name"):
        dedup(path, kept, tmp_path / other, text="body")
    path = write(path, [{"body": "red oak table"}] * 2)
    (tmp_path / f"link{suffix}").symlink_to(path)
    for outputs in ([path], [tmp_path / f"link{suffix}"], [kept, path]):
        with pytest.raises(ArgumentError, match="both read and written"):
            dedup(path, *outputs, text="body")
    with pytest.raises(ArgumentError, match="'key'"):
        dedup(path, kept, tmp_path / f"clusters{suffix}", text="body", id_column="key")
    with pytest.raises(FileNotFoundError):
        dedup(path, kept, tmp_path / f"missing/clusters{suffix}", text="body")
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    with pytest.raises(ArgumentError, match="save it as a file"):
        dedup(pipe, kept)
    assert not kept.exists()


@pytest.mark.parametrize("count", [1, 9])
def test_a_file_that_changes_meanwhile(
    tmp_path: Path, suffix: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / f"kept{suffix}"
    path = write(tmp_path / f"a{suffix}", [{"text": "red oak table"}] * 5)

    def changed(*arguments: Any) -> Any:
        write(path, [{"text": "red oak table"}] * count)
        os.utime(path, (7, 7))  # the clock of the file system may be coarse
        return find_originals(*arguments)

    monkeypatch.setattr(corpus, "find_originals", changed)
    with pytest.raises(ArgumentError, match="a copy", check=because("invalid_file")):
        dedup(path, kept)
    assert not kept.exists()


@pytest.mark.parametrize("line", ["[1]", '{"text": "a', '{"a":' * 99_999])
def test_a_line_that_is_no_object(tmp_path: Path, line: str) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(f'{{"text": "a"}}\n\n{line}\n')
    with pytest.raises(ArgumentError, match=r"line 3: the line is not .*; correct or remove it"):
        dedup(bad, tmp_path / "kept.jsonl")


def test_a_parquet_file_that_cannot_be_read(tmp_path: Path) -> None:
    path, kept = tmp_path / "a.parquet", tmp_path / "kept.parquet"
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], ["text", "text"])
    pq.write_table(twice, path)
    with pytest.raises(ArgumentError, match="must have one column 'text'; it has text, text"):
        dedup(path, kept)
    views = pa.table({"text": ["a b c d"], "tags": pa.array([["a"]], pa.list_(pa.string_view()))})
    pq.write_table(views, path)
    with pytest.raises(ArgumentError, match=r"cannot be filtered: .*string_view"):
        dedup(path, kept)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ArgumentError, match="cannot be read as a Parquet file"):
        dedup(path, kept)


@pytest.mark.filterwarnings("ignore:.* texts have fewer")
def test_no_flipped_bit_of_a_parquet_file_changes_or_loses_rows(tmp_path: Path) -> None:
    path, kept = tmp_path / "a.parquet", tmp_path / "kept.parquet"
    table = pa.table({"text": [f"{n} words of a row" for n in range(6)]})
    pq.write_table(table, path, row_group_size=2, write_page_checksum=True)
    data = path.read_bytes()
    for at in range(4, 120):
        for bit in range(8):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            with suppress(ArgumentError):
                dedup(path, kept)
                assert pq.read_table(kept) == table, (at, bit)


def test_the_command(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", made_rows(60))
    arguments = ("dedup", path, "-o", tmp_path / "kept.jsonl", "--text", "body", "--id", "key")
    piped = on_a_terminal(*arguments)
    assert piped.lines[0]["rows"] == 60
    assert piped.lines[0]["kept"] == len(read(tmp_path / "kept.jsonl"))
    shown = on_a_terminal(*arguments, whole=True)
    assert f"Kept {piped.lines[0]['kept']} texts of 60." in shown.stderr
    same = on_a_terminal("dedup", path, "-o", path, "--text", "body")
    assert (same.code, "both read and written" in same.stderr) == (2, True)
    twice = on_a_terminal(*arguments, "--clusters", tmp_path / "kept.jsonl")
    assert (twice.code, "is written twice" in twice.stderr) == (2, True)
    assert len(read(tmp_path / "kept.jsonl")) == piped.lines[0]["kept"]


def test_memory_is_bounded_if_most_texts_are_near() -> None:
    bits = [1 << bit for bit in range(64)]
    cells = [Cell(one | other | third) for one, other, third in combinations(bits[:27], 3)]
    tracemalloc.start()
    originals = find_originals(cells, TEXT_SCHEME, 6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000_000  # the pairs alone need 70 MB
    assert [one and one[:2] for one in originals[:3]] == [None, (2, 0), (2, 0)]


def test_long_texts_of_few_words_are_not_kept_in_memory() -> None:
    texts = [100_000 * "g" + letter for letter in "abcaa"]
    cells = list(read_texts([*texts, f" {texts[0]}\n"], TEXT_SCHEME))
    assert all(cell.text is not None and len(cell.text) < 200 for cell in cells)
    originals = find_originals(cells, TEXT_SCHEME)
    assert [one and one.row for one in originals] == [None, None, None, 0, 0, 0]
