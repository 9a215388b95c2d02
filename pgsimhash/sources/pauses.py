"""Signal pauses of a slow source, so that earlier pages need not wait."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import suppress
from queue import Empty, Queue
from threading import Event, Thread
from typing import Final, NamedTuple

from pgsimhash.pages.records import PageFailure
from pgsimhash.sources.page import SourcePage

_Page = SourcePage | PageFailure

PAUSE: Final = PageFailure("", "crashed", "no page comes at the moment")
"""A source may yield this instead of a page while none arrives; it gets no verdict."""

_SECONDS: Final = 0.5
_AHEAD: Final = 4
"""How many pages are read ahead."""


class _End(NamedTuple):
    error: BaseException | None


def with_pauses(pages: Iterable[_Page]) -> Generator[_Page]:
    """Yield pages as they arrive, and :data:`PAUSE` twice a second while none does.

    A thread reads up to 5 pages ahead; its errors are raised here. The thread ends with the pages,
    or at the first page after this iterator was closed.
    """
    queue: Queue[_Page | _End] = Queue(_AHEAD)
    is_over = Event()
    # A daemon, because a blocked read from a terminal or pipe cannot be interrupted.
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
        # Makes room, in case the thread waits for it.
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
