"""Behaviour of every kind of input, and sources that wait for their next page."""

import json
import threading
from collections.abc import Callable, Iterator
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


def test_inputs_are_read_in_the_order_they_are_given(page: Path) -> None:
    lines = write_lines(page.with_name("b.jsonl"), "https://a.example/1", "https://a.example/2")
    urls = [item.url for item in read_pages([page, lines, str(page)])]
    assert urls == [page.as_uri(), "https://a.example/1", "https://a.example/2", page.as_uri()]


@pytest.mark.parametrize("name", ["gone.jsonl", "gone.warc", "damaged.warc.gz", "a\0b.html"])
def test_a_path_that_cannot_be_read_fails_alone(page: Path, name: str) -> None:
    path = page.with_name(name)
    if name.startswith("damaged"):
        path.write_bytes(b"\x1f\x8b\x08")
    broken, found = read_pages([path, page])
    assert isinstance(broken, PageFailure)
    assert (broken.url.partition("#")[0], broken.reason) == (str(path), "unreadable")
    assert isinstance(found, SourcePage)


@pytest.mark.parametrize("name", ["a.jsonl", "a.warc.gz"])
def test_a_file_that_cannot_be_opened_is_a_failure(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).touch()

    def refuse(path: Path, mode: str) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    failure = PageFailure(str(tmp_path / name), "unreadable", "Permission denied")
    assert list(read_pages([tmp_path / name])) == [failure]


def test_an_unknown_suffix_names_what_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "page.pdf"
    path.write_bytes(b"%PDF")
    (item,) = read_pages([path])
    assert isinstance(item, PageFailure)
    assert (item.url, item.reason) == (str(path), "unreadable")
    for suffix in (".html", ".jsonl", ".ndjson.gz", ".warc.gz"):
        assert suffix in item.detail


def test_a_dash_is_the_stdin_of_the_process_and_warcio_is_loaded_only_for_archives() -> None:
    code = (
        "import sys; from pgsimhash.sources import read_pages\n"
        "print([p.url for p in read_pages(['-'])], 'warcio' in sys.modules)"
    )
    line = '{"url": "https://example.com/", "html": ""}'
    assert python(code, stdin=line) == "['https://example.com/'] False\n"


def test_the_first_page_comes_before_later_inputs_are_opened(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "a.jsonl", "https://example.com/1")
    later = tmp_path / "b.jsonl"
    pages = read_pages([first, later])
    assert next(pages).url == "https://example.com/1"
    write_lines(later, "https://example.com/2")
    assert next(pages).url == "https://example.com/2"


def test_paths_may_be_an_endless_stream(page: Path) -> None:
    pages = read_pages(iter(lambda: page, None))
    assert [next(pages).url for _ in range(3)] == [page.as_uri()] * 3


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match=r"write \['pages'\]"):
        read_pages("pages")
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


PAGES: list[SourcePage | PageFailure] = [
    SourcePage(f"https://a.example/{number}", "<p>x") for number in range(20)
]


def test_pages_come_in_their_order_and_end() -> None:
    assert [page for page in with_pauses(PAGES) if page is not PAUSE] == PAGES


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
