"""Ingest files, and skip those that are stored already."""

import stat
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from pgsimhash import sources
from pgsimhash.errors import PgsimhashError
from pgsimhash.pages.records import PageFailure, PageItem, Pause, Verdict
from pgsimhash.sources.page import Reading, plain_path, shown, with_pauses
from pgsimhash.store.lookups import Calls
from pgsimhash.store.session import Session, retried

See = Callable[[Calls, list[int]], None]  # records that skipped versions were seen again

_AT_ONCE: Final = 1000  # files per lookup statement
_UNWRITTEN_MAX: Final = 256  # verdicts until progress is recorded: a killed job repeats a batch
_FAILED_MAX: Final = 1000  # recorded failures of a file; the records after them are read again
_PATH_BYTES_MAX: Final = 2048  # longer paths do not fit into the index, and are not recorded


@dataclass(slots=True)
class _Progress:
    """How much of a file is stored, under its absolute path."""

    path: str
    url: str | None  # of a single page
    size: int
    modified_ns: int
    last_record: int | None = 0  # the last decided record; None: all are
    failed: set[int] = field(default_factory=set)  # those of them that failed
    page_id: int | None = None  # the stored version of a single page
    token: str | None = None  # of its row: progress is recorded only if the row still has it
    is_complete: bool = True

    def has(self, record: int | None) -> bool:
        """Return whether a record is stored already."""
        return (
            record is not None and record <= (self.last_record or 0) and record not in self.failed
        )

    def decided(self, record: int | None, verdict: Verdict) -> None:
        """Record a verdict; ``record`` is None if its number may differ in the next run."""
        if self.url is not None:
            self.page_id = verdict.page_id
        # Policies may leave more words next time.
        failed = verdict.kind == "failed" or verdict.reason in ("policy", "cut_short")
        last = self.last_record or 0
        if record is None or (record > last and len(self.failed) >= _FAILED_MAX):
            self.is_complete = False
            return
        self.last_record = max(last, record)
        (self.failed.add if failed else self.failed.discard)(record)


class _Pending(NamedTuple):
    """A page without a verdict yet: its file and number in it, and the values of its verdict."""

    file: _Progress | None
    record: int | None
    capture: dict[str, Any]


class Files:
    """Assigns the verdicts of pages to their files."""

    def __init__(
        self, session: Session, see: See, reread: bool, reading: Reading, stdin: BinaryIO | None
    ) -> None:
        self._session, self._see, self._reread = session, see, reread
        self._reading, self._stdin = reading, stdin
        # The pages without a verdict yet; a file alone marks its end.
        self._pending: deque[_Pending | _Progress] = deque()
        self._unwritten: dict[str, _Progress] = {}

    def read(self, paths: Iterable[str | Path]) -> Iterator[PageItem]:
        """Yield the pages that are not stored yet."""
        found = sources.find_files(paths, self._reading)
        while chunk := list(islice(found, _AT_ONCE)):
            files = [
                None if isinstance(file, PageFailure) else self._at_present(file) for file in chunk
            ]
            if known := [file for file in files if file is not None]:
                self._begin(known)
            for path, file in zip(chunk, files, strict=True):
                if isinstance(path, PageFailure):
                    self._pending.append(_Pending(None, None, {"source": path.url}))
                    yield path
                else:
                    yield from self._pages(path, file)

    def _pages(self, path: Path, file: _Progress | None) -> Iterator[PageItem]:
        source = shown(path)
        if file is not None and file.last_record is None:
            self._reading.skip(sources.FILES_BEFORE, source)
            if not sources.is_page_name(path.name):
                self._reading.on_read(file.size)
            return
        pages, is_numbered = sources.read_file(path, self._reading, self._stdin), True
        if str(path) == "-":
            # The process that writes to stdin may wait for verdicts before it continues.
            pages = with_pauses(pages)
        for page in pages:
            if isinstance(page, Pause):
                yield page
                continue
            # After a failure of unknown length, the next run may number records differently.
            is_numbered = is_numbered and page.record is not None
            record = page.record if is_numbered else None
            if file is not None and file.has(record):
                self._reading.skip(sources.RECORDS_BEFORE, source, record, page.url)
                continue
            fetched_at = None if isinstance(page, PageFailure) else page.fetched_at
            capture = {"source": source, "record": page.record, "fetched_at": fetched_at}
            self._pending.append(_Pending(file, record, capture))
            yield page
        if file is not None:
            self._pending.append(file)

    def noted(self, verdicts: Iterator[Verdict]) -> Generator[Verdict]:
        """Yield the verdicts, and record the progress of their files.

        A verdict is recorded when the next one is asked for: the caller may fail to print it.
        """
        try:
            for count, verdict in enumerate(verdicts, 1):
                self._take_ends()
                pending = self._pending.popleft()
                assert isinstance(pending, _Pending), "ends were removed"
                if verdict.kind == "unknown":
                    source, record = pending.capture["source"], pending.capture["record"]
                    self._reading.skip(sources.UNKNOWN, source, record, verdict.url)
                else:
                    yield replace(verdict, **pending.capture)
                if (file := pending.file) is not None:
                    file.decided(pending.record, verdict)
                    self._unwritten[file.path] = file
                if count % _UNWRITTEN_MAX == 0:
                    self._write()
            self._take_ends()
        except (KeyboardInterrupt, GeneratorExit):
            # What is not recorded is only read again.
            with suppress(PgsimhashError):
                self._write()
            raise
        self._write()

    def _take_ends(self) -> None:
        while self._pending and isinstance(file := self._pending[0], _Progress):
            # The file has no more records.
            if file.is_complete and not file.failed:
                file.last_record = None
            self._unwritten[file.path] = file
            self._pending.popleft()

    @retried
    def _begin(self, files: Sequence[_Progress]) -> None:
        """Load the recorded progress of files, and mark their pages as seen; record new files."""
        with self._session.calls_to_write() as calls:
            calls.lock()
            known = calls.fetch("begin_sources", dict_row, rows=_rows(files))
            rows = {row["path"]: row for row in known}
            for file in files:
                row = rows[file.path]
                file.token = str(row["token"])
                is_same = (row["size"], row["modified_ns"]) == (file.size, file.modified_ns)
                # Another base_url gives a file another URL.
                if is_same and row["url"] in (None, file.url) and not self._reread:
                    file.last_record, file.failed = row["last_record"], set(row["failed"])
                    file.page_id = row["page_id"]
            if seen := [file.page_id for file in files if file.page_id is not None]:
                self._see(calls, seen)

    def _at_present(self, file: Path) -> _Progress | None:
        """Return a new entry for a file, or None if it cannot be recorded."""
        try:
            status = file.stat()
        except (OSError, ValueError):
            return None
        path, url = shown(plain_path(file)), None
        if not stat.S_ISREG(status.st_mode) or len(path.encode()) > _PATH_BYTES_MAX:
            return None
        if sources.is_page_name(file.name):
            url = self._session.collection.page_url(self._reading.url_of(file))
        return _Progress(path, url, status.st_size, status.st_mtime_ns)

    @retried
    def _write(self) -> None:
        if not self._unwritten:
            return
        with self._session.calls_to_write() as calls:
            calls.lock()
            calls.fetch("put_sources", rows=_rows(self._unwritten.values()))
        self._unwritten.clear()


def _rows(files: Iterable[_Progress]) -> Jsonb:
    return Jsonb([{**asdict(file), "failed": sorted(file.failed)} for file in files])
