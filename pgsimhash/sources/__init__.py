"""Read pages from files, one after the other and in bounded memory."""

import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import chain
from mimetypes import MimeTypes
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO, Final

from pgsimhash.errors import PageError, check_number, invalid_argument
from pgsimhash.pages.records import PageFailure, PageItem, PageStatus, Pause, SourcePage
from pgsimhash.pages.urls import host_of
from pgsimhash.pages.values import MAX_BYTES, too_large
from pgsimhash.runtime import no_progress
from pgsimhash.sources.page import (
    BEGIN_BYTES,
    OnSkipped,
    Reading,
    failure,
    looks_like_html,
    plain_path,
    shown,
)
from pgsimhash.sources.rows import read_lines
from pgsimhash.sources.streams import Stream

__all__ = ["PageFailure", "PageStatus", "Pause", "SourcePage", "read_pages"]

OTHER_FILES: Final = "files that are not pages by name or content"
FILES_BEFORE: Final = "files already stored"
RECORDS_BEFORE: Final = "records already stored"
UNKNOWN: Final = "revisits of unknown pages, and such pages that are gone"
"""Keys of ``skipped``: what an earlier run stored, and answers about pages that are unknown."""

HTML_SUFFIXES: Final = (".html", ".htm", ".xhtml", ".shtml")

_HTML_NAME: Final = re.compile(
    rf".*(?:{'|'.join(map(re.escape, HTML_SUFFIXES))})(?:[?@].*)?", re.IGNORECASE | re.DOTALL
)
"""wget appends the query to the name: ``index.html?page=2``, with ``@`` for Windows."""

_HTML: Final = "html"
_PACKABLE: Final = {
    **dict.fromkeys((".jsonl", ".jl", ".ndjson"), "rows.read_json_lines"),
    **dict.fromkeys((".warc", ".warc.wet"), "warc.read_warc"),
}

READERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(HTML_SUFFIXES, _HTML),
    **{end + packed: of for end, of in _PACKABLE.items() for packed in ("", ".gz", ".zst")},
    ".parquet": "rows.read_parquet",
    ".wacz": "wacz.read_wacz",
}
"""The module and function that read a file, by the end of its name.

The function yields the pages and failures of ``(file, name, reading)``: the open file, its name for
failures, and the options.
"""

_OTHER_FORM: Final = re.compile(
    rf".*(?:\.arc(?:\.gz)?|(?:{'|'.join(map(re.escape, _PACKABLE))}|\.wet|\.wacz|\.parquet)"
    r"(?:\.(?:7z|br|bz2|gz|lz4|lzma|rar|tar|xz|zip|zst))+)",
    re.IGNORECASE | re.DOTALL,
)
"""Names of archives that no reader reads; in folders too they are failures."""

_STDIN: Final = "-"


def read_pages(
    paths: Iterable[str | Path],
    *,
    stdin: BinaryIO | None = None,
    max_bytes: int = MAX_BYTES,
    skipped: Counter[str] | None = None,
    on_skipped: OnSkipped = no_progress,
    texts: bool = False,
) -> Iterator[PageItem]:
    """Yield the pages of ``paths`` in order; repeated paths are read again.

    A page that cannot be read is yielded as a failure, and reading continues.

    Args:
        paths: files, folders of them, or ``-`` for JSON lines from stdin. Files have one HTML page,
            JSON lines or Parquet rows with "url" and "html", or are WARC or WACZ archives.
        stdin: the stream of ``-``, instead of the process's stdin.
        max_bytes: the largest page, file, line or record in bytes; a larger one is a failure and is
            not read into memory.
        skipped: counts, by kind, the files and records that are not pages.
        on_skipped: receives each of them, with its place and the reason.
        texts: whether to read plain texts, for a scheme such as "pgsimhash-text-1": "text" instead
            of "html", and WET records instead of pages of archives.
    """
    check_paths(paths)
    check_number("max_bytes", max_bytes, 1, 2**63)
    reading = Reading(max_bytes, Counter() if skipped is None else skipped, texts, on_skipped)
    return chain.from_iterable(
        [file] if isinstance(file, PageFailure) else read_file(file, reading, stdin)
        for file in find_files(paths, reading)
    )


def check_paths(paths: object) -> None:
    """Raise ArgumentError unless ``paths`` are several."""
    if isinstance(paths, str | bytes) or not isinstance(paths, Iterable):
        raise invalid_argument(f"paths is a list of paths: write ['pages'], not {paths!r:.80}")


def folders_at(base_url: str | None, paths: Iterable[object]) -> tuple[Path, ...]:
    """Return the plain paths of the folders at ``base_url``, none without one.

    Raises ArgumentError if it has no host, or a path is not a folder.
    """
    if base_url is None:
        return ()
    if host_of(base_url) is None:
        raise invalid_argument(f"base_url is a URL with a host, not {base_url!r:.80}")
    folders = tuple(plain_path(Path(path)) for path in paths if isinstance(path, str | Path))
    for path in folders:
        if not path.is_dir():
            raise invalid_argument(
                f"base_url is the URL of folders, not of {shown(path)}: give its folder"
            )
    return folders


def work_at(paths: Iterable[str | Path]) -> tuple[int | None, int | None]:
    """Return the number of items of :func:`read_pages`, or else the bytes of files of many."""
    pages, size, is_known = 0, 0, True
    for file in find_files(paths, Reading(MAX_BYTES, Counter(), texts=False)):
        if str(file) == _STDIN:
            return None, None
        pages += 1
        if isinstance(file, Path) and not is_page_name(file.name):
            is_known = False
            with suppress(OSError):
                size += file.stat().st_size
    return (pages, None) if is_known else (None, size)


