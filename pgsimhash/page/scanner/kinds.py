"""What the scanner of :mod:`pgsimhash.page.scanner.scan` knows of HTML, as tables of hashes.

A name is looked up by the FNV-1a hash of a sign for what kind of name it is, and the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from html.entities import html5
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.hashes import fnv1a_64
from pgsimhash.page.names import (
    BESIDE_ROLES,
    BESIDE_TEXT,
    BESIDE_WORDS,
    NEVER_TEXT,
    TEXT_WORDS,
    words,
)

# Flags of tags. A tag's value is its number and, from bit 8 on, its flags.
BLOCK: Final = 1 << 8
"""Text before and after the tag is not one word."""
CONTAINER: Final = 1 << 9
NEVER: Final = 1 << 10
RAW: Final = 1 << 11
"""What is in it is not markup, up to its end tag."""
BESIDE: Final = 1 << 12
LINKS: Final = 1 << 13
"""Mostly links, it is navigation."""
ANCHOR: Final = 1 << 14
ARTICLE: Final = 1 << 15
MAIN: Final = 1 << 16
ROLE_MAIN: Final = 1 << 17
ID_CONTENT: Final = 1 << 18
NAMED: Final = 1 << 19
"""Its attributes say that it stands beside the text, or is hidden."""
READ: Final = 1 << 20
"""A tag whose attributes say something of the page: html, title, link, base."""

CLASS, ID, ROLE, STYLE, HIDDEN, REL, HREF = range(1, 8)
HTML, TITLE, LINK, BASE = range(1, 5)

_CONTAINERS: Final = words(
    "div section header form table ul ol dl figure blockquote details fieldset center address"
    " hgroup main article"
)
_BLOCKS: Final = words(
    "p h1 h2 h3 h4 h5 h6 li dd dt tr td th tbody thead tfoot caption pre hr br figcaption summary"
    " legend body html option optgroup noembed noframes xmp listing dir"
)
_RAW: Final = words("script style noscript textarea iframe noembed noframes xmp title")
_NEVER: Final = NEVER_TEXT - _RAW - words("head input embed")
"""What has neither a text of its own nor, for sure, an end tag is left out."""
_LINK_BLOCKS: Final = words("ul ol dl div section table header form")


class Table(NamedTuple):
    """Hashes and what they stand for; a hash is at the first place from its low bits on."""

    keys: NDArray[np.uint64]
    values: NDArray[np.int64]


def table(entries: Mapping[str, int]) -> Table:
    """Return what the UTF-8 of each name is hashed to, and what it stands for."""
    size = 1 << (2 * len(entries)).bit_length()
    keys = np.zeros(size, dtype=np.uint64)
    values = np.zeros(size, dtype=np.int64)
    for key, value in zip(fnv1a_64(list(entries)).tolist(), entries.values(), strict=True):
        slot = key % size
        while keys[slot]:
            slot = (slot + 1) % size
        keys[slot] = key
        values[slot] = value
    return Table(keys, values)


@cache
def names() -> Table:
    """Return tags (``<div``), attributes (``@class``), words in names (``.ad``) and the like.

    Returns:
        Keys and values, shape (n,) each, n a power of two.
    """
    flags: dict[str, int] = dict.fromkeys(("html", "title", "link", "base", "a"), 0)
    for members, flag in (
        (_CONTAINERS | BESIDE_TEXT, BLOCK | CONTAINER),
        (_BLOCKS, BLOCK),
        (_NEVER, BLOCK | CONTAINER | NEVER),
        (_RAW, RAW),
        (BESIDE_TEXT, BESIDE),
        (_LINK_BLOCKS, LINKS),
        (["html", "title", "link", "base"], READ),
        (["a"], ANCHOR),
        (["article"], ARTICLE),
        (["main"], MAIN),
    ):
        for name in members:
            flags[name] = flags.get(name, 0) | flag
    # The numbers of the first four are HTML, TITLE, LINK and BASE.
    order = enumerate([*list(flags)[:5], *sorted(list(flags)[5:])], start=1)
    entries = {f"<{name}": number | flags[name] for number, name in order}
    attributes = ("class", "id", "role", "style", "hidden", "rel", "href")
    entries |= {f"@{name}": number for number, name in enumerate(attributes, start=1)}
    entries |= {f".{word}": 1 for word in BESIDE_WORDS} | {f".{word}": 2 for word in TEXT_WORDS}
    entries |= {f"={role}": BESIDE for role in BESIDE_ROLES} | {"=main": ROLE_MAIN}
    entries |= {"#content": ID_CONTENT, "~canonical": 1}
    entries |= {";display:none": 1, ";visibility:hidden": 1}
    return table(entries)


@cache
def references() -> Table:
    """Return the named character references, such as ``&amp;``.

    Returns:
        Keys, and the code points: the first, and from bit 32 on the second, or 0. References that
        may stand without a semicolon are there in both forms.
    """
    entries = {}
    for name, text in html5.items():
        codes = [*map(ord, text), 0]
        entries[f"&{name}"] = codes[0] | codes[1] << 32
    return table(entries)
