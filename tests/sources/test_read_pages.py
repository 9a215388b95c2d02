"""Behaviour of every kind of input, folders, and sources that wait for their next page."""

import json
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from pgsimhash.errors import ArgumentError
from pgsimhash.pages.records import PageFailure
from pgsimhash.sources import OTHER_FILES, Pause, SourcePage, read_pages, work_at
from pgsimhash.sources.page import Skipped, with_pauses
from tests.programs import python
from tests.sources.content import failed


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
    ("gone.jsonl", "No such file"), ("gone.warc", "No such file"), ("a\0b.html", "embedded null"),
    ("damaged.warc.gz", "gzip data ends early"),
    ("page.pdf", r"does not end in one of \.html, .*\.jsonl, .*\.ndjson\.gz, .*\.warc\.gz"),
    *((name, "unpack it, or convert ARC with: warcio recompress") for name in (
        "crawl.arc.gz", "old.ARC", "crawl.warc.bz2", "lines.jsonl.xz", "crawl.wacz.gz",
        "crawl.warc.tar.gz")),
])  # fmt: skip
def test_a_path_that_cannot_be_read_fails_alone(page: Path, name: str, detail: str) -> None:
    path = page.with_name(name)
    if not name.startswith(("gone", "a")):
        path.write_bytes(b"\x1f\x8b\x08")
    broken, found = read_pages([path, page])
    assert isinstance(broken, PageFailure)
    assert (broken.url.partition("#")[0], broken.reason) == (str(path), "unreadable")
    assert re.search(detail, broken.detail)
    assert isinstance(found, SourcePage)
    # Archives are not skipped in folders either, where there are other files.
    if "it" in detail:
        path.with_name(f"{name}.cdx").touch()
        assert broken in read_pages([path.parent])


def test_a_dash_is_the_stdin_of_the_process_and_warcio_is_loaded_only_for_archives() -> None:
    code = (
        "import sys; from pgsimhash.sources import read_pages\n"
        "print([p.url for p in read_pages(['-'])], 'warcio' in sys.modules)"
    )
    line = '{"url": "https://example.com/", "html": ""}'
    assert python(code, stdin=line) == "['https://example.com/'] False\n"


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"write \['pages'\]"):
        read_pages("pages")
    with pytest.raises(ValueError, match="not 0"):
        read_pages([], max_bytes=0)


