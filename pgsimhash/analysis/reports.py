"""Answer at a glance how much of a collection is copies, where they come from and what changed.

The number of statements and the size of each result are bounded; the database counts.
"""

import heapq
from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np

from pgsimhash.analysis.block_pairs import BlockPair
from pgsimhash.analysis.canonical_links import PROBLEMS, canonical_problems
from pgsimhash.analysis.changes import VALUES, Version, compared_versions
from pgsimhash.analysis.comparison import aligned_blocks
from pgsimhash.analysis.wording import byte_size, counted, listed, readable, share_in_words
from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.bits import hamming_distance, to_bigint
from pgsimhash.hashing.signature import verified
from pgsimhash.pages.records import CollectionStatus, RunRecord, json_values
from pgsimhash.reading.kept_markdown import kept_article
from pgsimhash.schemes import get_scheme
from pgsimhash.search.clusters import CANONICAL, Cluster, ClusterPage, Linkage, Score, scorer
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.store import Store
from pgsimhash.store.clusters import clusters as clusters_of
from pgsimhash.store.lookups import Calls, read_status

BEYOND: Final = 12
"""How many bits beyond the distance are counted."""

_EXAMPLES: Final = 5  # pages with a problem of canonical links that are shown
_ELSEWHERE: Final = 100  # likewise; most are in no cluster, so the table does not have them
_HOSTS: Final = 30
_CHANGED: Final = 6
_MEMBERS: Final = 4
_CHARS: Final = 20_000  # of a text that are compared
_MANY: Final = 10  # with fewer copies, their titles say little about a host
_PAIRS: Final = 20  # of as many bits that are compared by their signatures
_RUNS: Final = 14
_SAMPLE: Final = 3_000  # pages whose nearest other page is searched
_COMPARED: Final = 10**9  # simhashes, which takes a few seconds


class Cause(NamedTuple):
    """What makes the URLs of copies and of their originals different, whichever came first.

    ``name`` is ``?name=`` of a parameter, ``/name/`` of a folder, ``//host`` of originals on
    another host (``//*``: any), ``//`` for http, www or a slash at the end, else empty.
    ``example`` has the URLs of a copy and of its original, which is empty if it is unknown.
    """

    name: str
    copies: int
    example: tuple[str, str] = ("", "")

    @property
    def words(self) -> str:
        """The cause as people say it."""
        if self.name.startswith("//"):
            host = self.name.removeprefix("//")
            return {"": "http, www or a slash", "*": "on another host"}.get(host, f"of {host}")
        return readable(self.name) or "elsewhere"

    @property
    def phrase(self) -> str:
        """The cause within a sentence."""
        if self.name.startswith("//"):
            return f"by {self.words}" if self.name == "//" else self.words
        return f"{'with' if self.name.startswith('?') else 'under'} {self.words}"


class HostFigures(NamedTuple):
    """The numbers of pages and copies of a host, which is empty for URLs without a host.

    ``copy_titles`` counts the titles of its copies that their originals do not have.
    """

    host: str
    pages: int
    copies: int
    copy_titles: int
    copy_bytes: int
    causes: tuple[Cause, ...]

    @property
    def template_decides(self) -> bool:
        """Whether most copies have titles of their own, so they may match by their template."""
        return self.copies >= _MANY and self.copy_titles > 0.5 * self.copies


class Neighbours(NamedTuple):
    """Two pages next to the distance, and their text blocks, if the collection keeps Markdown."""

    distance: int
    a: str
    b: str
    title: str
    blocks: tuple[BlockPair, ...]


