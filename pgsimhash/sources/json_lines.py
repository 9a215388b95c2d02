"""Read JSON lines with "url" and "html" or "text"."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pgsimhash.errors import PageError
from pgsimhash.pages.records import PageFailure
from pgsimhash.pages.values import too_large
from pgsimhash.sources.page import Reading, SourcePage, failure, page_of, shown
from pgsimhash.sources.streams import DamagedError, Stream, open_stream

_BOM: Final = b"\xef\xbb\xbf"
_STEP: Final = 1024 * 1024


def read(path: Path, reading: Reading) -> Iterator[SourcePage | PageFailure]:
    """Yield the pages of a file of JSON lines."""
    try:
        with open_stream(path) as stream:
            yield from read_stream(stream, shown(path), reading)
    except (OSError, PageError) as error:
        yield failure(shown(path), error)


def read_stream(stream: Stream, name: str, reading: Reading) -> Iterator[SourcePage | PageFailure]:
    """Yield the pages of a stream of JSON lines, skipping empty lines.

    A line without a valid page is a failure of ``name#number``; reading continues. The
    ``pages.jsonl`` of a crawler is skipped, unless it has texts and texts are read.
    """
    number, max_bytes = 0, reading.max_bytes
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
                record = _record(line)
                if number > 1 or record.get("format") != "json-pages-1.0":
                    yield page_of(record, number, reading)
                elif not (reading.texts and record.get("hasText")):
                    reading.left_out["page lists of archives"] += 1
                    return
            except PageError as error:
                yield failure(f"{name}#{number}", error)
    except DamagedError as damage:
        detail = f"{damage}; the lines after line {number} were not read"
        yield PageFailure(f"{name}#{number + 1}", "unreadable", detail)


def _finish_line(stream: Stream) -> None:
    while (rest := stream.readline(_STEP)) and not rest.endswith(b"\n"):
        stream.idle(len(rest))


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise PageError("unreadable", f"the line is not UTF-8 (byte {error.start + 1})") from None
    except (ValueError, RecursionError) as error:
        raise PageError("unreadable", f"the line is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise PageError("unreadable", 'the line is not a JSON object with "url" and "html"')
    return record