def test_the_total_is_known_for_files_and_folders_but_not_for_streams(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a.html", "sub/b.htm", "notes.txt", ".hidden.html"):
        (tmp_path / name).write_text("<p>x")
    paths = [tmp_path, tmp_path / "a.html", tmp_path / "notes.txt", tmp_path / "gone.pdf"]
    assert work_at(paths) == (len(list(read_pages(paths))), None) == (5, None)
    for name in ("a.jsonl", "a.ndjson.gz", "a.warc", "a.warc.gz"):
        (tmp_path / "sub" / name).touch()
        assert work_at([tmp_path])[0] is None
        (tmp_path / "sub" / name).unlink()
    assert work_at(["-"]) == (None, None)


PAGES: list[SourcePage | PageFailure] = [
    SourcePage(f"https://a.example/{number}", "<p>x") for number in range(20)
]


def source(*steps: Callable[[], object]) -> Iterator[SourcePage | PageFailure]:
    """Yields a page before each step and after the last."""
    for number, step in enumerate([*steps, list]):
        yield PAGES[number]
        step()


def test_a_source_that_waits_gives_pauses_and_errors_come_after_its_pages() -> None:
    goes_on = threading.Event()
    pages = with_pauses(source(goes_on.wait))
    assert [next(pages) for _ in range(3)] == [PAGES[0], Pause(), Pause()]
    goes_on.set()
    assert [page for page in pages if not isinstance(page, Pause)] == PAGES[1:2]
    assert [page for page in with_pauses(PAGES) if not isinstance(page, Pause)] == PAGES
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


def names(folder: Path) -> list[str]:
    return [item.url.removeprefix(folder.as_uri() + "/") for item in read_pages([folder])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folders and files that must be sorted, descended into or skipped by their names."""
    for name in ("b.html", "a.HTM", "c/d/e.xhtml", "c/a.html", "aa/z.html", ".git/x.html"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    for name in (".hidden.html", "notes.txt", "c/page.html.gz", "feed.json"):
        (tmp_path / name).write_text("skipped")
    return tmp_path


def test_pages_come_in_the_order_of_their_names_whatever_their_depth(folder: Path) -> None:
    assert names(folder) == ["a.HTM", "aa/z.html", "b.html", "c/a.html", "c/d/e.xhtml"]
    skipped = Counter[str]()
    assert len(list(read_pages([folder], skipped=skipped))) == 5
    assert skipped == {OTHER_FILES: 3, "hidden files and folders": 2}
    noted: list[Skipped] = []
    assert len(list(read_pages([folder], on_skipped=noted.append))) == 5
    assert {(item.reason, Path(item.source).name) for item in noted} == {
        ("hidden files and folders", ".git"), ("hidden files and folders", ".hidden.html"),
        *((OTHER_FILES, name) for name in ("notes.txt", "page.html.gz", "feed.json")),
    }  # fmt: skip
    # A folder that is given may have any name.
    assert names(folder / ".git") == ["x.html"]
    # A page comes before the pages named after it.
    other = folder / ".git"
    (other / "x.html").unlink()
    for name in ("page-print.html", "page.html", "page.de.html", "page/a.html"):
        (other / name).parent.mkdir(exist_ok=True)
        (other / name).write_text("<p>x")
    assert names(other) == ["page/a.html", "page.de.html", "page.html", "page-print.html"]


def test_numbers_in_names_are_in_the_order_of_numbers(tmp_path: Path) -> None:
    ordered = [
        "crawl1.html", "crawl2.html", "crawl10/9.html", "crawl10/10.html", "crawl10.2.html",
        "crawl10.11.html", "crawl010.html", "crawl11.html", "crawl\u0661.html",
        f"crawl{'9' * 200}.html",
    ]  # fmt: skip
    for name in reversed(ordered):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("<p>x")
    assert [Path(unquote(name)) for name in names(tmp_path)] == [
        Path(name) for name in sorted(ordered, key=lambda name: name == "crawl\u0661.html")
    ]


def test_uris_are_absolute_and_keep_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent of a link is that of its target, as for every program that opens the path."""
    (tmp_path / "crawls" / "may").mkdir(parents=True)
    for name in ("a.html", "a é.html"):
        (tmp_path / "crawls" / name).write_text("<p>x")
    (tmp_path / "latest").symlink_to("crawls")
    (tmp_path / "newest").symlink_to("crawls/may")
    monkeypatch.chdir(tmp_path / "crawls" / "may")
    for path, url in {
        "../a é.html": "crawls/a%20%C3%A9.html",
        "../a.html": "crawls/a.html",
        "../../latest/a.html": "latest/a.html",
        "../../latest/../latest/./a.html": "latest/a.html",
        "../../newest/../a.html": "crawls/a.html",
    }.items():
        (page,) = read_pages([path])
        assert page == SourcePage(f"file://{tmp_path}/{url}", b"<p>x")


def test_links_to_folders_are_followed_and_loops_end(folder: Path) -> None:
    (folder / "c" / "loop").symlink_to(folder)
    (folder / "c" / "self").symlink_to("self")
    (folder / "zz").symlink_to(folder / "c")
    assert [name for name in names(folder) if name.endswith("l")] == [
        "aa/z.html", "b.html", "c/a.html", "c/d/e.xhtml"
    ]  # fmt: skip


def test_a_link_to_nothing_and_a_pipe_are_failures_where_they_name_a_page(folder: Path) -> None:
    (folder / "a.html").symlink_to(folder / "gone.html")
    (folder / "also-gone").symlink_to(folder / "gone")
    os.mkfifo(folder / "ab.html")
    os.mkfifo(folder / "ab.jsonl")
    items = list(read_pages([folder]))
    no_file, pipe = "No such file or directory", "a device or pipe, not a file"
    assert [item for item in items if isinstance(item, PageFailure)] == [
        PageFailure(f"file://{folder}/a.html", "unreadable", no_file),
        PageFailure(f"file://{folder}/ab.html", "unreadable", pipe),
        PageFailure(f"{folder}/ab.jsonl", "unreadable", pipe),
    ]
    assert len(items) == 8


def test_bytes_are_counted_only_of_files_that_are_there(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "a.jsonl", "https://a.example/1", "https://a.example/2")
    (tmp_path / "gone.jsonl").symlink_to("gone")
    assert work_at([tmp_path]) == (None, lines.stat().st_size)
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[lines.read_bytes()])
    writer.start()
    assert [*read_pages([pipe])] == [*read_pages([lines])]
    writer.join()


def test_pages_as_wget_and_servers_name_them(tmp_path: Path) -> None:
    (tmp_path / "a.html").mkdir()
    for name in ("index.html?page=2", "index.html@page=2", "b.SHTML", "a.html/index.html"):
        (tmp_path / name).write_text("<p>x")
    assert sorted(names(tmp_path)) == [
        "a.html/index.html", "b.SHTML", "index.html%3Fpage%3D2", "index.html%40page%3D2"
    ]  # fmt: skip
    assert len(list(read_pages([tmp_path / "index.html?page=2"]))) == 1


def test_the_content_says_what_a_file_is_whose_name_does_not(tmp_path: Path) -> None:
    page = b"\xef\xbb\xbf\n<!-- a template -->\n<!DOCTYPE html><title>t</title><p>words"
    pages = ["about", "index.php", "show.php?id=3", "style.css?page=1", "a.b", "view.asp@id=3"]
    others = {
        "data": b"\0\1<html>", "empty": b"", "logo": b"\x89PNG\r\n\x1a\n<html>", "feed": b"<rss>",
        "old.zip": page, "logo.png": page, "notes.txt": page, "robots.php": b"User-agent: *",
    }  # fmt: skip
    for name, content in {**dict.fromkeys(pages, page), **others}.items():
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder.php").mkdir()
    skipped = Counter[str]()
    read = list(read_pages([tmp_path], skipped=skipped))
    assert sorted(unquote(item.url.rpartition("/")[2]) for item in read) == sorted(pages)
    assert skipped == {OTHER_FILES: len(others) + 1}
    assert work_at([tmp_path]) == (len(pages), None)
    (alone,) = read_pages([tmp_path / "about"])
    assert alone == SourcePage((tmp_path / "about").as_uri(), page)
    (failure,) = read_pages([tmp_path / "data"])
    assert failed(failure, "not HTML, and its name does not end in one of")[1] == "unreadable"


def test_pages_and_folders_not_permitted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Permissions do not bind root, who runs the tests in containers.
    def refusing(call: Callable[..., object]) -> Callable[..., object]:
        def refuse(path: Path, *rest: str, **options: Any) -> object:
            if path.name in ("b.html", "c", "d.jsonl", "e.warc.gz"):
                raise PermissionError(13, "Permission denied")
            return call(path, *rest, **options)

        return refuse

    monkeypatch.setattr(Path, "open", refusing(Path.open))
    monkeypatch.setattr(os, "scandir", refusing(os.scandir))
    assert work_at([folder]) == (4, None)
    for name in ("d.jsonl", "e.warc.gz"):
        (folder / name).touch()
    places = [f"file://{folder}/b.html", *(f"{folder}/{name}" for name in ("c", "d.jsonl"))]
    assert list(read_pages([folder]))[-4:] == [
        PageFailure(place, "unreadable", "Permission denied")
        for place in [*places, f"{folder}/e.warc.gz"]
    ]


def test_a_page_too_large_is_not_opened(tmp_path: Path) -> None:
    with (tmp_path / "a.html").open("wb") as file:
        file.truncate(10**12)
    (tmp_path / "b.html").write_bytes(b"x" * 100)
    large, fits = read_pages([tmp_path], max_bytes=100)
    assert failed(large, "the file is larger than 100 bytes (max_bytes)")[1] == "too_large"
    assert isinstance(fits, SourcePage)


def test_a_name_that_is_not_utf8_can_be_told(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.html"))
    try:
        path.write_text("<p>x")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    page, unknown = read_pages([path, path.with_suffix(".gone")])
    assert page.url == f"file://{tmp_path}/caf%E9.html"
    assert unknown.url == f"{tmp_path}/caf\\xe9.gone"
