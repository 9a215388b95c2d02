"""Read pages from files, one after the other and in bounded memory."""

from __future__ import annotations

import stat
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Final

from pgsimhash.errors import PageError
from pgsimhash.pages.records import PageFailure
from pgsimhash.pages.values import MAX_BYTES
from pgsimhash.sources.files import READERS, paths_below, reader_of
from pgsimhash.sources.json_lines import read_stream
from pgsimhash.sources.page import PAUSE, Reading, SourcePage, failure, shown, with_pauses
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

FILES_BEFORE: Final = "files already stored"
RECORDS_BEFORE: Final = "records already stored"
"""The keys of ``left_out`` for files and records that an earlier run stored."""

_STDIN: Final = "-"


def read_pages(
    paths: Iterable[str | Path],
    *,
    stdin: BinaryIO | None = None,
    max_bytes: int = MAX_BYTES,
    left_out: Counter[str] | None = None,
    texts: bool = False,
) -> Iterator[SourcePage | PageFailure]:
    """Yield the pages of ``paths`` in order; repeated paths are read again.

    A page that cannot be read is yielded as a failure, and reading continues.

    Args:
        paths: files, folders of them, or ``-`` for JSON lines from stdin. Files have one HTML page,
            JSON lines or Parquet rows with "url" and "html", or are WARC or WACZ archives.
        stdin: the stream of ``-``, instead of the process's stdin.
        max_bytes: the largest page, file, line or record in bytes; a larger one is a failure and is
            not read into memory.
        left_out: counts, by kind, the files and records that are not pages.
        texts: whether to read plain texts, for a scheme such as "pgsimhash-text-1": "text" instead
            of "html" where a line or row has both, and WET records instead of pages of archives.

    Raises:
        TypeError: ``paths`` is one string.
        ValueError: ``max_bytes`` is below 1.
    """
    if isinstance(paths, str):
        raise TypeError(f"paths is a list of paths: write [{paths!r}]")
    if max_bytes < 1:
        raise ValueError(f"max_bytes is a number of bytes, 1 or more, not {max_bytes}")
    return _read_all(paths, stdin, max_bytes, Counter() if left_out is None else left_out, texts)


def count_pages(paths: Iterable[str | Path]) -> int | None:
    """Return the number of items of :func:`read_pages`, or None if only reading can tell."""
    total = 0
    for file in find_files(paths):
        known = isinstance(file, PageFailure) or reader_of(file.name) in (None, "files")
        if not known or file == Path(_STDIN):
            return None
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
            yield from paths_below(path, left_out)
        else:
            yield path


def read_file(
    path: Path,
    *,
    stdin: BinaryIO | None = None,
    max_bytes: int = MAX_BYTES,
    left_out: Counter[str] | None = None,
    texts: bool = False,
) -> Iterator[SourcePage | PageFailure]:
    """Yield the pages of one file; the options are those of :func:`read_pages`."""
    reading = Reading(max_bytes, Counter() if left_out is None else left_out, texts)
    if str(path) == _STDIN:
        stream = Stream(sys.stdin.buffer if stdin is None else stdin)
        yield from read_stream(stream, "stdin", reading)
    elif module := reader_of(path.name):
        # Imported here, because each may need a library of its own.
        yield from import_module(f"{__name__}.{module}").read(path, reading)
    else:
        accepted = ", ".join(READERS)
        detail = f"not a folder, and its name does not end in one of {accepted}"
        yield failure(shown(path), PageError("unreadable", detail))


def _read_all(
    paths: Iterable[str | Path],
    stdin: BinaryIO | None,
    max_bytes: int,
    left_out: Counter[str],
    texts: bool,
) -> Iterator[SourcePage | PageFailure]:
    options: dict[str, Any] = {
        "stdin": stdin,
        "max_bytes": max_bytes,
        "left_out": left_out,
        "texts": texts,
    }
    for file in find_files(paths, left_out):
        if isinstance(file, PageFailure):
            yield file
        else:
            yield from read_file(file, **options)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):
        return False
