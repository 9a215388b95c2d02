"""What all readers of files need, and pauses of a slow source."""

import os
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import parsedate_to_datetime
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from pgsimhash.errors import PageError
from pgsimhash.pages.records import PageFailure, PageItem, Pause
from pgsimhash.runtime import no_progress

BEGIN_BYTES: Final = 4096
BEFORE_MARKUP: Final = b"\xef\xbb\xbf \t\r\n"
# Browsers search the first two at the begin alone (MIME Sniffing, section 7.1).
_MARKUP: Final = re.compile(
    rb"<(?:!doctype\s+html|html|head|body)\b"
    rb"|\A(?:<!--(?:(?!-->).)*+-->\s*)*+<(?:script|iframe|h1|div|font|table|a|style|title|b|br|p)[\s>]",
    re.IGNORECASE | re.DOTALL,
)

TEXT_SCHEME: Final = "a scheme for texts: pgsimhash-text-1 or pgsimhash-short-1"


class Skipped(NamedTuple):
    """A file, or a record of a file with its URL, that was not read as a page, and why."""

    reason: str
    source: str
    record: int | None = None
    url: str | None = None


OnSkipped = Callable[[Skipped], object]


_INDEX: Final = re.compile(r"(?<![^/])index\.html(?=\?|$)")
_OF_URLS: Final = "/?&=%:@;,+!~*'()$"
"""The characters of a file's path that its URL does not encode."""


class Reading(NamedTuple):
    """How files are read; see :func:`pgsimhash.sources.read_pages`."""

    max_bytes: int
    skipped: Counter[str]
    texts: bool
    on_skipped: OnSkipped = no_progress
    base_url: str | None = None  # of the files in these folders
    folders: tuple[Path, ...] = ()
    on_read: Callable[[int], None] = no_progress  # bytes of a file of many pages

    def url_of(self, path: Path) -> str:
        """Return the URL of an HTML file, as ``wget -r -nH`` names it, else its ``file:`` URL."""
        plain = plain_path(path)
        inside = next(filter(plain.is_relative_to, self.folders), None)
        if self.base_url is None or inside is None:
            return plain.as_uri()
        place = _INDEX.sub("", plain.relative_to(inside).as_posix())
        return f"{self.base_url.rstrip('/')}/{quote(os.fsencode(place), safe=_OF_URLS)}"

    def skip(self, reason: str, *place: Any) -> None:
        """Count a skipped file or record; ``place`` has the other values of :class:`Skipped`."""
        self.skipped[reason] += 1
        self.on_skipped(Skipped(reason, *place))


def failure(url: str, error: Exception, record: int | None = None) -> PageFailure:
    """Return ``error`` as the failure of ``url``."""
    reason = error.reason if isinstance(error, PageError) else "unreadable"
    return PageFailure(url, reason, one_line(error), record)


def looks_like_html(data: bytes) -> bool:
    """Return whether a body or file of unknown type begins like an HTML page."""
    begin = data[:BEGIN_BYTES].lstrip(BEFORE_MARKUP)
    return begin.startswith(b"<") and _MARKUP.search(begin) is not None


def one_line(error: Exception) -> str:
    """Return the message on one line, without the path and number of a system error."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return " ".join(text.split()) or type(error).__name__


def shown(path: str | Path) -> str:
    """Return ``path`` as text that can be printed and stored, for any bytes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def plain_path(path: Path) -> Path:
    """Return the absolute path without ``..``; it names the same file.

    Links stay as they are, except before ``..``, which is the parent of a link's target.
    """
    plain = Path()
    for part in path.absolute().parts:
        if part != "..":
            plain /= part
        else:
            plain = (plain.resolve() if plain.is_symlink() else plain).parent
    return plain


# Day 294 of 2008, with the month before it, and a day behind the time.
_ORDINAL: Final = re.compile(r"(\d{4})-(?:\d\d-)?(\d{3})(?=T|$)", re.ASCII)
_EPOCH: Final = re.compile(r"1\d{9}((?:\d{3}){0,3})(?:\.\d+)?", re.ASCII)
# What is odd in dates, and how ISO 8601 writes it.
_ODD: Final = {
    r"^[<\"']|(?:[>\"']|\[[^\]]*\]| M=\+[\d.]+)$": "",  # of Java and Go
    r"^(\d{4})/(\d\d?)/(?=\d)": r"\1-\2-",
    r"(?<!W\d\d-)(?<=[-: T])(?=\d(?:[-: TZ]|$))": "0",
    r"^(\d{8})(\d{4}(?:\d\d)?)\d*$": r"\1T\2",  # of CDX files
    r"^(\d{4})$": r"\1-01",
    r"^(\d{4}-\d\d)$": r"\1-01",
    r"^(\d{4}-.*?\d)(?: ?[+-]00:?00)? ?(?:Z|UTC|GMT)$": r"\1Z",
    r"(:\d\d):60(?!\d)": r"\1:59",  # a leap second is the last one of its minute here
}


def read_time(text: str) -> datetime | None:
    """Return the first moment of a date in any of the forms that archives have, or None."""
    text = text.strip().upper()[:99]
    day = 0
    if found := _ORDINAL.match(text):
        text, day = f"{found[1]}-01-01{text[found.end() :]}", int(found[2]) - 1
    elif found := _EPOCH.fullmatch(text):
        return datetime.fromtimestamp(float(text) / 10 ** len(found[1]), UTC)
    for odd, plain in _ODD.items():
        text = re.sub(odd, plain, text, flags=re.ASCII)
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError, TypeError, OverflowError):
            time = parse(text)
            return time.replace(tzinfo=time.tzinfo or UTC) + timedelta(days=day)
    return None


_TYPES: Final = re.compile(r"^\s*([\w.+-]+/[\w.+-]+)[\s,;]+(?:[\w.+-]+/[\w.+-]+[\s,;]*)?")


def content_type(header: str) -> Message:
    """Return a parsed ``Content-Type``."""
    message = Message()
    # Parsing parameters takes quadratic time. Some servers separate them by a comma or a space,
    # or send two types.
    message["Content-Type"] = _TYPES.sub(r"\1; ", header[:1000])
    return message


_PAUSE_SECONDS: Final = 0.5
_AHEAD: Final = 4  # pages read ahead


def with_pauses(pages: Iterable[PageItem]) -> Generator[PageItem]:
    """Yield pages as they arrive, and a :class:`Pause` twice a second while none does.

    A thread reads up to 5 pages ahead; its errors are raised here. The thread ends with the pages,
    or at the first page after this iterator was closed.
    """
    queue: Queue[PageItem | BaseException] = Queue(_AHEAD)
    is_over = Event()

    def read() -> None:
        end: BaseException = StopIteration()
        try:
            for page in pages:
                queue.put(page)
                if is_over.is_set():
                    return
        except BaseException as error:
            end = error
        queue.put(end)

    # A daemon, because a blocked read from a terminal or pipe cannot be interrupted.
    Thread(target=read, name="pages", daemon=True).start()
    try:
        while True:
            try:
                item = queue.get(timeout=_PAUSE_SECONDS)
            except Empty:
                item = Pause()
            if isinstance(item, StopIteration):
                return
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        is_over.set()
        # Makes room, in case the thread waits for it.
        with suppress(Empty):
            while True:
                queue.get_nowait()
