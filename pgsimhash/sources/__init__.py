"""Read pages from files, one after the other and in bounded memory."""

from __future__ import annotations

import stat
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from pgsimhash.errors import PageError
from pgsimhash.pages.records import PageFailure
from pgsimhash.pages.values import MAX_BYTES
from pgsimhash.sources.files import (
    HTML_SUFFIXES,
    html_paths,
    is_html_name,
    read_html,
    read_json_file,
    read_json_lines,
)
from pgsimhash.sources.page import PAUSE, SourcePage, failure, shown, with_pauses
from pgsimhash.sources.streams import Stream

__all__ = [
    "FILES_BEFORE",
    "PAUSE",
    "RECORDS_BEFORE",
    "PageFailure",
    "SourcePage",
    "count_pages",
    "find_files",
    "read_file",
    "read_pages",
    "with_pauses",
]

FILES_BEFORE: Final = "files stored before"
RECORDS_BEFORE: Final = "records stored before"
"""The keys of ``left_out`` for files and records that an earlier run stored."""

_STDIN: Final = "-"
_JSON_SUFFIXES: Final = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_WARC_SUFFIXES: Final = (".warc", ".warc.gz")


def read_pages(
    paths: Iterable[str | Path],
    *,
    stdin: BinaryIO | None = None,
    max_bytes: int = MAX_BYTES,
    left_out: Counter[str] | None = None,
) -> Iterator[SourcePage | PageFailure]:
    """Yield the pages of ``paths`` in order; repeated paths are read again.

    A page that cannot be read is yielded as a failure, and reading continues.

    Args:
        paths: folders of HTML files, HTML files, JSON lines with "url" and "html", WARC
            archives, or ``-`` for JSON lines from stdin.
        stdin: the stream of ``-``, instead of the process's stdin.
        max_bytes: the largest page, file, line or record in bytes; a larger one is a failure and is
            not read into memory.
        left_out: counts, by kind, the files and records that are not pages.

    Raises:
        TypeError: ``paths`` is one string.
        ValueError: ``max_bytes`` is below 1.
    """
    if isinstance(paths, str):
        raise TypeError(f"paths is a list of paths: write [{paths!r}]")
    if max_bytes < 1:
        raise ValueError(f"max_bytes is a number of bytes, 1 or more, not {max_bytes}")
    return _read_all(paths, stdin, max_bytes, Counter() if left_out is None else left_out)


def count_pages(paths: Iterable[str | Path]) -> int | None:
    """Return the number of items of :func:`read_pages`, or None if only reading can tell."""
    total = 0
    for path in map(Path, paths):
        if str(path) == _STDIN:
            return None
        if _is_folder(path):
            total += sum(1 for _ in html_paths(path, Counter()))
        elif path.name.lower().endswith(_JSON_SUFFIXES + _WARC_SUFFIXES) and path.exists():
            return None
        else:
            total += 1
    return total


def find_files(
    paths: Iterable[str | Path], left_out: Counter[str] | None = None
) -> Iterator[Path | PageFailure]:
    """Yield the files that :func:`read_pages` reads, in its order; ``-`` stays as it is.

    A path or folder that cannot be read is yielded as a failure. ``left_out`` counts the files in
    folders that are not pages.
    """
    left_out = Counter() if left_out is None else left_out
    for path in map(Path, paths):
        if str(path) == _STDIN:
            yield path
            continue
        try:
            path.stat()
        except (OSError, ValueError) as error:
            yield failure(shown(path), error)
            continue
        if _is_folder(path):
            yield from html_paths(path, left_out)
        else:
            yield path


def read_file(
    path: Path,
    *,
    stdin: BinaryIO | None = None,
    max_bytes: int = MAX_BYTES,
    left_out: Counter[str] | None = None,
) -> Iterator[SourcePage | PageFailure]:
    """Yield the pages of one file; the options are those of :func:`read_pages`."""
    name = path.name.lower()
    if str(path) == _STDIN:
        stream = Stream(sys.stdin.buffer if stdin is None else stdin)
        yield from read_json_lines(stream, "stdin", max_bytes)
    elif is_html_name(name):
        yield read_html(path, max_bytes)
    elif name.endswith(_JSON_SUFFIXES):
        yield from read_json_file(path, max_bytes)
    elif name.endswith(_WARC_SUFFIXES):
        # Imported here because only archives need warcio.
        from pgsimhash.sources.warc import read_warc

        yield from read_warc(path, max_bytes, Counter() if left_out is None else left_out)
    else:
        accepted = ", ".join(HTML_SUFFIXES + _JSON_SUFFIXES + _WARC_SUFFIXES)
        detail = f"not a folder, and its name does not end in one of {accepted}"
        yield failure(shown(path), PageError("unreadable", detail))


def _read_all(
    paths: Iterable[str | Path], stdin: BinaryIO | None, max_bytes: int, left_out: Counter[str]
) -> Iterator[SourcePage | PageFailure]:
    for file in find_files(paths, left_out):
        if isinstance(file, PageFailure):
            yield file
        else:
            yield from read_file(file, stdin=stdin, max_bytes=max_bytes, left_out=left_out)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):
        return False
