"""Find the parameters of URLs that do not matter, by what a collection already knows.

Pages are one story if one is the original of the other. Spellings of a URL, such as ``www`` and
``http``, are examined as if they were parameters.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
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

_INDEX: Final = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?)$", re.IGNORECASE)
_VIEW: Final = re.compile(r"/(print|amp)(?=/|$)", re.IGNORECASE)

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
    values: dict[tuple[bool, str], Any]


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


def parameters(store: Store, host: str | None = None) -> Iterator[Parameter]:
    """Yield the parameters and the spellings of URLs with several values, by host.

    ``www.`` is no part of the host. The current versions of the newest 10,000 URLs count, and the
    30 most frequent parameters. The transaction is open during the loop, as with
    ``Store.clusters``.
    """
    with (
        store._session.calls_to_read(one_transaction=True) as calls,
        closing(calls.stream("stories", only_host=host, most=_URLS)) as rows,
    ):
        for site, pages in groupby(rows, key=itemgetter(0)):
            yield from _of_host(site, [_page(url, story) for _, url, story in pages])


def _page(url: str, story: str) -> _Page:
    parts = address_parts(url)
    if parts is None:
        return _Page(url, story, url, {})
    site, path, given = parts
    spellings: dict[str, object] = {}
    scheme, _, authority = site.partition("://")
    if scheme == "http":
        spellings["http"] = True
    if authority.startswith("www."):
        spellings["www"] = True
    for view in _VIEW.findall(path):
        spellings[f"/{view.lower()}"] = True
    bare = _VIEW.sub("", path)
    if (index := _INDEX.search(bare)) is not None:
        spellings["index.html"] = index[0]
    elif bare.endswith("/") and bare != "/":
        spellings["slash at the end"] = True
    bare = _INDEX.sub("/", bare).rstrip("/")
    if bare != bare.lower():
        spellings["upper case"] = bare
    values: dict[tuple[bool, str], Any] = {(True, name): value for name, value in spellings.items()}
    for name, value in given:
        values[False, name] = (*values.get((False, name), ()), value)
    return _Page(url, story, authority.removeprefix("www.") + bare.lower(), values)


def _of_host(host: str, pages: Sequence[_Page]) -> Iterator[Parameter]:
    frequent = Counter(name for page in pages for name in page.values).most_common(_NAMES)
    seen = {name: {page.values.get(name) for page in pages} for name, _ in frequent}
    names = [name for name, values in seen.items() if len(values) > 1]
    matter, never = set(names), set[tuple[bool, str]]()
    # One after the other is taken away: first the surest, else the one that has most values, such
    # as an id of a session, without which the others can be compared.
    while open_names := matter - never:
        found = {name: _compare(pages, matter - {name}, name) for name in open_names}
        left = [name for name in open_names if found[name].verdict != "matters"]
        if not left:
            break
        order = {
            name: (found[name].compared > 0, -found[name].bound(1), len(seen[name]), name)
            for name in left
        }
        matter.remove(max(left, key=order.__getitem__))
        # Without it, one that went earlier may turn out to matter.
        wrong = {
            name
            for name in set(names) - matter
            if _compare(pages, matter, name).verdict == "matters"
        }
        matter |= wrong
        never |= wrong
    for name in names:
        values_of = defaultdict[str, set[Any]](set)
        for page in pages:
            values_of[page.story].add(page.values.get(name))
        several = sum(len(values) > 1 for values in values_of.values())
        comparison = _compare(pages, matter - {name}, name)
        yield Parameter(
            host=host,
            name=name[1],
            is_spelling=name[0],
            values=len(seen[name]),
            stories=several,
            compared=comparison.compared,
            exceptions=comparison.exceptions,
            at_most=round(comparison.bound(1), 4),
            verdict=comparison.verdict,
            example=comparison.example,
        )


def _compare(
    pages: Iterable[_Page], others: Iterable[tuple[bool, str]], name: tuple[bool, str]
) -> _Comparison:
    """Compare the pages that differ in one parameter, but not in the others."""
    fixed = list(others)
    groups = defaultdict[Any, defaultdict[Any, dict[str, str]]](lambda: defaultdict(dict))
    for page in pages:
        key = page.base, *map(page.values.get, fixed)
        groups[key][page.values.get(name)].setdefault(page.story, page.url)
    compared = exceptions = 0
    example = None
    for by_value in groups.values():
        if len(by_value) == 1:
            continue
        ((story, _),) = Counter(
            story for found in by_value.values() for story in found
        ).most_common(1)
        apart = [found for found in by_value.values() if story not in found]
        compared += len(by_value) - 1
        exceptions += len(apart)
        if apart and example is None:
            usual = next(found[story] for found in by_value.values() if story in found)
            example = usual, next(iter(apart[0].values()))
    return _Comparison(compared, exceptions, example)
