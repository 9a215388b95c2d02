"""Read pages from JSON lines: an object with "url" and "html" on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pgsimhash.errors import PageError
from pgsimhash.pages.records import PageFailure
from pgsimhash.pages.urls import check_url
from pgsimhash.pages.values import too_large
from pgsimhash.sources.page import SourcePage, failure, parse_time, shown
from pgsimhash.sources.streams import DamagedError, Stream, open_stream

_BOM: Final = b"\xef\xbb\xbf"
_STEP: Final = 1024 * 1024


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
                yield _page(line, number)
            except PageError as error:
                yield failure(f"{name}#{number}", error)
    except DamagedError as damage:
        detail = f"{damage}; the lines after line {number} were not read"
        yield PageFailure(f"{name}#{number + 1}", "unreadable", detail)


def _finish_line(stream: Stream) -> None:
    while (rest := stream.readline(_STEP)) and not rest.endswith(b"\n"):
        stream.idle(len(rest))


def _page(line: bytes, number: int) -> SourcePage:
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
