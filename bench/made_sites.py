"""Generate small sites whose pages differ in a short part, for kinds that labelled sets lack.

- short: a list, a cart, a profile or a note, under prose in sidebar, footer and cookie layer.
- post: 60 to 120 words beside a column of linked titles or excerpts that changes.
- rows: a table with the same names and other values: standings, timetables, prices, draws.

Each draw gives three pages: a, b with other content, and c like a with other things around it.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from html import escape

NAMES = {
    "sidebar": ("sidebar", "widget-area", "side-column widgets", "aside", "right-col"),
    "footer": ("footer", "site-footer", "colophon", "page-bottom"),
    "layer": ("cookie-notice", "cookiebanner", "gdpr-consent", "cmplz-cookiebanner", "cookies"),
    "column": ("recent-posts", "related", "page__related", "latest", "widget", "post-list"),
    "content": ("content", "main-content", "entry", "page-body", "product-list", "post"),
}  # fmt: skip
TAGS = {"sidebar": "aside", "footer": "footer", "layer": "dialog", "column": "aside"}


class Site:
    """The template of a site, with its shared texts."""

    def __init__(self, rng: random.Random, pool: Sequence[str]) -> None:
        self.rng, self.pool = rng, pool
        self.menu = [self.some(1, 3) for _ in range(rng.randrange(3, 9))]
        self.marks: dict[str, tuple[str, str]] = {}
        self.content = rng.choice(("main", "main", "article", "div", "div"))
        self.wraps = rng.randrange(3)

    def some(self, low: int, high: int) -> str:
        """Some words, ``low`` to ``high`` - 1."""
        count, words = self.rng.randrange(low, high), list[str]()
        while len(words) < count:
            words += self.rng.choice(self.pool).split()
        return escape(" ".join(words[:count]))

    def prose(self, low: int, high: int) -> str:
        """Paragraphs of up to 45 words."""
        left, parts = self.rng.randrange(low, high), list[str]()
        while left > 0:
            size = min(left, self.rng.randrange(12, 45))
            parts.append(f"<p>{self.some(size, size + 1)}.</p>")
            left -= size
        return "".join(parts)

    def box(self, kind: str, inner: str) -> str:
        """A part of the page: with a name, a tag, both, or neither; the same on all pages."""
        if kind not in self.marks:
            named, tagged = self.rng.random() < 0.6, self.rng.random() < 0.35
            name = self.rng.choice(NAMES[kind]) if named else f"c{self.rng.randrange(999)}"
            self.marks[kind] = TAGS.get(kind, "div") if tagged else "div", name
        tag, name = self.marks[kind]
        return f'<{tag} class="{name}">{inner}</{tag}>'

    def links(self, count: int, low: int = 3, high: int = 9) -> str:
        """A list of linked titles."""
        items = (f'<li><a href="/{at}">{self.some(low, high)}</a></li>' for at in range(count))
        return f"<ul>{''.join(items)}</ul>"

    def page(self, content: str, beside: str, after: str) -> str:
        """A page: menu, content with something beside it, and what is below both."""
        menu = "".join(f'<li><a href="/{name}">{name}</a></li>' for name in self.menu)
        inner = f"<{self.content}>{content}</{self.content}>"
        if self.content == "div":
            inner = self.box("content", content)
        for _ in range(self.wraps):
            inner = f"<div>{inner}</div>"
        row = f'<div class="row">{inner}{beside}</div>'
        return f"<!doctype html><meta charset=utf-8><body><nav><ul>{menu}</ul></nav>{row}{after}"


def _list(site: Site) -> str:
    count, linked = site.rng.randrange(3, 12), site.rng.random() < 0.6
    if linked:
        return site.links(count, 2, 7)
    return f"<ul>{''.join(f'<li>{site.some(2, 6)}</li>' for _ in range(count))}</ul>"


def _cards(site: Site) -> str:
    return "".join(
        f'<div class="card"><h3><a href="/{at}">{site.some(2, 6)}</a></h3>'
        f"<p>{site.rng.randrange(5, 300)}.00</p></div>"
        for at in range(site.rng.randrange(3, 9))
    )


def _cart(site: Site) -> str:
    rows = "".join(
        f'<tr><td><a href="/{at}">{site.some(2, 6)}</a></td>'
        f"<td>{site.rng.randrange(5, 300)}.50</td>"
        f"<td>{site.rng.randrange(1, 4)}</td></tr>"
        for at in range(site.rng.randrange(2, 6))
    )
    return f"<table><tr><th>Product<th>Price<th>Quantity</tr>{rows}</table>"


def _profile(site: Site) -> str:
    labels = ("Name", "Born", "Lives in", "Member since", "Languages", "Interests", "Telephone")
    return "".join(
        f"<div><b>{label}:</b> {site.some(2, 6)}</div>"
        for label in labels[: site.rng.randrange(4, 8)]
    )


def _note(site: Site) -> str:
    return site.prose(12, 45)


_SHORT: tuple[Callable[[Site], str], ...] = (_list, _cards, _cart, _profile, _note)


def short_pages(rng: random.Random, pool: Sequence[str]) -> Iterator[str]:
    """Short pages under prose in sidebar, footer and cookie layer."""
    site, make = Site(rng, pool), rng.choice(_SHORT)
    headed = rng.random() < 0.7
    first, second = (
        (f"<h1>{site.some(1, 5)}</h1>" if headed else "") + make(site) for _ in range(2)
    )
    sidebar = [site.prose(30, 130) + site.links(rng.randrange(3, 8)) for _ in range(2)]
    footer = site.prose(20, 110)
    layer = [site.prose(50, 250), "" if rng.random() < 0.5 else site.prose(50, 250)]
    with_sidebar, with_footer, with_layer = (rng.random() < 0.6 for _ in range(3))
    for content, at in ((first, 0), (second, 0), (first, 1)):
        changed = at if rng.random() < 0.5 else 0
        yield site.page(
            content,
            site.box("sidebar", sidebar[changed]) if with_sidebar else "",
            (site.box("footer", footer) if with_footer else "")
            + (site.box("layer", layer[at]) if with_layer and layer[at] else ""),
        )


def post_pages(rng: random.Random, pool: Sequence[str]) -> Iterator[str]:
    """Short posts beside a column of linked titles or excerpts."""
    site = Site(rng, pool)
    titled, excerpts = rng.random() < 0.85, rng.random() < 0.4

    def post() -> str:
        head = f"<h1>{site.some(3, 9)}</h1><p class=meta>{rng.randrange(1, 29)} May 2024</p>"
        head = f"<header>{head}</header>" if titled else head.replace("h1", "h2")
        return head + site.prose(60, 121)

    def column() -> str:
        if not excerpts:
            return f"<h3>{heading}</h3>{site.links(rng.randrange(6, 16))}"
        items = (
            f'<div class="item"><h4><a href="/{at}">{site.some(3, 8)}</a></h4>'
            f"<p>{site.some(10, 24)}</p></div>"
            for at in range(rng.randrange(3, 6))
        )
        return f"<h3>{heading}</h3>{''.join(items)}"

    heading, footer = site.some(1, 3), site.prose(10, 60)
    first, second, columns = post(), post(), [column(), column()]
    below = rng.random() < 0.4
    for content, at in ((first, 0), (second, 0), (first, 1)):
        beside = site.box("column", columns[at])
        after = site.box("footer", footer)
        yield site.page(content, "" if below else beside, (beside if below else "") + after)


def rows_pages(rng: random.Random, pool: Sequence[str]) -> Iterator[str]:
    """Tables with the same names and other values, below shared prose."""
    site, kind = Site(rng, pool), rng.choice(("standings", "times", "prices", "draws"))
    names = [site.some(1, 4) for _ in range(rng.randrange(12, 40))]
    intro = f"<h1>{site.some(1, 4)}</h1>" + site.prose(15, 130)
    head = [site.some(1, 2) for _ in range(4)]

    def clock() -> str:
        return f"{rng.randrange(5, 23)}:{rng.randrange(60):02}"

    def rows() -> list[tuple[object, ...]]:
        if kind == "times":
            return [(name, clock(), clock()) for name in names]
        if kind == "prices":
            return [(name, f"{rng.randrange(1, 900)}.{rng.randrange(100):02}") for name in names]
        drawn = rng.sample(names, len(names))
        if kind == "draws":
            return list(zip(drawn, rng.sample(names, len(names)), strict=True))
        return [
            (at + 1, name, rng.randrange(35), rng.randrange(35), rng.randrange(90))
            for at, name in enumerate(drawn)
        ]

    def markup(cells: Sequence[Sequence[object]], row: str, cell: str, mark: str) -> str:
        lines = "".join(
            f"<{row}{mark}>{''.join(f'<{cell}>{text}</{cell}>' for text in line)}</{row}>"
            for line in ([head[: len(cells[0])], *cells])
        )
        return f"<table>{lines}</table>" if row == "tr" else f"<div>{lines}</div>"

    first, second = rows(), rows()
    third = list(first)
    if rng.random() < 0.5:
        third[rng.randrange(len(third))] = rows()[0]
    row, cell = rng.choice((("tr", "td"), ("tr", "td"), ("div", "div"), ("li", "div")))
    footers = [site.prose(5, 40) for _ in range(2)]
    for data, at in ((first, 0), (second, 0), (third, 1)):
        content = intro + markup(data, row, cell, ' class="r2"' if at else "")
        yield site.page(content, "", site.box("footer", footers[at]))


SITES = {"made-short": short_pages, "made-post": post_pages, "made-rows": rows_pages}
