"""Read the rows of Parquet files with the columns "url" and "html" or "text"."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pgsimhash.errors import PageError, install_command
from pgsimhash.pages.records import PageFailure
from pgsimhash.pages.values import too_large
from pgsimhash.sources.page import Reading, SourcePage, failure, one_line, page_of, shown

_COLUMNS: Final = ("url", "html", "text", "charset", "fetched_at")
_ROWS: Final = 64
"""How many rows are in memory at once."""

_BUFFER: Final = 1024 * 1024
"""How many bytes of a column are read at once; by default it would be the whole row group."""


def read(path: Path, reading: Reading) -> Iterator[SourcePage | PageFailure]:
    """Yield the pages of a file; the damaged rest of a row group is one failure."""
    name = shown(path)
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        problem = f"it needs pyarrow; install it {install_command('parquet')}"
        yield failure(name, PageError("unreadable", problem))
        return
    number, damages = 0, (pa.ArrowException, OSError, ValueError)
    try:
        with (
            path.open("rb") as opened,
            pq.ParquetFile(opened, buffer_size=_BUFFER, page_checksum_verification=True) as file,
        ):
            names = file.schema_arrow.names
            content = {"html", "text"} if reading.texts else {"html"}
            if "url" not in names or not content & {*names} or len({*names}) < len(names):
                more = '"html" ("text" needs a scheme for texts)'
                expected = '"text" or "html"' if reading.texts else more
                problem = f'it has the columns {", ".join(names)}, not "url" and {expected}'
                raise PageError("unreadable", problem)
            columns = [column for column in _COLUMNS if column in names]
            for group in range(file.num_row_groups):
                end = number + file.metadata.row_group(group).num_rows
                try:
                    for batch in file.iter_batches(_ROWS, [group], columns):
                        for row in range(len(batch)):
                            number += 1
                            yield _item(batch, row, f"{name}#{number}", number, reading)
                except damages as error:
                    detail = f"{one_line(error)}; rows {number + 1:,} to {end:,} were not read"
                    yield PageFailure(f"{name}#{number + 1}", "unreadable", detail)
                number = end
    except damages as error:
        yield failure(name, error)


def _item(
    batch: Any, row: int, place: str, number: int, reading: Reading
) -> SourcePage | PageFailure:
    try:
        cells = {name: batch[name][row].as_py() for name in batch.schema.names}
        page = page_of(cells, number, reading)
        if len(page.html) > reading.max_bytes:
            raise too_large("the page", reading.max_bytes)
    except (ValueError, OverflowError) as error:
        return failure(place, error)
    return page
