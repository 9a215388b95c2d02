"""Behaviour of every kind of input, and sources that wait for their next page."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest

from pgsimhash.pages.records import PageFailure
from pgsimhash.sources import PAUSE, SourcePage, count_pages, read_pages, with_pauses
from tests.programs import python


def write_lines(path: Path, *urls: str) -> Path:
    path.write_text("".join(json.dumps({"url": url, "html": "<p>x"}) + "\n" for url in urls))
    return path


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "a.html"
    path.write_text("<p>a")
    return path


def test_inputs_are_read_in_their_order_each_when_it_is_due(page: Path) -> None:
    first, later = page.with_name("b.jsonl"), page.with_name("c.jsonl")
    write_lines(first, "https://a.example/1", "https://a.example/2")
    # An endless stream of paths.
    pages = read_pages(chain([page, first, later], repeat(str(page))))
    urls = [next(pages).url for _ in range(3)]
    write_lines(later, "https://a.example/3")
    urls += [next(pages).url for _ in range(3)]
    numbered = [f"https://a.example/{number}" for number in (1, 2, 3)]
    assert urls == [page.as_uri(), *numbered, page.as_uri(), page.as_uri()]


@pytest.mark.parametrize(("name", "detail"), [
    ("gone.jsonl", "No such file"), ("gone.warc", "No such file"), ("a\0b.html", "null byte"),
    ("damaged.warc.gz", "gzip data ends early"),
    ("page.pdf", r"does not end in one of \.html, .*\.jsonl, .*\.ndjson\.gz, .*\.warc\.gz"),
])  # fmt: skip
def test_a_path_that_cannot_be_read_fails_alone(page: Path, name: str, detail: str) -> None:
    path = page.with_name(name)
    if name in ("damaged.warc.gz", "page.pdf"):
        path.write_bytes(b"\x1f\x8b\x08")
    broken, found = read_pages([path, page])
    assert isinstance(broken, PageFailure)
    assert (broken.url.partition("#")[0], broken.reason) == (str(path), "unreadable")
    assert re.search(detail, broken.detail)
    assert isinstance(found, SourcePage)


def test_a_dash_is_the_stdin_of_the_process_and_warcio_is_loaded_only_for_archives() -> None:
    code = (
        "import sys; from pgsimhash.sources import read_pages\n"
        "print([p.url for p in read_pages(['-'])], 'warcio' in sys.modules)"
    )
    line = '{"url": "https://example.com/", "html": ""}'
    assert python(code, stdin=line) == "['https://example.com/'] False\n"


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match=r"write \['pages'\]"):
        read_pages("pages")
    with pytest.raises(ValueError, match="not 0"):
        read_pages([], max_bytes=0)


def test_the_total_is_known_for_files_and_folders_but_not_for_streams(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a.html", "sub/b.htm", "notes.txt", ".hidden.html"):
        (tmp_path / name).write_text("<p>x")
    paths = [tmp_path, tmp_path / "a.html", tmp_path / "notes.txt", tmp_path / "gone.pdf"]
    assert count_pages(paths) == len(list(read_pages(paths))) == 5
    for name in ("a.jsonl", "a.ndjson.gz", "a.warc", "a.warc.gz"):
        (tmp_path / "sub" / name).touch()
        assert count_pages([tmp_path]) is None
        (tmp_path / "sub" / name).unlink()
    assert count_pages(["-"]) is None


PAGES: list[SourcePage | PageFailure] = [
    SourcePage(f"https://a.example/{number}", "<p>x") for number in range(20)
]


def source(*steps: Callable[[], object]) -> Iterator[SourcePage | PageFailure]:
    """Yields a page before each step and after the last."""
    for number, step in enumerate([*steps, list]):
        yield PAGES[number]
        step()


def test_a_source_that_waits_gives_pauses() -> None:
    goes_on = threading.Event()
    pages = with_pauses(source(goes_on.wait))
    assert [next(pages) for _ in range(3)] == [PAGES[0], PAUSE, PAUSE]
    goes_on.set()
    assert [page for page in pages if page is not PAUSE] == PAGES[1:2]
    assert [page for page in with_pauses(PAGES) if page is not PAUSE] == PAGES


def test_errors_of_a_source_are_raised_after_its_pages() -> None:
    pages = with_pauses(source({}.popitem))
    assert next(pages) == PAGES[0]
    with pytest.raises(KeyError, match="dictionary is empty"):
        list(pages)


def test_only_a_few_pages_are_read_ahead_and_none_after_the_end() -> None:
    taken: list[int] = []
    ended = threading.Event()

    def source() -> Iterator[SourcePage | PageFailure]:
        try:
            for number, page in enumerate(PAGES):
                taken.append(number)
                yield page
        finally:
            ended.set()

    pages = with_pauses(source())
    next(pages)
    pages.close()
    assert ended.wait(60)
    assert len(taken) <= 7
