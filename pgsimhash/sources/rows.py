"""Read JSON lines, and rows of Parquet files, with "url" and "html" or "text"."""

import json
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, BinaryIO, Final

from pgsimhash.errors import PageError, install_command
from pgsimhash.pages.records import PageFailure, PageItem, SourcePage
from pgsimhash.pages.urls import check_url
from pgsimhash.pages.values import too_large, validator
from pgsimhash.sources.page import TEXT_SCHEME, Reading, failure, one_line, read_time
from pgsimhash.sources.streams import DamagedError, Stream, stream_of

_BOM: Final = b"\xef\xbb\xbf"
_STEP: Final = 1024 * 1024

_COLUMNS: Final = ("url", "html", "text", "charset", "fetched_at", "etag", "last_modified")
_TEXT_NEEDS: Final = f'"text" needs {TEXT_SCHEME}, and texts=True in Python'
_ROWS: Final = 64  # rows in memory at once
_BUFFER: Final = 1024 * 1024  # bytes of a column read at once; by default, its whole row group
IN_PARTS: Final[dict[str, Any]] = {
    "buffer_size": _BUFFER,
    "pre_buffer": False,
    "page_checksum_verification": True,
}
"""The options of pyarrow that read a Parquet file in little memory, and find damage."""


def read_json_lines(file: BinaryIO, name: str, reading: Reading) -> Iterator[PageItem]:
    """Yield the pages of a file of JSON lines, packed or not."""
    return read_lines(stream_of(file), name, reading)


def read_lines(stream: Stream, name: str, reading: Reading) -> Iterator[PageItem]:
    """Yield the pages of a stream of JSON lines, skipping empty lines.

    A line without a valid page is a failure of ``name#number``; reading continues. The
    ``pages.jsonl`` of a crawler is skipped, unless it has texts and texts are read.
    """
    number, max_bytes = 0, reading.max_bytes
    try:
        while line := stream.readline(max_bytes + 1):
            number += 1
            try:
                if len(line) > max_bytes and not line.endswith(b"\n"):
                    while (rest := stream.readline(_STEP)) and not rest.endswith(b"\n"):
                        stream.idle(len(rest))
                    raise too_large("the line", max_bytes)
                if not line.strip():
                    stream.idle(len(line))
                    continue
                fields = line_fields(line)
                if number > 1 or fields.get("format") != "json-pages-1.0":
                    yield _page(fields, number, reading)
                elif not (reading.texts and fields.get("hasText")):
                    reading.skip("page lists of archives", name)
                    return
            except PageError as error:
                yield failure(f"{name}#{number}", error, number)
    except DamagedError as damage:
        detail = f"{damage}; the lines after line {number} were not read"
        yield PageFailure(f"{name}#{number + 1}", "unreadable", detail)


def line_fields(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line; any other is a PageError."""
    try:
        fields = json.loads(line.removeprefix(_BOM).decode())
    except UnicodeDecodeError as error:
        raise PageError("unreadable", f"the line is not UTF-8 (byte {error.start + 1})") from None
    except (ValueError, RecursionError) as error:
        raise PageError("unreadable", f"the line is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise PageError("unreadable", "the line is not a JSON object")
    return fields


def read_parquet(file: BinaryIO, name: str, reading: Reading) -> Iterator[PageItem]:
    """Yield the pages of a Parquet file; the damaged rest of a row group is one failure."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        problem = f"it needs pyarrow; install it {install_command('parquet')}"
        raise PageError("unreadable", problem) from None
    number, damages = 0, (pa.ArrowException, OSError, ValueError)
    try:
        with pq.ParquetFile(file, **IN_PARTS) as table:
            names = table.schema_arrow.names
            content = "text" if reading.texts else "html"
            if not {"url", content} <= {*names} or len({*names}) < len(names):
                expected = '"text"' if reading.texts else f'"html" ({_TEXT_NEEDS})'
                problem = f'it has the columns {", ".join(names)}, not "url" and {expected}'
                raise PageError("unreadable", problem)
            columns = [column for column in _COLUMNS if column in names]
            for group in range(table.num_row_groups):
                end = number + table.metadata.row_group(group).num_rows
                try:
                    for batch in table.iter_batches(_ROWS, [group], columns):
                        for at, column in enumerate(batch.schema):
                            # Python has no nanoseconds, and not the time zones of all programs.
                            if pa.types.is_timestamp(column.type):
                                times = batch[at].cast(pa.timestamp("us", "UTC"), safe=False)
                                batch = batch.set_column(at, column.name, times)
                        for row in range(len(batch)):
                            number += 1
                            yield _row_page(batch, row, f"{name}#{number}", number, reading)
                    if number < end:
                        # No checksum protects the page headers.
                        raise ValueError("a page header is damaged")
                except damages as error:
                    detail = f"{one_line(error)}; rows {number + 1:,} to {end:,} were not read"
                    yield PageFailure(f"{name}#{number + 1}", "unreadable", detail)
                number = end
            if number != table.metadata.num_rows:
                raise ValueError("its footer is damaged")
    except damages as error:
        yield failure(name, error)


def _row_page(batch: Any, row: int, place: str, number: int, reading: Reading) -> PageItem:
    try:
        fields = {name: batch[name][row].as_py() for name in batch.schema.names}
        # Some programs write texts without their type.
        for name, value in fields.items():
            if isinstance(value, bytes) and name not in ("html", "text"):
                fields[name] = value.decode()
        page = _page(fields, number, reading)
        if len(page.html) > reading.max_bytes:
            raise too_large("the page", reading.max_bytes)
    except (ValueError, OverflowError) as error:
        return failure(place, error, number)
    return page


def _page(fields: Mapping[str, Any], number: int, reading: Reading) -> SourcePage:
    url = check_url(_checked(fields, "url").strip(), any_id=reading.texts)
    key = "text" if reading.texts else "html"
    if key not in fields and "text" in fields:
        raise PageError("unreadable", f'"html" is missing, and {_TEXT_NEEDS}')
    html = _checked(fields, key, (str, bytes))
    charset = None if fields.get("charset") is None else _checked(fields, "charset")
    time = fields.get("fetched_at")
    if time is not None:
        text = time.isoformat() if isinstance(time, date) else str(time)
        time = read_time(text)
        if time is None and text:
            problem = f'"fetched_at" is not a time of ISO 8601 like 2026-11-25T12:00Z: {text!r:.80}'
            raise PageError("unreadable", problem)
    etag, modified = (validator(fields.get(name)) for name in ("etag", "last_modified"))
    return SourcePage(url, html, charset, time, number, etag, modified)


def _checked(fields: Mapping[str, Any], key: str, types: tuple[type, ...] = (str,)) -> Any:
    if key not in fields:
        raise PageError("unreadable", f'"{key}" is missing')
    if not isinstance(fields[key], types):
        raise PageError("unreadable", f'"{key}" is not a string')
    return fields[key]