class Nearest(NamedTuple):
    """How many pages are how many bits from the nearest other page, and pairs next to the limit.

    ``sampled`` is the number of pages that were compared, if ``counts`` are estimates from them.
    """

    counts: dict[int, int]
    sampled: int | None
    within: Neighbours | None
    beyond: Neighbours | None

    def answer(self, limit: int) -> tuple[bool, str, str]:
        """Return whether the distance is right, in a few words, and why."""
        near = sum(self.counts.get(bits, 0) for bits in range(limit + 1))
        above = sum(self.counts.get(bits, 0) for bits in range(limit + 1, limit + 5))
        edge = sum(self.counts.get(bits, 0) for bits in range(limit - 1, limit + 3))
        lie = counted(above, "page lies", "pages lie") if above else "No page lies"
        far = f"{lie} {limit + 1} to {limit + 4} bits from another one"
        if above <= 0.03 * near:
            return True, "Yes, there is a gap.", f"{far}, against {near:,} within {limit}."
        if edge < 0.05 * near:
            return True, "Probably.", f"{far}; few are next to the line."
        return False, "Look at the edge.", f"{far}, against {near:,} within {limit}."


class ChangedPage(NamedTuple):
    """A page with several versions, whose content changed by ``bits_moved`` in total.

    ``last`` is the present version, compared with the one ``before``.
    """

    url: str
    bits_moved: int
    versions: int
    before: datetime
    last: Version


class ClusterView(NamedTuple):
    """A cluster of ``size`` pages: the canonical page, and the pages farthest from it.

    ``members`` are these and their bits from the canonical page. ``blocks`` compares the text of
    the first two, if the collection keeps Markdown.
    """

    size: int
    canonical: ClusterPage
    members: list[tuple[int, ClusterPage]]
    one_title: bool
    blocks: tuple[BlockPair, ...] = ()


class CanonicalFigures(NamedTuple):
    """The number of pages with each of the :data:`PROBLEMS`, and the first with their links."""

    pages: dict[str, int]
    examples: dict[str, list[tuple[str, str | None]]]

    def add(self, cluster: Cluster, distance: int) -> None:
        """Count the pages of a cluster; those with other content are counted by the database."""
        for problem, pages in canonical_problems(cluster, distance).items():
            if problem not in ("noindex", "other_content"):
                self.pages[problem] += len(pages)
                room = _EXAMPLES - len(self.examples[problem])
                self.examples[problem] += [(page.url, page.canonical_url) for page in pages[:room]]


@dataclass(frozen=True, slots=True)
class Report:
    """The summary of a collection's present versions.

    ``copies`` of its ``pages`` duplicated a page that came before, and ``noindex`` of them ask
    search engines not to list them. ``causes`` and ``hosts`` are the most frequent ones. Clusters
    compare the present versions with each other at ``distance`` and ``linkage``. The ``all_``
    fields are the lengths of the full lists.
    """

    status: CollectionStatus
    made_at: datetime
    distance: int
    linkage: Linkage
    pages: int
    copies: int
    noindex: int
    html_bytes: int
    copy_bytes: int
    causes: Sequence[Cause]
    hosts: Sequence[HostFigures]
    all_hosts: int
    copy_hosts: int
    runs: Sequence[RunRecord]
    all_runs: int
    nearest: Nearest
    clusters: Sequence[ClusterView]
    all_clusters: int
    clustered_pages: int
    canonical_links: CanonicalFigures
    changed: Sequence[ChangedPage]
    all_changed: int

    def __repr__(self) -> str:
        return f"<{self.status.name}: {self.headline}>"

    @property
    def headline(self) -> str:
        """How many pages are copies, in a few words."""
        if not self.copies:
            return "No page is a copy of another" if self.pages else "There are no pages"
        share = share_in_words(self.copies, self.pages)
        if share.startswith("1 in"):
            return f"{share} pages is a copy"
        if " in " in share:
            return f"{share} pages are copies"
        return f"{share.capitalize()} of the pages are copies"

    @property
    def summary(self) -> str:
        """What the copies cost, and where most of them are, in a sentence."""
        if not self.copies:
            return "Every page says something of its own." if self.pages else ""
        first = self.hosts[0] if self.hosts and self.all_hosts > 1 else None
        where = ""
        if first is not None and first.host and first.copies > 0.3 * self.copies:
            cause = first.causes[0] if first.causes else Cause("", 0)
            if cause.name and cause.copies > 0.5 * self.copies:
                where = f"mostly {cause.phrase} on {first.host}"
            else:
                share = share_in_words(first.copies, self.copies)
                where = f"{share} of the copies on {first.host}"
        elif frequent := [c for c in self.causes[:2] if c.name and c.copies > 0.15 * self.copies]:
            share = share_in_words(sum(cause.copies for cause in frequent), self.copies)
            where = f"{share} {listed(cause.phrase for cause in frequent)}"
        cost = f"{byte_size(self.copy_bytes)} of HTML that says nothing new"
        parts = [cost if self.copy_bytes else "", where]
        sentence = ", ".join(filter(None, parts)) or f"{self.copies:,} of {self.pages:,} pages"
        return f"{sentence[0].upper()}{sentence[1:]}."

    def as_json(self) -> dict[str, Any]:
        """Return the collection's counters as JSON values, and the other figures as "report"."""
        numbers = [each.name for each in fields(self) if each.type is int]
        numbers.remove("copy_hosts")
        return {
            **self.status.as_json(),
            "report": {
                **json_values(self, "made_at", "linkage", *numbers),
                "causes": [{"name": each.name, "copies": each.copies} for each in self.causes],
                "hosts": [
                    {
                        **host._asdict(),
                        "causes": {each.name: each.copies for each in host.causes},
                        "template_decides": host.template_decides,
                    }
                    for host in self.hosts
                ],
                "runs": [run.as_json() for run in self.runs],
                "nearest": {str(bits): pages for bits, pages in self.nearest.counts.items()},
                "sampled": self.nearest.sampled,
                "clusters": [
                    {"pages": view.size, "canonical": view.canonical.url} for view in self.clusters
                ],
                "canonical_links": self.canonical_links.pages,
                "changed": [
                    {"url": page.url, "bits_moved": page.bits_moved, "versions": page.versions}
                    for page in self.changed
                ],
            },
        }