def find_files(paths: Iterable[str | Path], reading: Reading) -> Iterator[Path | PageFailure]:
    """Yield the files that :func:`read_pages` reads, in its order; ``-`` stays as it is.

    What cannot be read is a failure. ``reading`` skips files in folders that are not pages.
    """
    for given in paths:
        try:
            path = Path(given)
            is_folder = str(path) != _STDIN and stat.S_ISDIR(path.stat().st_mode)
        except (OSError, TypeError, ValueError) as error:
            yield failure(shown(str(given)), error)
            continue
        yield from _paths_below(path, reading) if is_folder else [path]


def read_file(path: Path, reading: Reading, stdin: BinaryIO | None = None) -> Iterator[PageItem]:
    """Yield the pages of one file; the options are those of :func:`read_pages`."""
    reader = reader_of(path.name)
    try:
        if str(path) == _STDIN:
            stream = Stream(sys.stdin.buffer if stdin is None else stdin)
            yield from read_lines(stream, "stdin", reading)
        elif reader == _HTML or (reader is None and _begins_like_html(path)):
            yield read_html(path, reading.max_bytes, reading.url_of(path))
        elif reader is None:
            detail = f"not HTML, and its name does not end in one of {', '.join(READERS)}"
            if _OTHER_FORM.fullmatch(path.name):
                convert = "warcio recompress old.arc.gz new.warc.gz"
                detail = f"packed in another way; unpack it, or convert ARC with: {convert}"
            raise PageError("unreadable", detail)
        else:
            module, function = reader.split(".")
            # Imported here, because each may need a library of its own.
            read = getattr(import_module(f"{__name__}.{module}"), function)
            with path.open("rb") as file:
                items, at = read(file, shown(path), reading), 0
                if not file.seekable():
                    yield from items
                    return
                for item in items:
                    yield item
                    reading.on_read(file.tell() - at)
                    at = file.tell()
                reading.on_read(file.seek(0, SEEK_END) - at)
    except (OSError, PageError) as error:
        yield failure(shown(path), error)


def read_html(path: Path, max_bytes: int, url: str | None = None) -> SourcePage | PageFailure:
    """Return the page in an HTML file; its URL is by default the file's ``file://`` URI."""
    url = url or plain_path(path).as_uri()
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise _no_file(mode)
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise too_large("the file", max_bytes)
        return SourcePage(url, content)
    except (OSError, PageError) as error:
        return failure(url, error, 1)


def reader_of(name: str) -> str | None:
    """Return the entry of :data:`READERS` for a file of this name, or None."""
    if _HTML_NAME.fullmatch(name):
        return _HTML
    return next((of for end, of in READERS.items() if name.lower().endswith(end)), None)


# Without the types of this machine.
_types: Final = cache(MimeTypes)
# From Python 3.14 on there is a type for .php, which says nothing about the page.
_UNKNOWN_TYPES: Final = ((None, None), ("application/x-httpd-php", None))


def _begins_like_html(path: Path) -> bool:
    """Look into a file whose name does not say what it is, such as those of ``wget -r``."""
    name, query, _ = path.name.partition("?")
    if path.is_file() and (query or _types().guess_type(name) in _UNKNOWN_TYPES):
        with path.open("rb") as file:
            return looks_like_html(file.read(BEGIN_BYTES))
    return False


def is_page_name(name: str) -> bool:
    """Return whether a file of this name is one page, if it is read."""
    return reader_of(name) in (None, _HTML)


def _paths_below(folder: Path, reading: Reading) -> Iterator[Path | PageFailure]:
    """Yield the files below ``folder`` that are read, by their names and without hidden files.

    Links to folders are followed, and each folder is read once.
    """
    seen: set[tuple[int, int]] = set()
    with suppress(OSError):
        # A command may write its output into the folder that it reads.
        output = os.fstat(1)
        seen.add((output.st_dev, output.st_ino))
    # Not recursive: a tree may be deeper than Python's stack.
    waiting = [iter([folder])]
    while waiting:
        path = next(waiting[-1], None)
        if path is None:
            waiting.pop()
            continue
        reader = reader_of(path.name)
        try:
            status = path.stat()
            identity = status.st_dev, status.st_ino
            if not stat.S_ISDIR(status.st_mode):
                if identity in seen:
                    reading.skip("own output", shown(path))
                elif not (reader or _OTHER_FORM.fullmatch(path.name) or _begins_like_html(path)):
                    reading.skip(OTHER_FILES, shown(path))
                elif stat.S_ISREG(status.st_mode) or reader == _HTML:
                    yield path
                else:
                    # Opening a pipe waits for a writer.
                    yield failure(shown(path), _no_file(status.st_mode))
            elif identity not in seen:
                seen.add(identity)
                waiting.append(_entries(path, reading))
        except OSError as error:
            if reader is not None and not path.is_dir():
                # Reading the file will report why it fails.
                yield path
            elif not isinstance(error, FileNotFoundError):
                yield failure(shown(path), error)


def _entries(folder: Path, reading: Reading) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        names = sorted((entry.name for entry in entries), key=_order)
    for name in names:
        if name.startswith("."):
            reading.skip("hidden files and folders", shown(folder / name))
    return (folder / name for name in names if not name.startswith("."))


def _order(name: str) -> tuple[list[list[int | str]], str]:
    """Return the place of a name in its folder: crawl2.warc comes before crawl10.warc.

    page.html comes before page-print.html, because the first of a group is its original.
    """
    parts = (re.split("([0-9]+)", part) for part in name.partition("."))
    return [[int(run) if run.isdigit() else run for run in part] for part in parts], name


def _no_file(mode: int) -> PageError:
    kind = "folder" if stat.S_ISDIR(mode) else "device or pipe"
    return PageError("unreadable", f"a {kind}, not a file")
