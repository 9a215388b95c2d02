"""Behaviour of every kind of input."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from pgsimhash.pages.records import PageFailure
from pgsimhash.sources import SourcePage, count_pages, read_pages


def write_lines(path: Path, *urls: str) -> Path:
    path.write_text("".join(json.dumps({"url": url, "html": "<p>x"}) + "\n" for url in urls))
    return path


def test_inputs_are_read_in_the_order_they_are_given(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "b.jsonl", "https://example.com/1", "https://example.com/2")
    page = tmp_path / "a.html"
    page.write_text("<p>a")
    urls = [item.url for item in read_pages([lines, str(page)])]
    assert urls == ["https://example.com/1", "https://example.com/2", page.as_uri()]


def test_a_path_given_twice_is_read_twice(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text("<p>a")
    assert len(list(read_pages([page, page]))) == 2


def test_a_missing_path_fails_alone(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text("<p>a")
    missing, found = read_pages([tmp_path / "gone.jsonl", page])
    assert missing == PageFailure(
        str(tmp_path / "gone.jsonl"), "unreadable", "No such file or directory"
    )
    assert isinstance(found, SourcePage)


def test_a_path_no_file_system_knows_is_a_failure() -> None:
    (item,) = read_pages(["a\0b.html"])
    assert isinstance(item, PageFailure)
    assert item.reason == "unreadable"


def test_an_unknown_suffix_names_what_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "page.pdf"
    path.write_bytes(b"%PDF")
    (item,) = read_pages([path])
    assert isinstance(item, PageFailure)
    assert (item.url, item.reason) == (str(path), "unreadable")
    for suffix in (".html", ".jsonl", ".ndjson.gz", ".warc.gz"):
        assert suffix in item.detail


def test_a_dash_reads_json_lines_from_stdin() -> None:
    stdin = io.BytesIO(b'{"url": "https://example.com/", "html": "<p>x"}\nbroken\n')
    page, broken = read_pages(["-"], stdin=stdin)
    assert page == SourcePage("https://example.com/", "<p>x")
    assert broken.url == "stdin#2"


def test_a_dash_is_the_stdin_of_the_process() -> None:
    code = "from pgsimhash.sources import read_pages; print([p.url for p in read_pages(['-'])])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input='{"url": "https://example.com/", "html": ""}',
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['https://example.com/']\n"


def test_the_first_page_comes_before_later_inputs_are_opened(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "a.jsonl", "https://example.com/1")
    later = tmp_path / "b.jsonl"
    pages = read_pages([first, later])
    assert next(pages).url == "https://example.com/1"
    write_lines(later, "https://example.com/2")
    assert next(pages).url == "https://example.com/2"


def test_paths_may_be_an_endless_stream(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text("<p>a")
    pages = read_pages(iter(lambda: page, None))
    assert [next(pages).url for _ in range(3)] == [page.as_uri()] * 3


def test_one_string_is_not_a_list_of_paths() -> None:
    with pytest.raises(TypeError, match=r"write \['pages'\]"):
        read_pages("pages")


def test_the_limit_is_at_least_one_byte() -> None:
    with pytest.raises(ValueError, match="not 0"):
        read_pages([], max_bytes=0)


def test_the_total_is_known_for_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a.html", "sub/b.htm", "notes.txt", ".hidden.html"):
        (tmp_path / name).write_text("<p>x")
    paths = [tmp_path, tmp_path / "a.html", tmp_path / "notes.txt", tmp_path / "gone.warc"]
    assert count_pages(paths) == len(list(read_pages(paths))) == 5


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson.gz", "a.warc", "a.warc.gz"])
def test_the_total_of_a_stream_is_unknown(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert count_pages([tmp_path, tmp_path / name]) is None
    assert count_pages(["-"]) is None


def test_warcio_is_loaded_only_for_archives() -> None:
    code = "import sys, pgsimhash.sources; sys.exit('warcio' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
