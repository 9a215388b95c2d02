"""Sources that wait for their next page do not keep those before it waiting."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import suppress
from queue import Empty, Queue
from threading import Event, Thread
from typing import Final, NamedTuple

from pgsimhash.records import PageFailure
from pgsimhash.sources.page import SourcePage

_Page = SourcePage | PageFailure

PAUSE: Final = PageFailure("", "unexpected", "no page comes at the moment")
"""What a source may yield in place of a page while none comes; it has no verdict."""

_SECONDS: Final = 0.5
_AHEAD: Final = 4
"""How many pages are held until they are taken."""


class _End(NamedTuple):
    error: BaseException | None


def with_pauses(pages: Iterable[_Page]) -> Generator[_Page]:
    """Yield pages as they come, and :data:`PAUSE` twice a second while none does.

    A thread reads them, up to 5 ahead, and what it raises is raised here. It ends with them, or
    with the first page after this iterator was closed.
    """
    queue: Queue[_Page | _End] = Queue(_AHEAD)
    is_over = Event()
    # A daemon: nobody can end a read from a terminal or a pipe to which nothing is written.
    Thread(target=_read, args=(pages, queue, is_over), name="pages", daemon=True).start()
    try:
        while True:
            try:
                item = queue.get(timeout=_SECONDS)
            except Empty:
                item = PAUSE
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        is_over.set()
        # The thread may wait for room.
        with suppress(Empty):
            while True:
                queue.get_nowait()


def _read(pages: Iterable[_Page], queue: Queue[_Page | _End], is_over: Event) -> None:
    try:
        for page in pages:
            queue.put(page)
            if is_over.is_set():
                return
    except BaseException as error:
        queue.put(_End(error))
    else:
        queue.put(_End(None))
