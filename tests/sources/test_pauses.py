"""Sources that wait for their next page."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pgsimhash.pages.records import PageFailure
from pgsimhash.sources import PAUSE, SourcePage, with_pauses

PAGES: list[SourcePage | PageFailure] = [
    SourcePage(f"https://a.example/{number}", "<p>x") for number in range(20)
]


def test_pages_come_in_their_order_and_end() -> None:
    assert [page for page in with_pauses(PAGES) if page is not PAUSE] == PAGES


def test_a_source_that_waits_gives_pauses() -> None:
    goes_on = threading.Event()

    def source() -> Iterator[SourcePage | PageFailure]:
        yield PAGES[0]
        goes_on.wait()
        yield PAGES[1]

    pages = with_pauses(source())
    assert [next(pages) for _ in range(3)] == [PAGES[0], PAUSE, PAUSE]
    goes_on.set()
    assert [page for page in pages if page is not PAUSE] == PAGES[1:2]


def test_errors_of_a_source_are_raised_after_its_pages() -> None:
    def source() -> Iterator[SourcePage | PageFailure]:
        yield PAGES[0]
        raise RuntimeError("the disk is gone")

    pages = with_pauses(source())
    assert next(pages) == PAGES[0]
    with pytest.raises(RuntimeError, match="the disk is gone"):
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
