"""Find the parameters of URLs that do not matter, by what a collection already knows.

Pages are one story if one is the original of the other. Spellings of a URL, such as ``www`` and
``http``, are examined as if they were parameters.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, groupby
from math import sqrt
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

from pgsimhash.pages.records import JsonRecord
from pgsimhash.pages.urls import address_parts
from pgsimhash.store import Store

EXCEPTIONS_MAX: Final = 0.05
"""The largest share of exceptions of a parameter that does not matter."""

_Z: Final = 1.645  # of a one-sided bound at 95%
_URLS: Final = 10_000  # of a host that are examined, the newest
_NAMES: Final = 30  # of a host, the most frequent; the time grows with their square

_SPELLINGS: Final = [
    (name, re.compile(pattern, re.IGNORECASE), plain)
    for name, pattern, plain in (
        ("http", "^http:", "https:"),
        ("www", r"^(https?://)www\.", r"\1"),
        ("/print", r"/print(?=/|$)", ""),
        ("/amp", r"/amp(?=/|$)", ""),
        ("slash at the end", r"(?<=[^/]/)([^/].*)/$", r"\1"),
        ("index.html", r"/(?:index|default)\.(?:html?|php|aspx?)$", "/"),
    )
]
"""The name of each spelling, what it matches in a URL, and what the plain spelling has there."""

Verdict = Literal["ignorable", "matters", "too few"]


@dataclass(frozen=True, slots=True)
class Parameter(JsonRecord):
    """What is known about a parameter, or a spelling of URLs, of one host.

    ``is_spelling`` is whether ``name`` is one of ``www``, ``http``, ``slash at the end``,
    ``index.html``, ``upper case``, ``/print`` and ``/amp``. ``values`` counts its values, an absent
    one too; ``stories`` those that were seen with several of them. In ``compared`` cases a page was
    compared with one whose URL differs in the value, and in no other parameter that matters; in
    ``exceptions`` cases, of which ``example`` has two URLs, they were different stories.

    ``verdict`` is ``ignorable`` if, with a confidence of 95%, at most 5% of such pages are
    exceptions, ``matters`` if more are, and otherwise ``too few``. ``at_most`` is the upper bound
    of their share (Wilson, one-sided).
    """

    _computed = ("at_most", "verdict")

    host: str
    is_spelling: bool
    name: str
    values: int
    stories: int
    compared: int
    exceptions: int
    example: tuple[str, str] | None

    @property
    def at_most(self) -> float:
        """The upper bound of the share of exceptions."""
        return round(self._bound(1), 4)

    @property
    def verdict(self) -> Verdict:
        """Whether it is ``ignorable``, ``matters``, or ``too few`` pages were compared."""
        if self._bound(-1) > EXCEPTIONS_MAX:
            return "matters"
        return "ignorable" if self._bound(1) <= EXCEPTIONS_MAX else "too few"

    def _bound(self, side: int) -> float:
        n = self.compared
        share, z2 = self.exceptions / max(n, 1), _Z**2
        spread = _Z * sqrt(n * share * (1 - share) + z2 / 4)
        return (n * share + z2 / 2 + side * spread) / (n + z2)


class _Page(NamedTuple):
    url: str
    story: str
    base: str
    values: dict[tuple[bool, str], object]


def parameters(store: Store) -> Iterator[Parameter]:
    """Yield the parameters and the spellings of URLs with several values, by host.

    ``www.`` is no part of the host. The current versions of the newest 10,000 URLs count, and the
    30 most frequent parameters. The transaction stays open, as with ``Store.clusters``.
    """
    with (
        store._session.calls_to_read(one_transaction=True) as calls,
        closing(calls.stream("stories", max_urls=_URLS)) as rows,
    ):
        for site, pages in groupby(rows, key=itemgetter(0)):
            yield from _of_host(site, [_page(url, story) for _, url, story in pages])


def _page(url: str, story: str) -> _Page:
    site, path, given, route = address_parts(url) or (url, "", [], "")
    values: dict[tuple[bool, str], Any] = {}
    base = site + path
    for name, pattern, plain in _SPELLINGS:
        base, count = pattern.subn(plain, base)
        if count:
            values[True, name] = True
    if base != base.lower():
        values[True, "upper case"] = base
    for name, value in given:
        values[False, name] = (*values.get((False, name), ()), value)
    return _Page(url, story, base.lower().rstrip("/") + route, values)


def _of_host(host: str, pages: Sequence[_Page]) -> Iterator[Parameter]:
    frequent = Counter(name for page in pages for name in page.values).most_common(_NAMES)
    seen = {name: {(page.story, page.values.get(name)) for page in pages} for name, _ in frequent}
    values = {name: len({value for _, value in pairs}) for name, pairs in seen.items()}
    stories = {
        name: sum(count > 1 for count in Counter(story for story, _ in pairs).values())
        for name, pairs in seen.items()
    }
    names = [name for name, count in values.items() if count > 1]
    matter, never = set(names), set[tuple[bool, str]]()

    def compared(name: tuple[bool, str]) -> Parameter:
        count, exceptions, example = _compare(pages, matter, name)
        return Parameter(host, *name, values[name], stories[name], count, exceptions, example)

    # One after the other is taken away: first the surest, else the one that has most values, such
    # as an id of a session, without which the others can be compared.
    while open_names := matter - never:
        order = [
            (each.compared > 0, -each._bound(1), each.values, name)
            for name, each in zip(open_names, map(compared, open_names), strict=True)
            if each.verdict != "matters"
        ]
        if not order:
            break
        matter.remove(max(order)[-1])
        # Without it, one that went earlier may turn out to matter.
        wrong = {name for name in set(names) - matter if compared(name).verdict == "matters"}
        matter |= wrong
        never |= wrong
    # One of which nothing can be compared may matter.
    matter |= {name for name in set(names) - matter if not compared(name).compared}
    yield from map(compared, names)


def _compare(
    pages: Iterable[_Page], matter: set[tuple[bool, str]], name: tuple[bool, str]
) -> tuple[int, int, tuple[str, str] | None]:
    """Compare the pages that differ in one parameter, but in no other that matters."""
    others = matter - {name}
    groups = defaultdict[Any, defaultdict[Any, dict[str, str]]](lambda: defaultdict(dict))
    for page in pages:
        key = page.base, *map(page.values.get, others)
        groups[key][page.values.get(name)].setdefault(page.story, page.url)
    compared = exceptions = 0
    example = None
    for by_value in groups.values():
        known = list(by_value.values())
        story = Counter(chain.from_iterable(known)).most_common(1)[0][0]
        apart = [stories for stories in known if story not in stories]
        compared += len(known) - 1
        exceptions += len(apart)
        if apart and example is None:
            usual = next(stories[story] for stories in known if story in stories)
            example = usual, next(iter(apart[0].values()))
    return compared, exceptions, example
