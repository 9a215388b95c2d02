"""What search engines have to guess: problems of canonical links, and the table of clusters."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from pgsimhash.hashing.signature import PLAIN_TEXT, containment
from pgsimhash.pages.urls import address_parts
from pgsimhash.search.clusters import Cluster, ClusterPage

PROBLEMS: Final = {
    "missing": "name no canonical page, and no copy names them",
    "conflicting": "name another canonical page than their copies",
    "outside": "name a canonical page that is not stored, or not a copy",
    "other_content": "name a canonical page whose content is different",
}
"""The problems of the canonical links of pages, and what they mean."""

_COMPUTED: Final = ("canonical_problems", "host", "path_pattern", "words", "shared_percent")
COLUMNS: Final = (
    *("cluster", "url", "simhash", "canonical", "title", "canonical_url"),
    *_COMPUTED,
)
"""The columns of the table of clusters."""

_VARYING: Final = re.compile(r"[^/]*\d[^/]*|[^/]+$")


def canonical_problems(cluster: Cluster, distance: int) -> dict[str, list[ClusterPage]]:
    """Return the problems of a cluster, and the pages that have them; ``noindex`` ones are apart.

    A page without a link is fine if others name it. One that was not stored may be named by its
    own variants: addresses that differ in parameters, http, www or a slash. Pages in languages or
    for countries, which name each other by ``hreflang``, need no common canonical page: their
    copies may name any of them.
    """
    best = cluster.canonical
    problems = defaultdict[str, list[ClusterPage]](list)
    alternates = {page.url: (page.alternates or "").split() for page in cluster.pages}
    twins = {url for url in alternates[best.url] if best.url in alternates.get(url, ())}
    for page in cluster.pages:
        link, is_twin = page.canonical_url, page is not best and page.url in twins
        if page.noindex:
            problems["noindex"].append(page)
        elif is_twin and link in (None, page.url):
            continue
        elif link is None:
            if not page.links and not (page.signature or 0) & PLAIN_TEXT:
                problems["missing"].append(page)
        elif (page.canonical_distance or 0) > distance:
            problems["other_content"].append(page)
        elif link not in alternates:
            if _spelling(link) != _spelling(page.url):
                problems["outside"].append(page)
        elif link != best.url and (is_twin or page is best or link not in twins):
            problems["conflicting"].append(page)
    return problems


def cluster_rows(cluster: Cluster, distance: int) -> Iterator[dict[str, Any]]:
    """Yield the :data:`COLUMNS` of each page.

    ``shared_percent`` is the share of the smaller page's words that the canonical page or this one
    also has, estimated from their signatures.
    """
    values = cluster.as_json()
    problems = {
        page.page_id: name
        for name, pages in canonical_problems(cluster, distance).items()
        for page in pages
    }
    best = cluster.canonical.signature
    for page, row in zip(cluster.pages, values["pages"], strict=True):
        shared = None
        if best is not None and page.signature is not None:
            shared = round(100 * containment(best, page.signature))
        own = problems.get(page.page_id), *_pattern(page.url), page.tokens, shared
        yield {**values, **row, **dict(zip(_COMPUTED, own, strict=True))}


def _pattern(url: str) -> tuple[str | None, str | None]:
    """Return the host of a URL, and its path with * for what varies: names and numbers."""
    try:
        parts = urlsplit(url)
    except ValueError:  # it is no URL
        return None, None
    names = sorted({name for name, _ in parse_qsl(parts.query, keep_blank_values=True)})
    query = "&".join(f"{name}=*" for name in names)
    return parts.hostname, _VARYING.sub("*", parts.path) + (f"?{query}" if query else "")


def _spelling(url: str) -> tuple[str, str]:
    """Return what is left of a URL without what does not change the page on most sites."""
    site, path, *_ = address_parts(url) or ("", url)
    return site.partition("//")[2].removeprefix("www."), path.partition(";")[0].rstrip("/")
