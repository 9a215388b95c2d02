"""Make streams of pages, and count how many of them a store keeps.

Labelled sets have few URLs for a story, few comments and few tables without numbers. Here are short
pages in a template that should all be kept, one story under many URLs that should be kept once,
stories with comments and teasers, and data without numbers. The shapes are not those of the fit.
"""

import random
from collections.abc import Callable, Iterable, Iterator

from pgsimhash import Fingerprint, Store, fingerprint, hamming_distance
from pgsimhash.hashing.signature import verified
from pgsimhash.schemes.registry import DEFAULT_SCHEME
from tests.html.made_data import invented

MENU = "<ul><li><a href=/a>News</a></li><li><a href=/b>About us</a></li></ul>"
FRAMES = (
    "<body><header><a href=/>Bay</a><nav>{menu}</nav></header><main><article>{story}</article>"
    "{after}</main><footer><p>© 2026 Bay. All rights reserved.</p></footer></body>",
    "<body><div id=top>{menu}</div><div id=wrap><div class=post><div class=entry>{story}</div>"
    "</div>{after}</div><div id=foot><p>Printed on both sides of the bay.</p></div></body>",
    "<body>{story}{after}</body>",
)
ROTATING = (
    "advertisement", "sidebar", "cookie-banner", "social-share", "popup", "related-articles",
    "comments",
)  # fmt: skip
DATA = (
    "cells of two words", "cells of one word", "between shared numbers", "rows of divs",
    "boxes of divs", "linked titles", "terms",
)  # fmt: skip
TABLES = ("standings", "timetable", "prices", "draws")
DAYS = ("equal", "edited", "a block of five", "blocks of their own")
SIZES = ((150, 200), (390, 600), (390, 2000))
"""Words of shared prose, and of data."""


