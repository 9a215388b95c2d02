"""All near-duplicates within a collection: pairs and clusters."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.rows import class_row, tuple_row

from pgsimhash.db.statements import fetch, query
from pgsimhash.hashing.bits import from_bigint
from pgsimhash.pages.marks import Mark, join_marked, split_marked
from pgsimhash.runtime.progress import no_progress
from pgsimhash.search.clusters import (
    Cluster,
    ClusterPage,
    Linkage,
    Score,
    cluster_simhashes,
    make_cluster,
)
from pgsimhash.search.pairs import Compared, stream_pairs
from pgsimhash.store.collection import Collection, lock_to_write
from pgsimhash.store.lookups import all_simhashes

_ROWS: Final = 2_000
"""Members of clusters per fetch from the server."""

_SAVED: Final = 50_000
"""Members of clusters per statement that saves them."""


def clusters(
    connection: psycopg.Connection[Any],
    collection: Collection,
    distance: int,
    linkage: Linkage,
    score: Score,
    progress: Compared = no_progress,
) -> Iterator[Cluster]:
    """Yield the clusters of more than one page; ``connection`` must be in a transaction."""
    simhashes = all_simhashes(connection, collection)
    simhashes.sort()
    pairs = stream_pairs(simhashes, distance, progress=progress)
    roots = cluster_simhashes(simhashes, pairs, linkage, distance)
    marks = all_marks(connection, collection)
    roots = join_marked(simhashes, roots, _joined(connection, collection, marks, simhashes))
    shared = _with_company(simhashes, roots)
    scope = {
        "collection_id": collection.collection_id,
        "simhashes": _bigint_array(simhashes[shared]),
        "clusters": _bigint_array(roots[shared]),
    }
    with connection.cursor(name="pgsimhash_clusters", row_factory=tuple_row) as rows:
        rows.itersize = _ROWS
        rows.execute(query("clusters", connection), scope)
        for _, members in groupby(rows, key=itemgetter(0)):
            pages = [
                ClusterPage(page_id, url, from_bigint(simhash), *others)
                for _, page_id, url, simhash, *others in members
            ]
            for part in split_marked(pages, marks):
                if len(part) > 1:
                    yield make_cluster(part, score)


def save_clusters(
    connection: psycopg.Connection[Any],
    collection: Collection,
    found: Iterable[Cluster],
    bound_waits: Callable[[psycopg.Connection[Any]], None],
) -> int:
    """Replace the rows of the table of clusters, and return the number of clusters.

    The rows are complete before the first is written, so other writers wait for the writing alone.
    """
    page_ids, ids, canonical = array("q"), array("q"), array("b")
    for cluster in found:
        for page in cluster.pages:
            page_ids.append(page.page_id)
            ids.append(cluster.cluster_id)
            canonical.append(page is cluster.canonical)
    # Not before: computing takes longer than a transaction may idle.
    bound_waits(connection)
    lock_to_write(connection, collection)
    scope = {"collection_id": collection.collection_id}
    connection.execute(query("clear_clusters", connection), scope)
    for start in range(0, len(page_ids), _SAVED):
        part = slice(start, start + _SAVED)
        rows = {
            "page_ids": page_ids[part].tolist(),
            "clusters": ids[part].tolist(),
            "canonical": list(map(bool, canonical[part])),
        }
        connection.execute(query("save_clusters", connection), scope | rows)
    return len(set(ids))


def _joined(
    connection: psycopg.Connection[Any],
    collection: Collection,
    marks: Sequence[Mark],
    simhashes: NDArray[np.uint64],
) -> list[tuple[int, int]]:
    """Return the present simhashes of the pages that must-links join."""
    must_links = [mark for mark in marks if mark.same]
    urls = [url for mark in must_links for url in (mark.a, mark.b)]
    scope = {"collection_id": collection.collection_id, "urls": urls}
    rows = fetch(connection, "known_fingerprints", scope)
    present = {url: from_bigint(simhash) for url, simhash, *_ in rows}
    ends = [
        (present[mark.a], present[mark.b])
        for mark in must_links
        if mark.a in present and mark.b in present
    ]
    # Skip simhashes that were added after the others were read.
    return [pair for pair in ends if np.isin(pair, simhashes).all()]


def _with_company(simhashes: NDArray[np.uint64], roots: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which simhashes share their cluster with others."""
    joined = simhashes != roots
    heads: NDArray[np.bool_] = np.zeros(len(simhashes), dtype=np.bool_)
    heads[np.searchsorted(simhashes, roots[joined])] = True
    heads |= joined
    return heads


def all_marks(connection: psycopg.Connection[Any], collection: Collection) -> list[Mark]:
    """Return the marks of a collection, in their order."""
    scope = {"collection_id": collection.collection_id}
    return fetch(connection, "marks", scope, class_row(Mark))


def _bigint_array(simhashes: NDArray[np.uint64]) -> str:
    """Return simhashes as a PostgreSQL array literal."""
    return f"{{{','.join(map(str, simhashes.view('int64').tolist()))}}}"