def report(
    store: Store,
    distance: int | None = None,
    *,
    linkage: Linkage = "single",
    canonical: str | Score | Sequence[str] = CANONICAL,
    clusters: int = 12,
) -> Report:
    """Return the summary of a collection: copies and their causes, runs, clusters, changes.

    :func:`pgsimhash.html_reports.report_page` renders it as an HTML page. It needs the memory of
    ``Store.clusters`` and of the biggest cluster. Pages written meanwhile are in some figures only.

    ``distance``, ``linkage`` and ``canonical`` are as for ``Store.clusters``. Shown are the biggest
    ``clusters``, each with the pages farthest from its canonical page, the hosts with the most
    copies, and the pages that changed most.

    Raises:
        ArgumentError: ``distance`` is not in 0..12, or the rule or linkage is unknown.
    """
    score = scorer(canonical)
    with store._session.calls_to_read(one_transaction=True) as calls:
        limit = calls.collection.checked_distance(distance, DISTANCE_MAX)
        (status,) = read_status(calls.connection, calls.collection.name)
        ((figures, causes, by_host, changed, *simhashes),) = calls.fetch(
            "report", hosts=_HOSTS, urls=_CHANGED, sampled=_SAMPLE
        )
        runs = calls.records("runs", RunRecord)
        alone = figures.pop("alone")
        counts = dict.fromkeys(PROBLEMS, 0)
        links = CanonicalFigures(counts, {problem: [] for problem in PROBLEMS})
        all_clusters = clusters_of(calls, limit, linkage, score)
        views, number, pages = _biggest(all_clusters, limit, clusters, links)
        others = calls.fetch("canonical_elsewhere", distance=limit, max_rows=_ELSEWHERE)
        links.examples["other_content"].extend(row[1:3] for row in others)
        counts["other_content"] = others[0][-1] if others else 0
        return Report(
            status=status,
            made_at=datetime.now(UTC),
            distance=limit,
            linkage=linkage,
            **figures,
            causes=[Cause(**cause) for cause in causes],
            hosts=[_host(host) for host in by_host],
            runs=runs[:_RUNS][::-1],
            all_runs=len(runs),
            nearest=_nearest(calls, limit, simhashes, alone, figures["pages"]),
            # One cluster after the other, to hold few whole texts at a time.
            clusters=[
                view._replace(blocks=_blocks(calls, view.canonical.url, view.members[0][1].url))
                for view in views
            ],
            all_clusters=number,
            clustered_pages=pages,
            canonical_links=links,
            changed=[_changed(calls, **page) for page in changed],
            all_changed=changed[0]["all_urls"] if changed else 0,
        )


