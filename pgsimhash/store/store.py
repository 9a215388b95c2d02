"""The store: what is known about pages, asked and told in PostgreSQL."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from pgsimhash import schemes
from pgsimhash.db.connection import check_schema
from pgsimhash.db.sources import ConnectionSource
from pgsimhash.errors import ArgumentError, PageError, check_many, check_type
from pgsimhash.hashing.bits import check_simhash, simhash_arrays
from pgsimhash.pages.match_settings import MatchOptions
from pgsimhash.pages.page_bytes import MAX_BYTES, BytesLike, frozen
from pgsimhash.pages.records import (
    CollectionStatus,
    Deletion,
    Match,
    Matches,
    NearPage,
    PageRecord,
    StoredPage,
    Verdict,
)
from pgsimhash.pages.recrawl import fetch_advice
from pgsimhash.pages.times import check_age, check_time
from pgsimhash.pages.urls import check_url, lowered
from pgsimhash.runtime.progress import MEMORY_BYTES, no_progress
from pgsimhash.search.clusters import Cluster, Linkage, Score, check_linkage, scorer
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.sources import SourcePage
from pgsimhash.store import deleting, lookups
from pgsimhash.store.batches import (
    BATCH_PAGES,
    BATCH_SIMHASHES,
    PAGES,
    PAIRS,
    Item,
    Page,
    Source,
    as_record,
    as_source,
    with_checked_time,
)
from pgsimhash.store.collection import Collection, checked_distance, open_collection
from pgsimhash.store.deleting import Deleted
from pgsimhash.store.events import OnEvent
from pgsimhash.store.retries import retried
from pgsimhash.store.session import Session
from pgsimhash.store.status import read_status

# What only some methods need is loaded by those: a lookup reads no page, and needs no numpy.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pgsimhash.schemes import Scheme
    from pgsimhash.search.pairs import Compared, Pairs
    from pgsimhash.store.ingest import Ingest


class Limits(TypedDict):
    """By how many processes pages are read, what one may take, and whether it needs Markdown."""

    jobs: int
    markdown: bool
    max_bytes: int
    page_seconds: float | None
    page_memory: int | None


class Store:
    """A collection of pages in PostgreSQL; made by :func:`pgsimhash.connect`.

    The options of ``ingest``, ``decide``, ``add`` and their like are those of
    :class:`~pgsimhash.pages.match_settings.MatchSettings`: ``distance``, ``verify``, ``scope``,
    ``window_size``, ``max_age``, ``canonical_link``, ``max_copies`` and ``min_tokens``. Settings
    that are not given are those of the policies, else those of the collection.

    Deleting goes in transactions of a thousand pages, unless the caller is in a transaction, and
    returns the URLs that are gone (some 150 bytes each), for whoever has rows of their own to them.
    Simhashes that no other page has go too, unless they were added without a page as well. Of the
    copies of a deleted page the earliest becomes an original, in the same transaction, and those
    that are near to it by the policies point to it. The transaction's isolation level has to be
    READ COMMITTED, or StoreError says so.

    A store goes by the collection's name. Where that goes to another collection of the same
    scheme, as by a rebuild, the store follows; where none has it any more, or one of another
    scheme, every method raises CollectionError, and nothing was done.

    :mod:`pgsimhash.maintenance` and :mod:`pgsimhash.analysis` have functions that take a store and
    use two attributes of it: ``session``, the connection and its transactions, and ``opened``, the
    row of the collection as it was read last.

    A store over a DSN, a pool or an engine commits batch by batch. Each call checks out a
    connection, so threads may share the store. One over a connection or a session of the caller's
    neither commits nor closes it: on autocommit each batch is a transaction, else the caller
    commits. Threads that share it wait for one another. While a loop over :meth:`clusters` is under
    way there, or a function that was passed to a method, reads are answered and writes are refused.
    """

    def __init__(
        self,
        source: ConnectionSource,
        collection: str = "default",
        *,
        create: bool = True,
        scheme: str | Scheme | None = None,
        layout: str | None = None,
        keep_markdown: bool | None = None,
        normalize_urls: bool | None = None,
        schema: str | None = None,
        lookup_memory: int | None = None,
        lock_timeout: float | None = None,
        statement_timeout: float | None = None,
        retry_seconds: float | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        """Open ``collection`` over a source, creating it where ``create`` is true.

        Raises:
            SchemaError: the schema is missing, or older or newer than this package.
            CollectionError: the collection is missing and ``create`` is false, or it has another
                scheme, layout, ``keep_markdown`` or ``normalize_urls``.
            ArgumentError: no scheme is registered under that name in this process; there is no such
                layout; ``schema`` is no name that the schema can have; or ``lock_timeout``,
                ``statement_timeout`` or ``retry_seconds`` no number of seconds.
            StoreError: another store over the connection works with another schema; it is in a
                transaction that failed, or texts would not come back from it as they are.
        """
        recipe = None if scheme is None else schemes.get_scheme(scheme)
        self.session = Session(
            source,
            schema,
            lookup_memory,
            lock_timeout,
            statement_timeout,
            retry_seconds,
            on_event,
        )
        with self.session.transaction() as connection:
            check_schema(connection)
            self.session.collection = open_collection(
                connection,
                collection,
                create=create,
                scheme=recipe,
                layout=layout,
                keep_markdown=keep_markdown,
                normalize_urls=normalize_urls,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that the store opened, those in use when their call is done."""
        self.session.source.close()

    @cached_property
    def _ingest(self) -> Ingest:
        from pgsimhash.store.ingest import Ingest

        return Ingest(self.session)

    @property
    def opened(self) -> Collection:
        """The row of the collection as it was read last."""
        return self.session.collection

    @property
    def collection(self) -> str:
        """The name of the collection."""
        return self.opened.name

    @property
    def scheme(self) -> str:
        """The name of the scheme whose simhashes the collection holds."""
        return self.opened.scheme

    @property
    def layout(self) -> str:
        """The name of the collection's layout when it was read last."""
        return self.opened.layout

    @retried
    def find(
        self,
        simhash: int,
        distance: int | None = None,
        *,
        limit: int | None = None,
        host: str | None = None,
        since: datetime | None = None,
        signature: int | None = None,
    ) -> list[Match]:
        """Return every known simhash within ``distance`` bits, each once, nearest first.

        Exact: none is missed. (Manku, Jain, Das Sarma, WWW 2007, section 3.) Of the pages that
        share a simhash it names the first; :meth:`near_pages` has them all.

        Args:
            simhash: what to look for.
            distance: the largest number of differing bits; by default the collection's.
            limit: at most so many matches, the nearest.
            host: only matches that have a page on this host.
            since: only matches that have a page fetched then or later.
            signature: the signature that belongs to ``simhash``: matches whose page has a different
                one are left out (see :mod:`pgsimhash.hashing.signature`).

        Raises:
            ArgumentError: ``simhash`` is not in 0..2**64-1; the layout does not answer
                ``distance``.
            StoreError: the database does not answer.
        """
        with self.session.looking_up(distance) as (connection, collection):
            return lookups.find(
                connection,
                collection,
                simhash,
                distance,
                limit=limit,
                host=host,
                since=since,
                signature=signature,
            )

    @retried
    def near_pages(
        self,
        page: str | int,
        distance: int | None = None,
        *,
        limit: int | None = None,
        verify: bool = True,
        signature: int | None = None,
    ) -> list[NearPage]:
        """Return every page whose present version is within ``distance`` bits, nearest first.

        Where :meth:`find` has one line for a simhash, here is each page that shares it. Exact: none
        is missed. Marks do not count, and neither do simhashes without a page.

        Args:
            page: the URL of a known page, whose present version is asked about and which is not in
                the answer; or a simhash.
            distance: the largest number of differing bits; by default the collection's.
            limit: at most so many pages: the nearest, and of equally near ones the first that came.
            verify: whether matches whose signature differs are left out (see
                :mod:`pgsimhash.hashing.signature`).
            signature: the signature that belongs to a simhash; without it, its matches are not
                verified.

        Raises:
            NotFoundError: the URL is not known.
            ArgumentError: ``page`` is a number that is not in 0..2**64-1; the layout does not
                answer ``distance``; ``limit`` is below 1.
            StoreError: the database does not answer.
        """
        lookups.check_limit(limit)
        if limit is not None and limit < 1:
            raise ArgumentError("invalid_number", f"limit is a number, 1 or more, not {limit!r}")
        with self.session.looking_up(distance) as (connection, collection):
            return lookups.near_pages(
                connection,
                collection,
                page,
                distance,
                limit=limit,
                verify=verify,
                signature=signature,
            )

    @retried
    def find_many(self, simhashes: NDArray[np.uint64], distance: int | None = None) -> Matches:
        """Look up an array of simhashes in one statement; several times as fast as one by one.

        Args:
            simhashes: shape (n,), dtype uint64.
            distance: the largest number of differing bits; by default the collection's.

        Returns:
            The matches of all of them, by query, nearest first.

        Raises:
            ArgumentError: the array has another shape or dtype; the layout does not answer
                ``distance``.
            StoreError: the database does not answer.
        """
        with self.session.looking_up(distance) as (connection, collection):
            return lookups.find_many(
                connection, collection, simhashes, distance, self.session.memory
            )

    @retried
    def exists(self, simhash: int, distance: int | None = None) -> bool:
        """Return whether any known simhash is within ``distance`` bits; stops at the first.

        Raises:
            ArgumentError: ``simhash`` is not in 0..2**64-1; the layout does not answer
                ``distance``.
            StoreError: the database does not answer.
        """
        with self.session.looking_up(distance) as (connection, collection):
            return lookups.exists(connection, collection, simhash, distance)

    @retried
    def get(self, url: str) -> StoredPage | None:
        """Return the present version of the page at ``url``, or None if it is not known.

        Raises:
            StoreError: the database does not answer.
        """
        with self.session.bounded() as connection:
            return lookups.get(connection, self.opened, url)

    @retried
    def should_fetch(self, url: str, *, now: datetime | None = None) -> bool:
        """Return whether to fetch a page: it is not known, or due again.

        Due is what :func:`pgsimhash.pages.recrawl.recrawl_hint` says by when the page changed and
        when it was last met unchanged; ``pgsimhash.analysis.advise_fetch`` has that hint too.

        Args:
            url: the page.
            now: the time to decide for, with a time zone; by default the present.

        Raises:
            ArgumentError: ``now`` names no zone.
            StoreError: the database does not answer.
        """
        with self.session.bounded() as connection:
            visits = lookups.visits(connection, self.opened, url)
        return fetch_advice(url, visits, now=now).fetch

    def ingest(
        self,
        url: str,
        html: str | BytesLike,
        *,
        fetched_at: datetime | None = None,
        max_bytes: int = MAX_BYTES,
        markdown: bool = False,
        **options: Unpack[MatchOptions],
    ) -> Verdict:
        """Fingerprint one page, decide whether it is known, and remember it.

        Args:
            url: the page's absolute URL.
            html: the page; bytes are decoded as a browser would.
            fetched_at: when it was fetched, by default now.
            max_bytes: a larger page is a failure.
            markdown: whether the verdict has the main content as Markdown, even if the collection
                does not keep it.
            options: settings that differ from those of the policies and the collection; see
                :class:`~pgsimhash.pages.match_settings.MatchSettings`.

        Raises:
            ArgumentError: the scheme of the collection is not registered in this process; the
                layout does not answer ``distance``; there is no such scope, or a number is below 1;
                ``max_age`` is none, or ``fetched_at`` names no zone, is in the future or before
                1970.
            CollectionError: no collection of the scheme has the name any more, or it is being made
                from another one.
            StoreError: the database does not answer.
        """
        page = page_of(url, html, fetched_at)
        return self._decide_page(page, max_bytes, options, markdown=markdown, remember=True)

    def ingest_many(
        self,
        pages: Iterable[Page],
        *,
        jobs: int = 1,
        max_bytes: int = MAX_BYTES,
        page_seconds: float | None = None,
        page_memory: int | None = None,
        batch_size: int | None = None,
        markdown: bool = False,
        **options: Unpack[MatchOptions],
    ) -> Iterator[Verdict]:
        """Ingest pages as they come and yield a verdict for each, in their order.

        Lazy: pages are taken, stored and let go in batches as the verdicts are consumed, so
        memory does not grow with their number. A page that fails is reported and the rest goes on.

        A batch is stored as a whole before its first verdict comes. Where the store commits, each
        is one transaction, of 256 pages or those of two seconds: whoever stops within it has
        stored pages of which he was told nothing. In a transaction of the caller's, a page is
        stored when its verdict is taken, so that rows that the caller adds are committed with it,
        whenever that is. Ingest first, before other rows: two callers with different orders can
        deadlock. With ``batch_size`` the transaction may end between two batches only.

        Args:
            pages: ``(url, html)`` pairs, or what :func:`pgsimhash.sources.read_pages` yields. Where
                none comes for long, ``pgsimhash.sources.PAUSE`` has what came decided meanwhile.
            jobs: in how many processes to fingerprint; with more than one, the calling script
                needs the usual ``if __name__ == "__main__":`` guard.
            max_bytes: a larger page is a failure.
            page_seconds: a page that takes longer to read is a failure. Without it, other
                processes have 30 seconds for a page, and this one as long as it takes; with it,
                pages are read by another process even where ``jobs`` is 1, unless it is infinite.
            page_memory: a page for which a process takes more bytes is a failure; it too has pages
                read by other processes. On Linux.
            batch_size: how many pages are stored together.
            markdown: whether the verdicts have the main content as Markdown, even if the collection
                does not keep it.
            options: settings that differ from those of the policies and the collection; see
                :class:`~pgsimhash.pages.match_settings.MatchSettings`.

        Raises:
            ArgumentError: the scheme of the collection is not registered in this process; the
                layout does not answer ``distance``; there is no such scope, or a number is below 1;
                ``max_age`` is none.
            CollectionError: no collection of the scheme has the name any more, or it is being made
                from another one.
            StoreError: the database does not answer, and the batches before stay; or the caller's
                transaction ended within a batch.
        """
        items = self._read(
            pages,
            jobs=jobs,
            max_bytes=max_bytes,
            page_seconds=page_seconds,
            page_memory=page_memory,
            markdown=markdown,
        )
        return self._ingest.decide(items, BATCH_PAGES, options, remember=True, asked=batch_size)

    def should_store(
        self,
        url: str,
        html: str | BytesLike,
        *,
        fetched_at: datetime | None = None,
        max_bytes: int = MAX_BYTES,
        **options: Unpack[MatchOptions],
    ) -> bool:
        """Decide and remember, as :meth:`ingest`, and return whether the page is worth keeping.

        It is if its verdict is ``new``, or fewer than ``max_copies`` near-copies are known, under
        this URL or another; not if it says too little.

        Raises:
            PageError: the page cannot be read, so that nothing was decided; ``reason`` and the
                message say why. Otherwise as for :meth:`ingest`.
        """
        verdict = self.ingest(url, html, fetched_at=fetched_at, max_bytes=max_bytes, **options)
        return worth_keeping(verdict)

    def decide(
        self,
        url: str,
        html: str | BytesLike,
        *,
        fetched_at: datetime | None = None,
        max_bytes: int = MAX_BYTES,
        markdown: bool = False,
        **options: Unpack[MatchOptions],
    ) -> Verdict:
        """Return the verdict that :meth:`ingest` would give now, and remember nothing.

        Raises:
            As for :meth:`ingest`.
        """
        page = page_of(url, html, fetched_at)
        return self._decide_page(page, max_bytes, options, markdown=markdown, remember=False)

    def decide_many(
        self,
        pages: Iterable[Page],
        *,
        jobs: int = 1,
        max_bytes: int = MAX_BYTES,
        page_seconds: float | None = None,
        page_memory: int | None = None,
        markdown: bool = False,
        **options: Unpack[MatchOptions],
    ) -> Iterator[Verdict]:
        """Yield for each page the verdict that :meth:`ingest` would give now, in their order.

        Nothing is remembered: pages are compared with the store, and in batches with the ones
        just before them.

        Raises:
            As for :meth:`ingest_many`.
        """
        items = self._read(
            pages,
            jobs=jobs,
            max_bytes=max_bytes,
            page_seconds=page_seconds,
            page_memory=page_memory,
            markdown=markdown,
        )
        return self._ingest.decide(items, BATCH_PAGES, options, remember=False)

    def add(
        self,
        url: str,
        simhash: int,
        *,
        fetched_at: datetime | None = None,
        **options: Unpack[MatchOptions],
    ) -> Verdict:
        """Ingest a page that the caller fingerprinted, with the collection's scheme.

        Raises:
            PageError: ``url`` is not one.
            ArgumentError: ``simhash`` is not in 0..2**64-1; ``fetched_at`` names no zone, is in the
                future or before 1970, or ``max_age`` is none; the layout does not answer
                ``distance``; there is no such scope, or a number is below 1.
            CollectionError: no collection of the scheme has the name any more, or it is being made
                from another one.
            StoreError: the database does not answer.
        """
        moment = None if fetched_at is None else check_time(fetched_at)
        record = PageRecord(check_url(url), check_simhash(simhash), moment)
        return self._ingest.decide_one(record, options, remember=True)

    def add_many(
        self,
        pages: Iterable[tuple[str, int]],
        *,
        batch_size: int | None = None,
        **options: Unpack[MatchOptions],
    ) -> Iterator[Verdict]:
        """Add ``(url, simhash)`` pairs as they come; :meth:`ingest_many` without the reading.

        A batch is of 1,000 pairs where the store commits.

        A pair that is none (a URL that is not one, a number that is no simhash) is reported as
        failed and the rest goes on.

        Raises:
            ArgumentError: the layout does not answer ``distance``; there is no such scope, or a
                number is below 1; ``max_age`` is none.
            CollectionError: no collection of the scheme has the name any more, or it is being made
                from another one.
            StoreError: the database does not answer, and the batches before stay; or the caller's
                transaction ended within a batch.
        """
        items = map(as_record, check_many("pages", pages, PAIRS))
        return self._ingest.decide(
            items, BATCH_SIMHASHES, options, remember=True, asked=batch_size, label="add_many"
        )

    def add_simhashes(self, simhashes: NDArray[np.uint64] | Iterable[NDArray[np.uint64]]) -> int:
        """Add simhashes without pages or verdicts, and return how many were not known.

        For a load from elsewhere: all of an array or none. Lookups find them with no URL, and they
        stay when pages that share them are deleted. Batches that another writer is deciding at
        that moment may not see them.

        100,000 and more go into an empty table of the collection's layout before its indexes are
        built, where nobody else uses the table at that moment, it may be altered, and the
        transaction is the store's own; others wait for it until then.

        Args:
            simhashes: shape (n,), dtype uint64; or such arrays one after the other, a million or
                more in a transaction, and all in one where the first find the table empty.

        Raises:
            ArgumentError: an array has another shape or dtype.
            CollectionError: no collection of the scheme has the name any more, or it is being made
                from another one.
            StoreError: the database does not answer.
        """
        from pgsimhash.store.loading import add_simhashes

        return add_simhashes(self.session, simhash_arrays(simhashes))

    def start_run(self, label: str) -> int:
        """Let what is added from now on belong to a run of its own, and return its number.

        Without it, a call of :meth:`ingest_many` or :meth:`add_many` is a run, and pages that are
        added one at a time belong to none. ``label`` is its name in the list.

        Raises:
            StoreError: the database does not answer.
        """
        return self._ingest.start_run(label)

    def expire(
        self,
        older_than: timedelta | None = None,
        *,
        progress: Deleted = no_progress,
    ) -> Deletion:
        """Delete every version not seen for so long, and return what went.

        A version is seen when it comes in, and whenever its URL comes again unchanged.

        Args:
            older_than: versions last seen longer ago than this go; None leaves it to the
                ``expire_after`` of policies, for pages that have one.
            progress: told how many are gone so far.

        Raises:
            ArgumentError: ``older_than`` is not more than nothing; neither an age nor a policy says
                when pages expire.
            CollectionError: no collection of the scheme has the name any more, or it is being made
                from another one.
            StoreError: the database does not answer.
        """
        if older_than is not None:
            check_age(older_than)
        return deleting.expire(self.session, older_than, progress)

    def delete(self, url: str) -> Deletion:
        """Delete all versions of the page at ``url`` and return what went.

        Raises:
            CollectionError: no collection of the scheme has the name any more, or it is being made
                from another one.
            StoreError: the database does not answer.
        """
        return deleting.delete(
            self.session, "pages_of_url", {"url": self.opened.page_url(url)}, no_progress
        )

    def delete_host(self, host: str, *, progress: Deleted = no_progress) -> Deletion:
        """Delete all pages of a host and return what went.

        Raises:
            CollectionError: no collection of the scheme has the name any more, or it is being made
                from another one.
            StoreError: the database does not answer.
        """
        scope = {"host": lowered(host)}
        return deleting.delete(self.session, "pages_of_host", scope, progress)

    def pairs(
        self,
        distance: int | None = None,
        *,
        memory: int = MEMORY_BYTES,
        progress: Compared = no_progress,
    ) -> Generator[Pairs]:
        """Yield every pair of known simhashes within ``distance`` bits, each once, in blocks.

        The simhashes are read once into a temporary file (8 bytes each) and searched outside
        the database; see :func:`pgsimhash.find_pairs`. What is written meanwhile may be missed.

        Args:
            distance: the largest number of differing bits; by default the collection's.
            memory: how many bytes to use for simhashes at a time.
            progress: told how many simhashes are compared of how many, each counted once for
                every pass over them; first when all are read.

        Raises:
            ArgumentError: ``distance`` is not in 0..12.
            StoreError: the database does not answer.
        """
        checked_distance(self.opened, distance, DISTANCE_MAX)
        return self._pairs(distance, memory, progress)

    def clusters(
        self,
        distance: int | None = None,
        *,
        linkage: Linkage = "single",
        canonical: str | Score | Sequence[str] = "earliest",
        progress: Compared = no_progress,
    ) -> Generator[Cluster]:
        """Yield the clusters of more than one page, by the present versions of all pages.

        Args:
            distance: the largest number of differing bits of a pair; by default the
                collection's.
            linkage: ``single`` takes all that are joined by a chain of pairs; with ``complete``
                every two members are within ``distance``.
            canonical: how the page that stands for a cluster is chosen: a name in
                :data:`pgsimhash.search.clusters.RULES`, several to break ties, or a function from
                :class:`~pgsimhash.search.clusters.ClusterPage` to a score, of which the largest
                wins.
            progress: told as by :meth:`pairs`; clusters come when all pairs are found.

        Raises:
            ArgumentError: ``distance`` is not in 0..12; there is no such rule or linkage.
            StoreError: the database does not answer.
        """
        check_linkage(linkage)
        checked_distance(self.opened, distance, DISTANCE_MAX)
        return self._clusters(distance, linkage, scorer(canonical), progress)

    @retried
    def status(self) -> list[CollectionStatus]:
        """Return the figures of every collection in the database.

        Raises:
            StoreError: the database does not answer.
        """
        with self.session.read() as connection:
            return read_status(connection)

    def _decide_page(
        self,
        page: SourcePage,
        max_bytes: int,
        options: MatchOptions,
        *,
        markdown: bool,
        remember: bool,
    ) -> Verdict:
        check_type("max_bytes", max_bytes, int, wanted="a number of bytes, such as 10_000_000")
        self._ingest.check(options)
        record = self._read_page(as_source(page), max_bytes, markdown or self.opened.keep_markdown)
        return self._ingest.decide_one(with_checked_time(record), options, remember=remember)

    def _read_page(self, page: Source, max_bytes: int, markdown: bool) -> Item:
        from pgsimhash.reading.workers import extract

        scheme = schemes.get_scheme(self.scheme)
        return extract(page, scheme, markdown=markdown, max_bytes=max_bytes)

    def _read(self, pages: Iterable[Page], **limits: Unpack[Limits]) -> Iterator[Item]:
        from pgsimhash.reading.workers import extract_many

        limits["markdown"] = limits["markdown"] or self.opened.keep_markdown
        sources = map(as_source, check_many("pages", pages, PAGES))
        records = extract_many(sources, scheme=self.scheme, **limits)
        return map(with_checked_time, records)

    def _pairs(self, distance: int | None, memory: int, progress: Compared) -> Generator[Pairs]:
        from pgsimhash.search.pairs import stream_pairs
        from pgsimhash.store import groups

        with self.session.reading() as (connection, collection):
            wanted = checked_distance(collection, distance, DISTANCE_MAX)
            read = groups.spool(connection, collection)
        with read as simhashes:
            yield from stream_pairs(simhashes, wanted, memory=memory, progress=progress)

    def _clusters(
        self, distance: int | None, linkage: Linkage, score: Score, progress: Compared
    ) -> Generator[Cluster]:
        from pgsimhash.store import groups

        with self.session.reading(together=True) as (connection, collection):
            wanted = checked_distance(collection, distance, DISTANCE_MAX)
            yield from groups.clusters(connection, collection, wanted, linkage, score, progress)


def worth_keeping(verdict: Verdict) -> bool:
    """Return whether a page is worth keeping.

    Raises:
        PageError: nothing was decided, for it cannot be read.
    """
    if verdict.verdict == "failed":
        raise PageError(verdict.reason, f"{verdict.url}: {verdict.detail}")
    return verdict.keep


def page_of(url: str, html: str | BytesLike, fetched_at: datetime | None) -> SourcePage:
    """Return a page, its time in UTC.

    Raises:
        ArgumentError: ``fetched_at`` names no zone, is in the future or before 1970.
    """
    moment = None if fetched_at is None else check_time(fetched_at)
    return SourcePage(url, frozen(html), fetched_at=moment)
