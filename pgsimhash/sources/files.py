"""Find files, and read HTML files."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from pgsimhash.errors import PageError
from pgsimhash.pages.records import PageFailure
from pgsimhash.pages.values import too_large
from pgsimhash.sources.page import Reading, SourcePage, failure, plain_path, shown

HTML_SUFFIXES: Final = (".html", ".htm", ".xhtml", ".shtml")

_HTML_NAME: Final = re.compile(
    rf".*(?:{'|'.join(map(re.escape, HTML_SUFFIXES))})(?:[?@].*)?", re.IGNORECASE | re.DOTALL
)
"""wget appends the query to the name: ``index.html?page=2``, with ``@`` for Windows."""

_LINES: Final = {".jsonl": "json_lines", ".jl": "json_lines", ".ndjson": "json_lines"}
_WARC: Final = {".warc": "warc", ".warc.wet": "warc"}

READERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(HTML_SUFFIXES, "files"),
    **{end + packed: of for end, of in (_LINES | _WARC).items() for packed in ("", ".gz", ".zst")},
    ".parquet": "parquet",
    ".wacz": "wacz",
}
"""The module of ``pgsimhash.sources`` that reads a file, by the end of its name.

Each has a function ``read``, as this one.
"""


def reader_of(name: str) -> str | None:
    """Return the module that reads files of this name, or None."""
    if _HTML_NAME.fullmatch(name):
        return "files"
    return next((of for end, of in READERS.items() if name.lower().endswith(end)), None)


def is_html_name(name: str) -> bool:
    """Return whether a file of this name is read as a page."""
    return _HTML_NAME.fullmatch(name) is not None


def read(path: Path, reading: Reading) -> Iterator[SourcePage | PageFailure]:
    """Yield the page of an HTML file."""
    yield read_html(path, reading.max_bytes)


def paths_below(folder: Path, left_out: Counter[str]) -> Iterator[Path | PageFailure]:
    """Yield the files below ``folder`` that are read, by their names and without hidden files.

    Links to folders are followed, and each folder is read once. A folder that cannot be listed is
    yielded as a failure. ``left_out`` counts the files that are not pages by their names.
    """
    seen: set[tuple[int, int]] = set()
    with suppress(OSError):
        # A command may write its output into the folder that it reads.
        seen.add(_identity(os.fstat(1)))
    # Not recursive: a tree may be deeper than Python's stack.
    waiting = [iter([folder])]
    while waiting:
        path = next(waiting[-1], None)
        if path is None:
            waiting.pop()
            continue
        is_named = reader_of(path.name) is not None
        try:
            status = path.stat()
            identity = _identity(status)
            if not stat.S_ISDIR(status.st_mode):
                if not is_named or identity in seen:
                    left_out["own output" if is_named else "files by their names"] += 1
                elif stat.S_ISREG(status.st_mode) or is_html_name(path.name):
                    yield path
                else:
                    # Opening a pipe waits for a writer.
                    yield failure(shown(path), _no_file(status.st_mode))
            elif identity not in seen:
                seen.add(identity)
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
    if not stat.S_ISREG(status.st_mode):
        raise _no_file(status.st_mode)
    size = status.st_size
    content = b""
    if size <= max_bytes:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
        size = len(content)  # the file may have grown
    if size > max_bytes:
        raise too_large("the file", max_bytes)
    return content


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _no_file(mode: int) -> PageError:
    kind = "folder" if stat.S_ISDIR(mode) else "device or pipe"
    return PageError("unreadable", f"a {kind}, not a file")
