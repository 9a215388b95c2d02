"""The store: look up, decide about, write and delete pages in PostgreSQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Self, SupportsIndex, TypeVar, Unpack

from pgsimhash.errors import ArgumentError, check_number, check_type
from pgsimhash.hashing.bits import as_simhashes, check_simhash, to_bigint
from pgsimhash.hashing.signature import to_halves
from pgsimhash.pages.policies import MatchOptions
from pgsimhash.pages.records import (
    Input,
    Item,
    Match,
    Matches,
    NearPage,
    PageRecord,
    PageStatus,
    Pause,
    SourcePage,
    StoredPage,
    Verdict,
)
from pgsimhash.pages.selectors import Selectors, policy_selectors
from pgsimhash.pages.urls import check_url
from pgsimhash.pages.values import MAX_BYTES, BytesLike, check_age, check_time
from pgsimhash.runtime import no_progress
from pgsimhash.search.clusters import CANONICAL, Cluster, Linkage, Score, check_linkage, scorer
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.sources import check_paths, folders_at
from pgsimhash.sources.page import OnSkipped, Reading
from pgsimhash.store import batches
from pgsimhash.store.batches import Page, as_input, page_of
from pgsimhash.store.ingest import Ingest, sent_options
from pgsimhash.store.maintenance import Maintenance
from pgsimhash.store.session import Session, lookup, retried

# Methods import what only they need: a lookup reads no page and needs no numpy.
if TYPE_CHECKING:
    from pgsimhash.search.pairs import Compared, Pairs

_Input = TypeVar("_Input", bound=Input)
_Match = TypeVar("_Match", bound=Match)

_AT_ONCE: Final = 10_000  # simhashes per statement; bounds the server's memory


class Store(Maintenance):
    """A collection of pages in PostgreSQL; :func:`pgsimhash.connect` says who commits.

    The ``options`` of methods are :class:`~pgsimhash.pages.policies.MatchOptions`. The policies
    decide missing options, else the collection.

    Deletions commit every thousand pages, unless you are in a transaction, and return the deleted
    URLs (about 150 bytes each), so that you can delete your own rows. The earliest copy of a
    deleted page becomes an original in the same transaction, and pages near it point to it. Your
    transaction must use READ COMMITTED.

    A store is bound to the collection's name. If a rebuild gives the name to another collection of
    the same scheme, the store uses that one. Threads may share a store; over your own connection
    they wait for one another. During a loop over :meth:`clusters`, or a callback, a store over your
    own connection answers reads and refuses writes.

    Raises:
        ArgumentError: an argument is invalid, or the layout does not support the distance.
        CollectionError: no collection of this scheme has the name any more. Methods that write
            raise it too while the collection is being rebuilt.
        StoreError: the database does not answer or refuses a statement. Committed batches stay.
    """

    def __init__(self, session: Session) -> None:
        """Use the collection of a session; see :func:`pgsimhash.connect`."""
        self._session = session
        self._ingest = Ingest(session)

    def __repr__(self) -> str:
        row = self.collection
        return f"<{type(self).__name__}: the collection {row.name!r} by {row.scheme}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object = None, *_: object) -> None:
        try:
            if error is None:
                self._ingest.end_runs()
        finally:
            self._session.connections.close()

    def close(self) -> None:
        """Close the connections that the store opened; those in use close after their call.

        It ends the run of :meth:`start_run`.
        """
        self.__exit__()

    @lookup
    def find(
        self,
        simhash: int,
        distance: int | None = None,
        *,
        limit: int | None = None,
        signature: int | None = None,
    ) -> list[Match]:
        """Return every stored simhash within ``distance`` bits, each once, nearest first.

        The search is exact (Manku, Jain, Das Sarma, WWW 2007, section 3). A match names the first
        of the pages that share its simhash; :meth:`near_pages` returns all of them.

        Args:
            simhash: the simhash to look up.
            distance: the largest number of differing bits; by default the collection's.
            limit: the maximum number of matches; the nearest are returned.
            signature: the signature that belongs to ``simhash``: omit matches whose page has a
                different one (see :mod:`pgsimhash.hashing.signature`).
        """
        return self._near(Match, check_simhash(simhash), distance, limit, signature)

    @lookup
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

        Unlike :meth:`find` it returns each page that shares a simhash. It ignores marks.

        Args:
            page: the URL of a stored page, which is not part of the result; or a simhash.
            distance: the largest number of differing bits; by default the collection's.
            limit: the maximum number of pages: the nearest, of equally near ones the earliest.
            verify: whether to omit matches with a different signature.
            signature: that of a simhash, whose matches are not verified without it.

        Raises:
            NotFoundError: the URL is unknown.
        """
        return self._near(NearPage, page, distance, limit, signature, verify)

    def _near(
        self,
        record: type[_Match],
        page: str | int,
        distance: int | None,
        limit: int | None,
        signature: int | None,
        verify: bool = True,
    ) -> list[_Match]:
        high, low = to_halves(signature)
        given: dict[str, Any] = {
            "own_url": self.collection.page_url(page) if isinstance(page, str) else None,
            "query": None if isinstance(page, str) else to_bigint(page),
            "max_matches": None if limit is None else check_number("limit", limit),
            "first_only": record is Match,
            "own_high": high,
            "own_low": low,
            "distance": distance,
            "verify": verify,
        }
        with self._session.calls_by_name(distance) as calls:
            return calls.records("find_pages", record, **given)

    def find_many(self, simhashes: Iterable[SupportsIndex], distance: int | None = None) -> Matches:
        """Return the matches of many simhashes, by query, nearest first.

        ``simhashes`` is an array, a column of a data frame, or integers; faster than one by one.
        """
        import numpy as np

        queries = as_simhashes(simhashes)

        def find() -> Matches:
            parts = []
            with self._session.calls_by_name(distance) as calls:
                for start in range(0, max(1, len(queries)), _AT_ONCE):
                    signed = queries[start : start + _AT_ONCE].view(np.int64).tolist()
                    asked = {"simhashes": signed, "distance": distance, "only_one": False}
                    rows = calls.fetch("matches", **asked)
                    numbers, values, bits = zip(*rows, strict=True) if rows else ((), (), ())
                    known = np.array(values, dtype=np.int64).view(np.uint64)
                    places = np.array(numbers, dtype=np.int64) - 1 + start
                    parts.append((places, known, np.array(bits, dtype=np.uint8)))
            return Matches(*map(np.concatenate, zip(*parts, strict=True)))

        return self._session.attempt(
            "find_many", len(queries), find, lambda matches: {"found": len(matches.queries)}
        )

    @lookup
    def has_near(self, simhash: int, distance: int | None = None) -> bool:
        """Return whether any stored simhash is within ``distance`` bits; stop at the first."""
        asked: dict[str, Any] = {"simhashes": [to_bigint(simhash)], "distance": distance}
        with self._session.calls_by_name(distance) as calls:
            return bool(calls.fetch("matches", **asked, only_one=True))

    @lookup
    def get(self, url: str) -> StoredPage | None:
        """Return the present version of the page at ``url``, or None if it is unknown."""
        urls = [self.collection.page_url(url)]
        with self._session.calls_by_name(None) as calls:
            pages = calls.records("stored_pages", StoredPage, urls=urls, versions=1)
        return pages[0] if pages else None

    def should_fetch(self, url: str, *, older_than: timedelta | None = None) -> bool:
        """Return whether to fetch a page: it is unknown, or was last seen too long ago.

        ``older_than`` says how long ago, by default the ``refetch_after`` of the page's policy; 0
        means always. With neither, a known page is not fetched again. A page that was found gone
        was seen then. A URL of :meth:`add_redirects` is also answered as the pages where it leads,
        unless it was added too long ago.
        """
        return bool(self._fetch_conditions("should_fetch", url, older_than)[0])

    def should_fetch_many(
        self, urls: Iterable[str], *, older_than: timedelta | None = None
    ) -> list[bool]:
        """Return the answers of :meth:`should_fetch` for several URLs, in order.

        Of URLs with one address, which differ in parameters that do not matter, only the first is
        to be fetched. It is one statement: give some thousands at a time.
        """
        check_type(urls, Iterable, "urls are an iterable of strings")
        asked = list(map(self.collection.page_url, urls))
        rows = self._ask(
            "should_fetch_many", len(asked), older_than, "should_fetch_many", urls=asked
        )
        return [is_due for is_due, _ in rows]

    def request_headers(
        self, url: str, *, older_than: timedelta | None = None
    ) -> dict[str, str] | None:
        """Return the headers of a conditional request, or None if the page needs no fetch.

        They are ``If-None-Match`` and ``If-Modified-Since``, as far as the page was stored with an
        ``etag`` and ``last_modified``. Pass an answer 304 to :meth:`seen`. See :meth:`should_fetch`
        for ``older_than``.
        """
        return self._headers_and_address(url, older_than)[0]

    def _headers_and_address(
        self, url: str, older_than: timedelta | None = None
    ) -> tuple[dict[str, str] | None, str | None]:
        is_due, *validators, address = self._fetch_conditions("request_headers", url, older_than)
        named = zip(("If-None-Match", "If-Modified-Since"), validators, strict=True)
        return {name: value for name, value in named if value} if is_due else None, address

    def _fetch_conditions(self, name: str, url: str, older_than: timedelta | None) -> Sequence[Any]:
        page_url = self.collection.page_url(url)
        return self._ask(name, 1, older_than, "fetch_conditions", url=page_url)[0]

    def _ask(
        self, name: str, number: int, older_than: timedelta | None, function: str, **asked: Any
    ) -> list[Sequence[Any]]:
        age = check_age(older_than, always=True)

        def look_up() -> list[Sequence[Any]]:
            with self._session.calls_by_name(None) as calls:
                return calls.fetch(function, older_than=age, **asked)

        return self._session.attempt(
            name, number, look_up, lambda rows: {"found": sum(not row[0] for row in rows)}
        )

    def seen(self, url: str, *, fetched_at: datetime | None = None) -> bool:
        """Record that the page at ``url`` is unmodified, as an answer 304 says.

        Its present version is seen at ``fetched_at``, by default now. Returns whether the URL is
        known; otherwise nothing is stored.

        Raises:
            PageError: ``url`` is invalid.
        """
        return self._record(PageStatus(url, False, fetched_at))

    def gone(self, url: str, *, fetched_at: datetime | None = None) -> bool:
        """Record that the page at ``url`` is gone, as the answers 404 and 410 say.

        Its present version has ``gone_at`` until a page is stored or seen at the URL again. It
        expires by the time when it was last seen. The rest is that of :meth:`seen`.
        """
        return self._record(PageStatus(url, True, fetched_at))

    def _record(self, status: PageStatus) -> bool:
        return self._verdict_of(batches.checked(status), {}).kind != "unknown"

    @retried
    def add_redirects(self, targets: Mapping[str, str]) -> None:
        """Store the URLs to which other URLs lead, so that :meth:`should_fetch` follows them."""
        check_type(targets, Mapping, "targets are a mapping of URLs to URLs")
        page_url = self.collection.page_url
        urls, ends = map(page_url, targets), map(page_url, targets.values())
        with self._session.calls_to_write() as calls:
            calls.fetch("put_redirects", urls=list(urls), targets=list(ends))

    def ingest(
        self,
        url: str,
        html: str | BytesLike,
        *,
        charset: str | None = None,
        fetched_at: datetime | None = None,
        etag: str | None = None,
        last_modified: str | None = None,
        noindex: bool = False,
        max_bytes: int = MAX_BYTES,
        markdown: bool = False,
        **options: Unpack[MatchOptions],
    ) -> Verdict:
        """Fingerprint one page, decide whether it is known, and store it.

        Args:
            url: the page's absolute URL.
            html: the page; bytes are decoded like in a browser.
            charset: the charset of its ``Content-Type`` header.
            fetched_at: when it was fetched, by default now.
            etag: the header of its response, for :meth:`request_headers`.
            last_modified: the header of its response, likewise.
            noindex: whether its ``X-Robots-Tag`` says so.
            max_bytes: larger pages fail.
            markdown: whether the verdict has the main content as Markdown, even if the collection
                does not store it.
            options: settings that override those of the policies and the collection.
        """
        headers = {"etag": etag, "last_modified": last_modified, "noindex": noindex}
        page = page_of(url, html, fetched_at, charset=charset, **headers)
        (item,) = self._read([page], options, markdown, max_bytes=max_bytes)
        return self._verdict_of(item, options)

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
        """Ingest a stream of pages and yield a verdict for each, in order.

        It is lazy: pages are read, stored and released in batches while you consume the verdicts,
        so memory does not grow with their number. A page that fails gets a verdict too.

        A batch is stored as a whole before its first verdict. If the store commits, a batch is one
        transaction of 256 pages, 64 MB of text or two seconds; if you stop within it, pages are
        stored whose verdicts you have not seen. In your own transaction, each page is stored when
        you consume its verdict, so your rows commit with it. In that case ingest before you write
        other rows: two writers with different orders can deadlock. With ``batch_size``, end the
        transaction only between two batches, otherwise it is a ``StoreError``.

        Args:
            pages: ``(url, html)`` pairs, or the items of :func:`pgsimhash.sources.read_pages`.
                Yield ``pgsimhash.sources.Pause()`` while none arrives: earlier pages are decided
                meanwhile.
            jobs: the number of processes that fingerprint pages; with more than one, the calling
                script needs the usual ``if __name__ == "__main__":`` guard.
            max_bytes: larger pages fail.
            page_seconds: a page that takes longer to read fails. By default, other processes have
                30 seconds per page, and this process has no limit.
            page_memory: a page that needs more bytes of memory fails (on Linux). With a limit of
                either kind, another process reads the pages even if ``jobs`` is 1.
            batch_size: the number of pages per batch.
            markdown: whether the verdicts have the main content, see :meth:`ingest`.
            options: see :class:`Store`.
        """
        items = self._read(pages, options, markdown, jobs, max_bytes, page_seconds, page_memory)
        size = batches.BATCH_PAGES
        return self._ingest.decide_each(items, size, options, batch_size=batch_size)

    def ingest_files(
        self,
        paths: Iterable[str | Path],
        *,
        reread: bool = False,
        base_url: str | None = None,
        stdin: BinaryIO | None = None,
        skipped: Counter[str] | None = None,
        on_skipped: OnSkipped = no_progress,
        on_read: Callable[[int], None] = no_progress,
        jobs: int = 1,
        max_bytes: int = MAX_BYTES,
        page_seconds: float | None = None,
        page_memory: int | None = None,
        **options: Unpack[MatchOptions],
    ) -> Generator[Verdict]:
        """Ingest files, and yield a verdict for each page that is not stored already.

        The table ``sources`` records the path, size and modification time of each file, and how
        many of its records are stored. It is written after the batch, so recorded files are
        certainly stored. Failed pages are read again, and so are deleted single pages. A skipped
        file of one page counts as seen again. If you stop before the last verdict, close the
        iterator before the store.

        Args:
            paths: as of :func:`pgsimhash.sources.read_pages`; texts if the scheme reads texts.
            reread: whether to skip nothing.
            base_url: the URL of the given folders, such as those of ``wget -r -nH``, for the URLs
                of the HTML files in them, instead of ``file:`` URLs.
            stdin: the stream for ``-``, instead of the process's.
            skipped: counts, by kind, what is stored or is not a page.
            on_skipped: receives each of these.
            on_read: receives the numbers of bytes of archives and other files with many pages
                that were read or skipped.
            jobs: this and the other arguments are those of :meth:`ingest_many`.
            max_bytes: see there.
            page_seconds: see there.
            page_memory: see there.
            options: see there. The verdicts have their ``source``, ``record`` and ``fetched_at``.
        """
        from pgsimhash.schemes.registry import reads_texts
        from pgsimhash.store.files import Files

        check_paths(paths)
        texts = reads_texts(self.collection.scheme)
        paths = list(paths)
        folders = folders_at(base_url, paths)
        counts = Counter[str]() if skipped is None else skipped
        reading = Reading(max_bytes, counts, texts, on_skipped, base_url, folders, on_read)
        files = Files(self._session, self._ingest.see, reread, reading, stdin)
        verdicts = self.ingest_many(
            files.read(paths),
            jobs=jobs,
            max_bytes=max_bytes,
            page_seconds=page_seconds,
            page_memory=page_memory,
            **options,
        )
        return files.noted(verdicts)

    def decide(
        self,
        url: str,
        html: str | BytesLike,
        *,
        charset: str | None = None,
        fetched_at: datetime | None = None,
        max_bytes: int = MAX_BYTES,
        markdown: bool = False,
        **options: Unpack[MatchOptions],
    ) -> Verdict:
        """Return the verdict that :meth:`ingest` would give now, and store nothing."""
        page = page_of(url, html, fetched_at, charset=charset)
        (item,) = self._read([page], options, markdown, max_bytes=max_bytes)
        return self._verdict_of(item, options, dry_run=True)

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
        """Yield the verdicts that :meth:`ingest_many` would give now, and store nothing.

        Pages are compared with the store, and with those before them in the same batch.
        """
        items = self._read(pages, options, markdown, jobs, max_bytes, page_seconds, page_memory)
        return self._ingest.decide_each(items, batches.BATCH_PAGES, options, dry_run=True)

    def add_page(
        self,
        url: str,
        simhash: int,
        *,
        fetched_at: datetime | None = None,
        **options: Unpack[MatchOptions],
    ) -> Verdict:
        """Ingest a page that you fingerprinted yourself, with the collection's scheme.

        Raises:
            PageError: ``url`` is invalid.
        """
        moment = None if fetched_at is None else check_time(fetched_at)
        record = PageRecord(check_url(url), check_simhash(simhash), moment)
        return self._verdict_of(record, options)

    def add_pages(
        self,
        pages: Iterable[tuple[str, int]],
        *,
        batch_size: int | None = None,
        **options: Unpack[MatchOptions],
    ) -> Iterator[Verdict]:
        """Add ``(url, simhash)`` pairs; :meth:`ingest_many` without the reading.

        If the store commits, a batch has 1,000 pairs. An invalid pair gets a verdict ``failed``.
        """
        check_type(pages, Iterable, "pages are an iterable of pairs")
        return self._ingest.decide_each(
            map(batches.as_record, pages),
            batches.BATCH_SIMHASHES,
            options,
            batch_size=batch_size,
            label="add_pages",
        )

    def start_run(self, label: str) -> int:
        """Start a run with a label for everything that is added from now on, and return its id.

        It ends with the next one, and when the store is closed without an error; over your idle
        connection, by ``pgsimhash.end_run`` in SQL. Without it, each call of :meth:`ingest_many` or
        :meth:`add_pages` is a run that ends with its iterator, and single pages belong to no run.
        """
        return self._ingest.start_run(label)

    def pairs(
        self, distance: int | None = None, *, progress: Compared = no_progress
    ) -> Generator[Pairs]:
        """Yield every pair of stored simhashes within ``distance`` bits, each once, in arrays.

        ``distance`` is at most 12, by default the collection's. The call reads the simhashes into
        memory (about 32 bytes each while they are compared), and searches outside the database; see
        :func:`pgsimhash.find_pairs`. Concurrent writes may be missed. ``progress`` receives the
        number of compared simhashes and the total; each pass counts every simhash once.
        """
        from pgsimhash.search.pairs import stream_pairs

        with self._session.calls_to_read() as calls:
            bits = calls.collection.checked_distance(distance, DISTANCE_MAX)
            simhashes = calls.simhashes()
        return stream_pairs(simhashes, bits, progress=progress)

    def clusters(
        self,
        distance: int | None = None,
        *,
        linkage: Linkage = "single",
        canonical: str | Score | Sequence[str] = CANONICAL,
        progress: Compared = no_progress,
    ) -> Generator[Cluster]:
        """Yield the clusters of more than one page, from the present versions of all pages.

        As in verdicts, signatures must confirm a match: without the signature of another page of
        the cluster that does, a page leaves it. Marks override both.

        Args:
            distance: the largest number of differing bits of a pair; see :meth:`pairs`.
            linkage: ``single`` joins pages by chains of pairs; in a ``complete`` cluster all pairs
                are within ``distance``.
            canonical: how to choose the page that represents a cluster: a rule in
                :data:`pgsimhash.search.clusters.RULES`, several to break ties, or a function from
                :class:`~pgsimhash.search.clusters.ClusterPage` to a score; the largest wins. By
                default the page that most canonical links of the cluster name; else without
                noindex, https, without parameters, the shortest URL, the one stored first.
            progress: see :meth:`pairs`. The first cluster follows when all pairs are found.
        """
        check_linkage(linkage)
        self.collection.checked_distance(distance, DISTANCE_MAX)
        from pgsimhash.store.clusters import stream_clusters

        return stream_clusters(self._session, distance, linkage, scorer(canonical), progress)

    def save_clusters(
        self,
        distance: int | None = None,
        *,
        linkage: Linkage = "single",
        canonical: str | Score | Sequence[str] = CANONICAL,
        progress: Compared = no_progress,
    ) -> int:
        """Replace the collection's rows of the table ``clusters``, and return how many clusters.

        It is one transaction: until it ends, readers see the old clusters. Other writers wait while
        the rows are written. The arguments are those of :meth:`clusters`.
        """
        from pgsimhash.store.clusters import save_clusters

        return save_clusters(self._session, distance, linkage, scorer(canonical), progress)

    def _verdict_of(self, item: Item, options: MatchOptions, *, dry_run: bool = False) -> Verdict:
        sent_options(self.collection, options)
        item, size = batches.bounded(item)
        return self._decide(item, size, options, dry_run=dry_run)

    def _decide(self, item: Item, size: int, options: MatchOptions, *, dry_run: bool) -> Verdict:
        (verdict,) = self._ingest.decide_batch([item], options, dry_run=dry_run)
        return verdict

    def _rules(self) -> str | None:
        """Return the policies with selectors; they were read in the last minute."""
        self._session.retry(self._session.refresh)
        return self.collection.selectors

    def _selected(self, page: _Input, given: Selectors, rules: str | None) -> _Input:
        """Return a page with its selectors: its own, else the given, else the policies'."""
        if not isinstance(page, SourcePage) or (rules is None and not any(given)):
            return page
        selectors = Selectors(page.content, page.ignore).otherwise(given)
        if rules is not None:
            with suppress(ArgumentError):  # the reader reports an invalid URL
                url = self.collection.page_url(page.url)
                selectors = selectors.otherwise(policy_selectors(rules, url))
        return replace(page, content=selectors.content, ignore=selectors.ignore)

    def _read(
        self,
        pages: Iterable[Page],
        options: MatchOptions,
        markdown: bool,
        jobs: int = 1,
        max_bytes: int = MAX_BYTES,
        page_seconds: float | None = None,
        page_memory: int | None = None,
    ) -> Iterator[Item]:
        check_type(pages, Iterable, "pages are an iterable of pairs or items of read_pages()")
        check_type(markdown, bool, "markdown is True or False")
        given = Selectors(options.get("content"), options.get("ignore"))
        if any(given.checked()):
            from pgsimhash.schemes.registry import checked_selectors

            checked_selectors(self.collection.scheme, given)
        extract = partial(
            self._extract,
            jobs=jobs,
            scheme=self.collection.scheme,
            markdown=markdown or self.collection.keep_markdown,
            max_bytes=max_bytes,
            page_seconds=page_seconds,
            page_memory=page_memory,
        )
        nothing = extract(())  # raises for invalid options

        def items() -> Iterator[Item]:
            yield from nothing
            by_rules = groupby(map(as_input, pages), lambda _: self._rules())
            for number, (rules, inputs) in enumerate(by_rules):
                if number:
                    # A batch is read by one version of the policies.
                    yield Pause()
                yield from extract(self._selected(page, given, rules) for page in inputs)

        return items()

    def _extract(self, *arguments: Any, **options: Any) -> Iterator[Item]:
        from pgsimhash.reading.workers import extract_many

        return extract_many(*arguments, **options)
