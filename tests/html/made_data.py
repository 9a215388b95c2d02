"""Generate data pages: shared prose, and a table, a list or code that differs.

Labelled sets have few such pages, and crawlers meet them every day: price lists, results,
timetables, catalogues, reference pages. Everything comes from a ``random.Random``, so the pages are
reproducible.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

PROSE_MAX = 400
DATA_MIN, DATA_MAX = 20, 2000


@dataclass(frozen=True)
class Shape:
    """The shape of data: one of KINDS, columns of a table (words of an item), words in a cell."""

    kind: str
    columns: int
    cell: int
    header: bool
    marked: bool
    prose_first: bool


@dataclass(frozen=True)
class Data:
    """The content of a page: prose, and data as a list of tokens."""

    title: str
    prose: Sequence[str]
    tokens: Sequence[str]
    shape: Shape

    def markup(self) -> str:
        head = f"<h1>{escape(self.title)}</h1>" if self.title else ""
        prose = "".join(f"<p>{escape(text)}</p>" for text in sentences(self.prose))
        data = KINDS[self.shape.kind](self.tokens, self.shape)
        return head + (prose + data if self.shape.prose_first else data + prose)


def sentences(words: Sequence[str], size: int = 60) -> list[str]:
    """Paragraphs of at most this many words."""
    return [" ".join(words[at : at + size]) + "." for at in range(0, len(words), size)]


def number(rng: random.Random) -> str:
    return str(rng.randrange(10 ** rng.randrange(1, 5)))


def cells(tokens: Sequence[str], size: int) -> list[str]:
    return [escape(" ".join(tokens[at : at + size])) for at in range(0, len(tokens), size)]


def table(tokens: Sequence[str], shape: Shape) -> str:
    texts = cells(tokens, shape.cell)
    rows = [texts[at : at + shape.columns] for at in range(0, len(texts), shape.columns)]
    mark = ' class="data"' if shape.marked else ""
    head = "".join(f"<th>{name}</th>" for name in ("Name", "Value", "Unit", "Note", "From", "To"))
    return (
        f"<table{mark}>{f'<tr>{head}</tr>' if shape.header else ''}"
        + "".join(f"<tr>{''.join(f'<td>{text}</td>' for text in row)}</tr>" for row in rows)
        + "</table>"
    )


def items(tokens: Sequence[str], shape: Shape) -> str:
    tag = "ol" if shape.header else "ul"
    texts = cells(tokens, shape.cell * 2)
    return f"<{tag}>{''.join(f'<li>{text}</li>' for text in texts)}</{tag}>"


def links(tokens: Sequence[str], shape: Shape) -> str:
    texts = cells(tokens, shape.cell * 2)
    linked = "".join(f'<li><a href="/{at}">{text}</a></li>' for at, text in enumerate(texts))
    return f"<ul>{linked}</ul>"


def cards(tokens: Sequence[str], shape: Shape) -> str:
    texts = cells(tokens, shape.cell)
    mark = ' class="item"' if shape.marked else ""
    return "".join(
        f"<div{mark}><h3>{texts[at]}</h3><p>{' '.join(texts[at + 1 : at + 4])}</p></div>"
        for at in range(0, len(texts), 4)
    )


def terms(tokens: Sequence[str], shape: Shape) -> str:
    texts = cells(tokens, shape.cell)
    pairs = zip(texts[::2], [*texts[1::2], ""], strict=False)
    return f"<dl>{''.join(f'<dt>{term}</dt><dd>{text}</dd>' for term, text in pairs)}</dl>"


def code(tokens: Sequence[str], shape: Shape) -> str:
    fours = (tokens[at : at + 4] for at in range(0, len(tokens), 4))
    lines = "\n".join(f"{name} = {'('.join(called)})" for name, *called in fours)
    return f"<pre><code>{escape(lines)}</code></pre>"


def boxes(tokens: Sequence[str], shape: Shape) -> str:
    """A table made of ``div``."""
    texts = cells(tokens, shape.cell)
    rows = [texts[at : at + shape.columns] for at in range(0, len(texts), shape.columns)]
    mark = (' class="row"', ' class="cell"') if shape.marked else ("", "")
    return "".join(
        f"<div{mark[0]}>{''.join(f'<div{mark[1]}>{text}</div>' for text in row)}</div>"
        for row in rows
    )


KINDS: dict[str, Callable[[Sequence[str], Shape], str]] = {
    "table": table, "numbers": table, "mixed": table, "list": items, "links": links, "cards": cards,
    "terms": terms, "boxes": boxes, "code": code,
}  # fmt: skip


def drawn_tokens(rng: random.Random, kind: str, size: int, words: Sequence[str]) -> list[str]:
    share = {"numbers": 1.0, "mixed": 0.5, "code": 0.15, "terms": 0.3, "boxes": 0.3}.get(kind, 0.05)
    if kind not in ("numbers", "mixed"):
        draw = rng.random()
        if draw < 0.5:
            share = 0.0
        elif draw < 0.7:
            # Numbers that are the same on both pages.
            return [str(at % 50) if at % 3 == 0 else rng.choice(words) for at in range(size)]
    return [number(rng) if rng.random() < share else rng.choice(words) for _ in range(size)]


def size_between(rng: random.Random, low: int, high: int) -> int:
    """A random size with a log-uniform distribution."""
    size: int = round(low * (high / low) ** rng.random())
    return size


def pair_of(
    rng: random.Random, kind: str, words: Sequence[str], prose: int | None = None
) -> tuple[Data, Data]:
    """Two pages with the same prose, and data of one shape that only coincide by chance.

    At least a third of the words are not shared, so the pages are different.
    """
    if prose is None:
        prose = rng.choice((0, size_between(rng, 5, PROSE_MAX)))
    size = size_between(rng, max(DATA_MIN, prose // 2), DATA_MAX)
    shape = Shape(
        kind, rng.randrange(2, 7), rng.choice((1, 1, 2, 2, 3, 5)), rng.random() < 0.6,
        rng.random() < 0.5, rng.random() < 0.8,
    )  # fmt: skip
    shared = [rng.choice(words) for _ in range(prose)]
    title = " ".join(rng.choice(words) for _ in range(4))
    first, second = (drawn_tokens(rng, kind, size, words) for _ in range(2))
    return Data(title, shared, first, shape), Data(title, shared, second, shape)


def invented(rng: random.Random, size: int) -> list[str]:
    """Invented words of two or three syllables."""
    heads, vowels, tails = "bdfgklmnprstvw", "aeiou", ("", "n", "r", "s", "l", "m")

    def word() -> str:
        parts = (heads, vowels, tails) * rng.choice((2, 2, 3))
        return "".join(map(rng.choice, parts))

    return [word() for _ in range(size)]


def around(content: str, site: int) -> str:
    """A page of one of three sites with some content."""
    menu = "".join(f'<li><a href="/{at}">{name}</a></li>' for at, name in enumerate(MENU))
    if site == 0:
        return f"<body>{content}</body>"
    if site == 1:
        return (
            f"<body><header><a href='/'>Harbour Gazette</a><nav><ul>{menu}</ul></nav></header>"
            f"<main>{content}</main><footer><p>© 2026 Harbour Gazette. All rights reserved. {FOOT}"
            "</p></footer></body>"
        )
    return (
        f'<body><div id="top"><div class="c1"><ul>{menu}</ul></div></div><div id="mid"><div '
        f'class="c7">{content}</div><div class="c8"><h4>Also</h4><ul>{menu}</ul></div></div>'
        f'<div id="end"><p>{FOOT}</p></div></body>'
    )


MENU = (
    "Home", "News", "Weather", "Tides", "Harbour", "Boats for sale", "Events", "About", "Contact",
)  # fmt: skip
FOOT = "Printed on the island since 1874, and read on both sides of the bay every morning."
