"""HTML files, alone or in folders."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pgsimhash.errors import PageError
from pgsimhash.octets import too_large
from pgsimhash.records import PageFailure
from pgsimhash.sources.page import SourcePage, failure, shown

HTML_SUFFIXES: Final = (".html", ".htm", ".xhtml")


def html_paths(folder: Path) -> Iterator[Path | PageFailure]:
    """Yield the HTML files below ``folder`` in the order of their names, hidden ones left out.

    Links to folders are followed, and each folder is read once. A folder that cannot be listed
    is yielded as a failure.
    """
    seen: set[tuple[int, int]] = set()
    # Not recursive: a tree may be deeper than Python's stack.
    waiting = [iter([folder])]
    while waiting:
        path = next(waiting[-1], None)
        if path is None:
            waiting.pop()
            continue
        if path is not folder and path.name.lower().endswith(HTML_SUFFIXES):
            yield path
            continue
        try:
            status = path.stat()
            place = (status.st_dev, status.st_ino)
            if stat.S_ISDIR(status.st_mode) and place not in seen:
                seen.add(place)
                waiting.append(_entries(path))
        except FileNotFoundError:
            # A link to nothing, or a file that went meanwhile, and no page by its name.
            continue
        except OSError as error:
            yield failure(shown(path), error)


def read_html(path: Path, max_bytes: int) -> SourcePage | PageFailure:
    """Return the page in an HTML file; its URL is the file's ``file://`` URI."""
    url = path.absolute().as_uri()
    try:
        return SourcePage(url, _content(path, max_bytes))
    except (OSError, PageError) as error:
        return failure(url, error)


def _entries(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if not entry.name.startswith(".")]
    # So that page.html comes before page-print.html: the first of a group is its original.
    names.sort(key=lambda name: name.partition("."))
    return (folder / name for name in names)


def _content(path: Path, max_bytes: int) -> bytes:
    status = path.stat()
    # Opening a pipe would wait for somebody to write into it.
    if not stat.S_ISREG(status.st_mode):
        kind = "folder" if stat.S_ISDIR(status.st_mode) else "device or pipe"
        raise PageError("unreadable", f"a {kind}, not a file")
    size = status.st_size
    content = b""
    if size <= max_bytes:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
        # It may have grown since.
        size = len(content)
    if size > max_bytes:
        raise too_large("the file", max_bytes)
    return content
