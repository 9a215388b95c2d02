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

    host: str
    name: str
    is_spelling: bool
    values: int
    stories: int
    compared: int
    exceptions: int
    at_most: float
    verdict: Verdict
    example: tuple[str, str] | None


class _Page(NamedTuple):
    url: str
    story: str
    base: str
    values: dict[tuple[bool, str], object]


class _Comparison(NamedTuple):
    compared: int
    exceptions: int
    example: tuple[str, str] | None

    def bound(self, side: int) -> float:
        """Return the bound of the share of exceptions: the upper one, with -1 the lower one."""
        n = self.compared
        share, z2 = self.exceptions / max(n, 1), _Z**2
        spread = _Z * sqrt(n * share * (1 - share) + z2 / 4)
        return (n * share + z2 / 2 + side * spread) / (n + z2)

    @property
    def verdict(self) -> Verdict:
        if self.bound(-1) > EXCEPTIONS_MAX:
            return "matters"
        return "ignorable" if self.bound(1) <= EXCEPTIONS_MAX else "too few"


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
    site, path, given = address_parts(url) or (url, "", [])
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
    return _Page(url, story, base.lower().rstrip("/"), values)


def _of_host(host: str, pages: Sequence[_Page]) -> Iterator[Parameter]:
    frequent = Counter(name for page in pages for name in page.values).most_common(_NAMES)
    seen = {name: {page.values.get(name) for page in pages} for name, _ in frequent}
    names = [name for name, values in seen.items() if len(values) > 1]
    matter, never = set(names), set[tuple[bool, str]]()
    # One after the other is taken away: first the surest, else the one that has most values, such
    # as an id of a session, without which the others can be compared.
    while open_names := matter - never:
        found = {name: _compare(pages, matter, name) for name in open_names}
        order = [
            (each.compared > 0, -each.bound(1), len(seen[name]), name)
            for name, each in found.items()
            if each.verdict != "matters"
        ]
        if not order:
            break
        matter.remove(max(order)[-1])
        # Without it, one that went earlier may turn out to matter.
        gone = set(names) - matter
        wrong = {name for name in gone if _compare(pages, matter, name).verdict == "matters"}
        matter |= wrong
        never |= wrong
    # One of which nothing can be compared may matter.
    gone = set(names) - matter
    matter |= {name for name in gone if not _compare(pages, matter, name).compared}
    for name in names:
        stories = Counter(story for story, _ in {(p.story, p.values.get(name)) for p in pages})
        comparison = _compare(pages, matter, name)
        yield Parameter(
            host=host,
            name=name[1],
            is_spelling=name[0],
            values=len(seen[name]),
            stories=sum(count > 1 for count in stories.values()),
            at_most=round(comparison.bound(1), 4),
            verdict=comparison.verdict,
            **comparison._asdict(),
        )


def _compare(
    pages: Iterable[_Page], matter: set[tuple[bool, str]], name: tuple[bool, str]
) -> _Comparison:
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
    return _Comparison(compared, exceptions, example)
