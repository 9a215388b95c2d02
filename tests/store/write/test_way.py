"""The way of a page from ``ingest`` to the row: few calls, without detours; see CONTRIBUTING.md."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, FunctionType

import pytest

import pgsimhash
from pgsimhash import Store
from tests.conftest import ROOT

PACKAGE = str(Path(pgsimhash.__file__).parent)
PAGE = ROOT / "examples" / "pages" / "sourdough-bakery.html"
COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")


def frames_above(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and the frames of the package that called it."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            yield frame
        frame = frame.f_back


@pytest.fixture
def warm(store: Store) -> Store:
    """A store that has already read pages, so one-time work is done."""
    for number in range(3):
        store.ingest(f"https://a.example/{number}", PAGE.read_bytes())
    return store


def handed_down(frame: FrameType) -> list[str]:
    """The anonymous functions among a frame's arguments."""
    arguments = inspect.getargvalues(frame)
    values = (arguments.locals[name] for name in arguments.args if name in arguments.locals)
    return [
        f"{frame.f_code.co_qualname}: {value}"
        for value in values
        if isinstance(value, functools.partial)
        or (isinstance(value, FunctionType) and "<" in value.__qualname__)
    ]


@pytest.mark.parametrize("end", ["fingerprint", "write_batch"])
def test_no_nested_function_is_between_a_page_and_its_row(warm: Store, end: str) -> None:
    ways: list[list[str]] = []
    nested: list[str] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == end:
            way = list(frames_above(frame))
            ways.append([one.f_code.co_qualname for one in way])
            nested.extend(name for one in way for name in handed_down(one))

    sys.setprofile(watch)
    try:
        (verdict,) = warm.ingest_many([("https://a.example/9", PAGE.read_bytes())])
    finally:
        sys.setprofile(None)
    assert verdict.verdict == "duplicate"
    (way,) = ways
    assert nested == []
    assert len(way) <= 5
    assert [one for one in way if "<" in one and not one.endswith(COMPREHENSIONS)] == []


def test_it_is_short(warm: Store) -> None:
    calls: list[tuple[str, str]] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            calls.append((code.co_filename, code.co_qualname))

    sys.setprofile(watch)
    try:
        warm.ingest("https://a.example/9", PAGE.read_bytes())
    finally:
        sys.setprofile(None)
    # A limit with room: one more helper is fine, half as many calls again are not.
    assert len(calls) <= 500
    assert len(set(calls)) <= 250
    assert len({module for module, _ in calls}) <= 60
