"""Read HTML files, alone or in folders, and JSON lines with "url" and "html"."""

from __future__ import annotations

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pgsimhash.errors import PageError
from pgsimhash.pages.records import PageFailure
from pgsimhash.pages.urls import check_url
from pgsimhash.pages.values import too_large
from pgsimhash.sources.page import SourcePage, failure, parse_time, plain_path, shown
from pgsimhash.sources.streams import DamagedError, Stream, open_stream

HTML_SUFFIXES: Final = (".html", ".htm", ".xhtml", ".shtml")

_HTML_NAME: Final = re.compile(
    rf".*(?:{'|'.join(map(re.escape, HTML_SUFFIXES))})(?:[?@].*)?", re.IGNORECASE | re.DOTALL
)
"""wget appends the query to the name: ``index.html?page=2``, with ``@`` for Windows."""

_BOM: Final = b"\xef\xbb\xbf"
_STEP: Final = 1024 * 1024


def is_html_name(name: str) -> bool:
    """Return whether a file of this name is read as a page."""
    return _HTML_NAME.fullmatch(name) is not None


def html_paths(folder: Path, left_out: Counter[str]) -> Iterator[Path | PageFailure]:
    """Yield the HTML files below ``folder`` in the order of their names, without hidden files.

    Links to folders are followed, and each folder is read once. A folder that cannot be listed is
    yielded as a failure. ``left_out`` counts the files that are not pages by their names.
    """
    seen: set[tuple[int, int]] = set()
    # Not recursive: a tree may be deeper than Python's stack.
    waiting = [iter([folder])]
    while waiting:
        path = next(waiting[-1], None)
        if path is None:
            waiting.pop()
            continue
        is_named = is_html_name(path.name)
        try:
            status = path.stat()
            if not stat.S_ISDIR(status.st_mode):
                if is_named:
                    yield path
                else:
                    left_out["files by their names"] += 1
            elif (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                waiting.append(_entries(path, left_out))
        except OSError as error:
            if is_named and not path.is_dir():
                # Reading the file will report why it fails.
                yield path
            elif not isinstance(error, FileNotFoundError):
                yield failure(shown(path), error)


def read_html(path: Path, max_bytes: int) -> SourcePage | PageFailure:
    """Return the page in an HTML file; its URL is the file's ``file://`` URI."""
    url = plain_path(path).as_uri()
    try:
        return SourcePage(url, _content(path, max_bytes))
    except (OSError, PageError) as error:
        return failure(url, error)


def _entries(folder: Path, left_out: Counter[str]) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        all_names = [entry.name for entry in entries]
    names = [name for name in all_names if not name.startswith(".")]
    if len(names) < len(all_names):
        left_out["hidden files and folders"] += len(all_names) - len(names)
    # page.html comes before page-print.html: the first of a group is its original.
    names.sort(key=lambda name: name.partition("."))
    return (folder / name for name in names)


def _content(path: Path, max_bytes: int) -> bytes:
    status = path.stat()
    # Opening a pipe waits for a writer.
    if not stat.S_ISREG(status.st_mode):
        kind = "folder" if stat.S_ISDIR(status.st_mode) else "device or pipe"
        raise PageError("unreadable", f"a {kind}, not a file")
    size = status.st_size
    content = b""
    if size <= max_bytes:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
        size = len(content)  # the file may have grown
    if size > max_bytes:
        raise too_large("the file", max_bytes)
    return content


def read_json_file(path: Path, max_bytes: int) -> Iterator[SourcePage | PageFailure]:
    """Yield the pages of a file of JSON lines, with or without gzip."""
    try:
        with open_stream(path) as stream:
            yield from read_json_lines(stream, shown(path), max_bytes)
    except OSError as error:
        yield failure(shown(path), error)


def read_json_lines(
    stream: Stream, name: str, max_bytes: int
) -> Iterator[SourcePage | PageFailure]:
    """Yield the pages of a stream of JSON lines, skipping empty lines.

    A line without a valid page is a failure of ``name#number``; reading continues.
    """
    number = 0
    try:
        while line := stream.readline(max_bytes + 1):
            number += 1
            if len(line) > max_bytes and not line.endswith(b"\n"):
                _finish_line(stream)
                yield failure(f"{name}#{number}", too_large("the line", max_bytes))
                continue
            if number == 1:
                line = line.removeprefix(_BOM)
            if not line.strip():
                number += stream.skip_empty_lines()
                continue
            try:
                yield _page_of_line(line, number)
            except PageError as error:
                yield failure(f"{name}#{number}", error)
    except DamagedError as damage:
        detail = f"{damage}; the lines after line {number} were not read"
        yield PageFailure(f"{name}#{number + 1}", "unreadable", detail)


def _finish_line(stream: Stream) -> None:
    while (rest := stream.readline(_STEP)) and not rest.endswith(b"\n"):
        stream.idle(len(rest))


def _page_of_line(line: bytes, number: int) -> SourcePage:
    try:
        record = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise PageError("unreadable", f"the line is not UTF-8 (byte {error.start + 1})") from None
    except (ValueError, RecursionError) as error:
        raise PageError("unreadable", f"the line is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise PageError("unreadable", 'the line is not a JSON object with "url" and "html"')
    url = check_url(_text(record, "url").strip())
    html = _text(record, "html")
    charset = None if record.get("charset") is None else _text(record, "charset")
    fetched_at = None
    if record.get("fetched_at") is not None:
        text = _text(record, "fetched_at")
        try:
            fetched_at = parse_time(text)
        except ValueError:
            raise PageError("unreadable", '"fetched_at" is not an ISO-8601 time') from None
    return SourcePage(url, html, charset, fetched_at, number)


def _text(record: dict[str, Any], key: str) -> str:
    if key not in record:
        raise PageError("unreadable", f'"{key}" is missing')
    value = record[key]
    if not isinstance(value, str):
        raise PageError("unreadable", f'"{key}" is not a string')
    return value
