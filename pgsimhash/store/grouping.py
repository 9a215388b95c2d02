"""The store's view of a whole collection: all pairs, clusters, and tables of them."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from pgsimhash.bits import check_distance
from pgsimhash.clusters import Cluster, Linkage, Score, check_linkage, scorer
from pgsimhash.layout import DISTANCE_MAX
from pgsimhash.pairs import MEMORY_BYTES, Pairs, stream_pairs
from pgsimhash.store import groups
from pgsimhash.store.part import Part


class Groups(Part):
    """All near-copies within a collection."""

    def pairs(self, distance: int = 3, *, memory: int = MEMORY_BYTES) -> Generator[Pairs]:
        """Yield every pair of known simhashes within ``distance`` bits, each once, in blocks.

        The simhashes are read once into a temporary file (8 bytes each) and searched outside
        the database; see :func:`pgsimhash.find_pairs`. What is written meanwhile may be missed.

        Args:
            distance: the largest number of differing bits.
            memory: how many bytes to use for simhashes at a time.

        Raises:
            InvalidDistanceError: ``distance`` is not in 0..12.
            StoreError: the database does not answer.
        """
        self._session.check()
        return self._pairs(check_distance(distance, DISTANCE_MAX), memory)

    def _pairs(self, distance: int, memory: int) -> Generator[Pairs]:
        with self._session.read() as connection:
            read = groups.spool(connection, self._collection)
        with read as simhashes:
            yield from stream_pairs(simhashes, distance, memory=memory)

    def clusters(
        self,
        distance: int = 3,
        *,
        linkage: Linkage = "single",
        canonical: str | Score | Sequence[str] = "earliest",
    ) -> Generator[Cluster]:
        """Yield the clusters of more than one page, by the present versions of all pages.

        Args:
            distance: the largest number of differing bits of a pair.
            linkage: ``single`` takes all that are joined by a chain of pairs; with ``complete``
                every two members are within ``distance``.
            canonical: how the page that stands for a cluster is chosen: a name in
                :data:`pgsimhash.clusters.RULES`, several to break ties, or a function from
                :class:`~pgsimhash.clusters.ClusterPage` to a score, of which the largest wins.

        Raises:
            InvalidDistanceError: ``distance`` is not in 0..12.
            UnknownRuleError: there is no such rule or linkage.
            StoreError: the database does not answer.
        """
        self._session.check()
        check_linkage(linkage)
        return self._clusters(check_distance(distance, DISTANCE_MAX), linkage, scorer(canonical))

    def _clusters(self, distance: int, linkage: Linkage, score: Score) -> Generator[Cluster]:
        with self._session.transaction() as connection:
            for cluster in groups.clusters(connection, self._collection, distance, linkage, score):
                yield cluster
                self._session.check()