def _host(values: dict[str, Any]) -> HostFigures:
    causes = tuple(
        Cause(**{**cause, "example": tuple(cause["example"])}) for cause in values.pop("causes")
    )
    return HostFigures(**values, causes=causes)


def _changed(calls: Calls, url: str, moved: int, versions: int, **_: int) -> ChangedPage:
    first, last = compared_versions(calls.stored_pages([url], VALUES, versions=2))
    return ChangedPage(url, moved, versions, first.fetched_at, last)


def _nearest(
    calls: Calls, limit: int, simhashes: Sequence[bytes | None], alone: int, pages: int
) -> Nearest:
    """Count pages by the bits to the nearest other page, of a sample those without an equal one."""
    present, sample = (np.frombuffer(part or b"", ">u8").astype(np.uint64) for part in simhashes)
    present.sort()  # not the sample: its first ones are a sample too
    sample = sample[: max(_COMPARED // max(len(present), 1), 1)]
    counts = {0: pages - alone} if pages > alone else {}
    pairs = defaultdict[int, list[list[int]]](list)
    for simhash in sample:
        bits = np.bitwise_count(present ^ simhash)
        bits[np.searchsorted(present, simhash)] = 65
        other = int(bits.argmin())
        near = int(bits[other])
        if near <= limit + BEYOND:
            counts[near] = counts.get(near, 0) + 1
            if len(pairs[near]) < _PAIRS:
                pairs[near].append([to_bigint(int(simhash)), to_bigint(int(present[other]))])
    if len(sample) < alone:
        counts.update({bits: round(n * alone / len(sample)) for bits, n in counts.items() if bits})

    def pair(places: Iterable[int]) -> Neighbours | None:
        for bits, simhashes in ((near, each) for near in places for each in pairs[near]):
            (_, a, title), (_, b, _) = calls.fetch("first_pages", simhashes=simhashes)
            signatures = [row["signature"] for row in calls.stored_pages([a, b], ("signature",))]
            # Pages within the distance that signatures tell apart are no near-duplicates.
            if bits > limit or verified(bits, *signatures):
                return Neighbours(bits, a, b, title or a, _blocks(calls, a, b))
        return None

    return Nearest(
        {bits: counts[bits] for bits in sorted(counts)},
        len(sample) if len(sample) < alone else None,
        pair(range(limit, max(limit - 4, 0), -1)),
        pair(range(limit + 1, limit + 5)),
    )


def _biggest(
    clusters: Iterable[Cluster], distance: int, count: int, links: CanonicalFigures
) -> tuple[list[ClusterView], int, int]:
    """Return the biggest clusters and the numbers of clusters and pages; count all in ``links``."""
    number = pages = 0
    biggest: list[ClusterView] = []
    for cluster in clusters:
        links.add(cluster, distance)
        size, best = len(cluster.pages), cluster.canonical
        number += 1
        pages += size
        others = [
            (hamming_distance(page.simhash, best.simhash), page)
            for page in cluster.pages
            if page is not best
        ]
        farthest = heapq.nlargest(_MEMBERS, others, key=itemgetter(0))
        view = ClusterView(size, best, farthest, len({page.title for page in cluster.pages}) == 1)
        insort(biggest, view, key=lambda view: -view.size)
        del biggest[count:]
    return biggest, number, pages


def _blocks(calls: Calls, *urls: str) -> tuple[BlockPair, ...]:
    """Return the aligned text blocks of two pages, if their Markdown is kept."""
    collection = calls.collection
    try:
        scheme = get_scheme(collection.scheme)
    except ArgumentError:  # a scheme of another program
        return ()
    pages = {page["url"]: page for page in calls.stored_pages(urls, ("url", "markdown"))}
    a, b = (
        kept_article((pages[url]["markdown"] or "")[:_CHARS] or None, None, scheme.name)
        if url in pages
        else None
        for url in urls
    )
    return aligned_blocks(a, b, scheme) if a and b else ()
