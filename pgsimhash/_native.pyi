from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from lxml.html import HtmlElement
from numpy.typing import NDArray

_Simhashes = NDArray[np.uint64]
_Vote = tuple[int, int, int, int, int, float]
_Page = tuple[object, int, int, int, bytes, bool, list[HtmlElement]]

def make_tables(
    tags: Mapping[str, int],
    block_tags: Mapping[str, int],
    names: Mapping[str, int],
    hiding: Mapping[str, int],
    words: Mapping[str, int],
    coefficients: Mapping[str, float],
    fold: bytes,
    sources: bytes,
    split_complex: Callable[[str], tuple[str, ...] | None],
    split_of_title: Callable[[str], tuple[str, ...] | None],
    /,
) -> object: ...
def read(tables: object, body: HtmlElement, /) -> _Page | None: ...
def text(page: object, /) -> str: ...
def vote(tables: object, page: object, factors: tuple[float, ...], /) -> _Vote | None: ...
def vote_texts(
    tables: object, texts: list[str], factors: tuple[float, ...] | None, /
) -> list[_Vote | None]: ...
def events(
    tables: object,
    page: object,
    body: HtmlElement,
    functions: tuple[Callable[..., object], ...],
    most: int,
    /,
) -> list[tuple[str, Any] | str | None] | None: ...
def describe(element: HtmlElement, /) -> tuple[str, str | None, str | None, str | None, int]: ...
def is_clean(utf8: bytes, /) -> bool: ...
def odd_tags(html: bytes, /) -> tuple[int, bool, bool, bool, bool]: ...
def use_lxml() -> int: ...
def group(values: _Simhashes, blocks: NDArray[np.intc], /) -> bytearray: ...
def near_pairs(
    ordered: _Simhashes, mask: int, skipped: _Simhashes, distance: int, row: int, most: int, /
) -> tuple[bytearray, int]: ...