class Stream:
    """Makes pages of invented words, in one of three sites."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.vocabulary = invented(self.rng, 6000)

    def words(self, count: int) -> str:
        return " ".join(self.rng.choice(self.vocabulary) for _ in range(count))

    def paragraphs(self, count: int) -> list[str]:
        sizes = [*[45] * (count // 45), count % 45]
        return [f"<p>{self.words(size)}.</p>" for size in sizes if size]

    def page(self, site: int, story: str, after: str = "") -> str:
        return FRAMES[site].format(menu=MENU, story=story, after=after)

    def story(
        self, own: int, ads: int, size: int, name: str, *, titled: bool = False, urls: int = 127
    ) -> Iterator[str]:
        """One story under many URLs, with advertisements between its paragraphs."""
        site, title, text = self.rng.randrange(3), self.words(6), self.paragraphs(own)
        for _ in range(urls):
            parts = list(text)
            for _ in range(ads):
                block = f'<div class="{name}">{self.words(size)}</div>'
                parts.insert(self.rng.randint(1, len(parts)), block)
            head = self.words(6) if titled else title
            yield self.page(site, f"<h1>{head}</h1>{''.join(parts)}")

    def days(self, kind: str, own: int = 220, urls: int = 127) -> Iterator[list[tuple[str, str]]]:
        """One story under many URLs on three days; of each day its pages, in another order.

        A word of an ``edited`` story changes each day. ``a block of five`` and ``blocks of their
        own`` are advertisements without a name below it; the latter begin on the second day.
        """
        head, text = self.words(6), self.words(own).split()
        blocks = [self.words(16) for _ in range(5)]
        for day in range(3):
            if day and kind == "edited":
                text[self.rng.randrange(own)] = self.rng.choice(self.vocabulary)
            parts = [" ".join(text[start : start + 45]) for start in range(0, own, 45)]
            story = f"<h1>{head}</h1><p>{'.</p><p>'.join(parts)}.</p>"
            pages = []
            for number in self.rng.sample(range(urls), urls):
                block = self.rng.choice(blocks) if kind == "a block of five" else ""
                if day and kind == "blocks of their own":
                    block = self.words(16)
                below = f"<div class=c7><p>{block}.</p></div>" if block else ""
                pages.append((f"https://n.example/{number}", self.page(0, story + below)))
            yield pages

    def urls(self, stories: int = 60, each: int = 6) -> list[tuple[str, str]]:
        """Stories under URLs that differ in parameters that do not matter."""
        pages = []
        for story in range(stories):
            html = self.page(0, f"<h1>{self.words(6)}</h1>{''.join(self.paragraphs(120))}")
            for _ in range(each):
                sid, ref = self.rng.getrandbits(32), self.rng.choice("abcdefgh")
                sort = self.rng.choice(["", "&sort=asc", "&sort=desc"])
                pages.append(
                    (f"https://n.example/item?id={story}&sid={sid:08x}{sort}&ref={ref}", html)
                )
        self.rng.shuffle(pages)
        return pages

    def template(self, shared: int, own: int, count: int = 60, mark: str = "") -> Iterator[str]:
        """Short pages in a template of plain divs; ``mark`` is an attribute of their own part."""
        around = [f"<div>{self.words(25)}</div>" for _ in range(shared // 25)]
        half = len(around) // 2
        for _ in range(count):
            body = f"<div{mark}><h1>{self.words(4)}</h1><p>{self.words(own)}</p></div>"
            yield f"<body>{''.join(around[:half])}{body}{''.join(around[half:])}</body>"

    def below(self, kind: str, count: int) -> Iterator[str]:
        """An article without and with comments or teasers below it."""
        story = f"<h1>{self.words(6)}</h1>{''.join(self.paragraphs(self.rng.randint(150, 400)))}"
        site = self.rng.randrange(3)
        parts = (
            f"<div class=item><h4>{self.words(2)}</h4><p>{self.words(self.rng.randint(12, 45))}</p>"
            "</div>"
            for _ in range(count)
        )
        block = f'<div class="{kind}"><h3>{count}</h3>{"".join(parts)}</div>'
        yield self.page(site, story)
        yield self.page(site, *((story + block,) if self.rng.random() < 0.5 else (story, block)))

    def with_consent(self, name: str) -> Iterator[str]:
        """A story without and with a consent text that is longer, above or below it."""
        story, site = f"<h1>{self.words(6)}</h1>{''.join(self.paragraphs(150))}", 0
        text = f'<div id="{name}"><h2>Cookies</h2><div>{self.words(400)}</div></div>'
        yield self.page(site, story)
        yield text + self.page(site, story)
        yield self.page(site, story) + text

    def with_late_heading(self) -> Iterator[str]:
        """A story below an h2, without and with an h1 far below it."""
        story = f"<div><h2>{self.words(6)}</h2>{''.join(self.paragraphs(300))}</div>"
        yield f"<body>{MENU}{story}</body>"
        late = f"<div><h1>{self.words(3)}</h1><p>{self.words(25)}</p></div>"
        yield f"<body>{MENU}{story}{late}</body>"

    def data(self, kind: str, prose: int, size: int, count: int = 40) -> Iterator[str]:
        """Pages with the same prose, and data without numbers of their own."""
        w, head = self.words, f"<h1>Report</h1>{''.join(self.paragraphs(prose))}"
        rows: dict[str, Callable[[int], str]] = {
            "cells of two words": lambda _: f"<tr><td>{w(2)}</td><td>{w(2)}</td></tr>",
            "cells of one word": lambda _: f"<tr><td>{w(1)}</td><td>{w(1)}</td></tr>",
            "between shared numbers": lambda n: f"<tr><td>{n}</td><td>{w(2)}</td><td>{n * 7}</td>",
            "rows of divs": lambda _: f"<div class=r><div>{w(2)}</div><div>{w(2)}</div></div>",
            "boxes of divs": lambda _: (
                f"<div><div>{w(2)}</div><div>{w(2)}</div><div>{w(2)}</div></div>"
            ),
            "linked titles": lambda n: f'<li><a href="/{n}">{w(5)}</a></li>',
            "terms": lambda _: f"<dt>{w(2)}</dt><dd>{w(6)}</dd>",
        }
        each = {"cells of one word": 2, "boxes of divs": 6, "linked titles": 5, "terms": 8}
        tag = {"linked titles": "ul", "terms": "dl"}.get(kind, "div" if "div" in kind else "table")
        for _ in range(count):
            data = "".join(rows[kind](n) for n in range(size // each.get(kind, 4)))
            yield self.page(0, f"{head}<{tag}>{data}</{tag}>")

    def table(self, kind: str, count: int = 30) -> Iterator[str]:
        """Tables of the same names with other values, below the same prose."""
        names, draw = [self.words(2) for _ in range(30)], self.rng.randrange
        head = f"<h1>Overview</h1>{''.join(self.paragraphs(102))}"

        def time() -> str:
            return f"{draw(5, 23)}:{draw(60):02}"

        def shuffled() -> list[str]:
            return self.rng.sample(names, len(names))

        rows: dict[str, Callable[[], Iterable[tuple[object, ...]]]] = {
            "standings": lambda: (
                (at, name, draw(35), draw(35), draw(90)) for at, name in enumerate(shuffled(), 1)
            ),
            "timetable": lambda: ((name, time(), time()) for name in names),
            "prices": lambda: ((name, f"{draw(1, 900)}.{draw(100):02}") for name in names),
            "draws": lambda: (
                (name, *self.rng.choices(names, k=2)) for name in self.rng.sample(names, 20)
            ),
        }
        for _ in range(count):
            cells = (f"<td>{'</td><td>'.join(map(str, row))}</td>" for row in rows[kind]())
            yield self.page(0, f"{head}<table><tr>{'</tr><tr>'.join(cells)}</tr></table>")

    def beside(self, own: int, count: int = 10) -> Iterator[str]:
        """One short post beside a column of linked titles that changes."""
        post = f"<header><h1>{self.words(6)}</h1></header>{''.join(self.paragraphs(own))}"
        for _ in range(count):
            titles = (f'<li><a href="/{at}">{self.words(7)}</a></li>' for at in range(15))
            column = f"<div class=c3><h3>Posts</h3><ul>{''.join(titles)}</ul></div>"
            yield f"<body>{MENU}<div><article>{post}</article>{column}</div></body>"

    def short(self, kind: str, count: int = 20) -> Iterator[str]:
        """Lists and carts of some 30 words under prose in sidebar, footer and cookie layer."""
        prose = [self.words(size) for size in (90, 60, 120)]
        rows = {
            "list": lambda at: f"<li><a href=/{at}>{self.words(4)}</a></li>",
            "cart": lambda at: f"<li><b>{self.words(3)}</b> {self.rng.randrange(9, 99)}.50</li>",
        }
        for _ in range(count):
            yield (
                f"<body>{MENU}<main><h1>{self.words(2)}</h1>"
                f"<ul>{''.join(map(rows[kind], range(7)))}</ul></main>"
                f"<div class=sidebar><p>{prose[0]}</p></div><div class=foot><p>{prose[1]}</p></div>"
                f'<div class="cookie-notice"><p>{prose[2]}</p></div></body>'
            )


def kept_each_day(
    store: Store, days: Iterable[list[tuple[str, str]]], ignore: str | None = None
) -> list[int]:
    """Return how many pages of each day a store keeps."""
    return [
        sum(verdict.keep for verdict in store.ingest_many(pages, ignore=ignore)) for pages in days
    ]


def fetched(store: Store, pages: Iterable[tuple[str, str]]) -> int:
    """Return how many pages a crawler fetches that asks the store before, and stores them."""
    return sum(store.should_fetch(url) and bool(store.ingest(url, html)) for url, html in pages)


def kept(pages: Iterable[str], content: str | None = None, ignore: str | None = None) -> int:
    """Return how many of these pages a store keeps that compares each with those kept before."""
    known: list[Fingerprint] = []
    for html in pages:
        page = fingerprint(html, markdown=False, content=content, ignore=ignore)
        if not any(_is_copy(page, other) for other in known):
            known.append(page)
    return len(known)


def _is_copy(page: Fingerprint, other: Fingerprint) -> bool:
    bits = hamming_distance(page.simhash, other.simhash)
    is_near = bits <= DEFAULT_SCHEME.distance and verified(bits, page.signature, other.signature)
    return is_near or page.text_digest == other.text_digest
