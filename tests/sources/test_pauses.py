"""Sources that wait for their next page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from pgsimhash.pages.records import PageFailure
from pgsimhash.sources import PAUSE, SourcePage, with_pauses

PAGES: list[SourcePage | PageFailure] = [
    SourcePage(f"https://a.example/{number}", "<p>x") for number in range(20)
]


def test_pages_come_in_their_order_and_end() -> None:
    assert [page for page in with_pauses(PAGES) if page is not PAUSE] == PAGES


def source(*steps: Callable[[], object]) -> Iterator[SourcePage | PageFailure]:
    """Yields a page before each step and after the last."""
    for number, step in enumerate([*steps, list]):
        yield PAGES[number]
        step()


def test_a_source_that_waits_gives_pauses() -> None:
    goes_on = threading.Event()
    pages = with_pauses(source(goes_on.wait))
    assert [next(pages) for _ in range(3)] == [PAGES[0], PAUSE, PAUSE]
    goes_on.set()
    assert [page for page in pages if page is not PAUSE] == PAGES[1:2]


def test_errors_of_a_source_are_raised_after_its_pages() -> None:
    pages = with_pauses(source({}.popitem))
    assert next(pages) == PAGES[0]
    with pytest.raises(KeyError, match="dictionary is empty"):
        list(pages)


def test_only_a_few_pages_are_read_ahead_and_none_after_the_end() -> None:
    taken: list[int] = []
    ended = threading.Event()

    def source() -> Iterator[SourcePage | PageFailure]:
        try:
            for number, page in enumerate(PAGES):
                taken.append(number)
                yield page
        finally:
            ended.set()

    pages = with_pauses(source())
    next(pages)
    pages.close()
    assert ended.wait(60)
    assert len(taken) <= 7
