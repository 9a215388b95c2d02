"""Define the records that a store takes and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

from pgsimhash.hashing.bits import format_simhash

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Event", "PageRecord"]

VerdictKind = Literal[
    "new", "updated", "unchanged", "duplicate", "near", "gone", "unknown", "too_short", "failed"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFields:
    """What a scheme and a store know about one page.

    Attributes:
        title: the page's title.
        canonical_url: the absolute URL of its ``rel=canonical``.
        language: the value of its ``lang``.
        noindex: whether it asks search engines not to list it.
        alternates: the absolute URLs of its ``hreflang`` links, separated by spaces.
        features: the number of distinct features.
        tokens: the number of tokens of the main content.
        html_bytes: the size of the page in bytes.
        structure: the simhash of the page's structure; pages of one template usually differ by at
            most 12 bits.
        signature: 128 bits that verify a match, 0 <= signature < 2**128; see
            :mod:`pgsimhash.hashing.signature`.
        text_digest: 64 bits, equal for pages whose main content has the same words and numbers;
            counters and dates of the visit do not count.
        unseen: the share of the page's words in blocks with less than a tenth of the mean weight;
            None if the scheme does not weigh blocks.
        selectors: a digest of the selectors by which the page was read; None if it was read whole.
        content_missing: whether ``content`` selected nothing, so that all of it counts.
        markdown: the main content, if it was requested.
    """

    title: str | None = None
    canonical_url: str | None = None
    language: str | None = None
    noindex: bool = False
    alternates: str | None = None
    features: int | None = None
    tokens: int | None = None
    html_bytes: int | None = None
    structure: int | None = None
    signature: int | None = None
    text_digest: int | None = None
    unseen: float | None = None
    selectors: int | None = None
    content_missing: bool = False
    markdown: str | None = None


BITS_64: Final = ("structure", "text_digest")
"""The fields of 64 bits, which are bigint in the database."""

COUNTS: Final = tuple(
    each.name
    for each in fields(PageFields)
    if each.type == "int | None" and each.name not in (*BITS_64, "signature")
)
"""The other numbers, which are integer in the database."""


@dataclass(frozen=True, slots=True)
class PageRecord(PageFields):
    """One page to store: its simhash, and the values stored with it.

    ``html_digest`` is the first 16 bytes of the SHA-256 of its HTML. ``etag`` and ``last_modified``
    are the headers of its response. Those that no request can send back are dropped. ``truncated``
    is that of the verdict; it is not stored.
    """

    url: str
    simhash: int
    fetched_at: datetime | None = None
    html_digest: bytes | None = None
    etag: str | None = None
    last_modified: str | None = None
    truncated: str | None = None


UNSTORED: Final = ("unseen", "content_missing", "truncated")
"""The fields that only verdicts or fingerprints have."""

TEXTS: Final = tuple(each.name for each in fields(PageRecord) if "str" in str(each.type).split())


@dataclass(frozen=True, slots=True)
class PageFailure:
    """A page that could not be read, or that has no simhash.

    ``url`` is the page's, or else the path or ``path#record``. ``reason`` is one of
    ``PageError.reasons``; ``detail`` is one line. ``record`` is the number of its line or record in
    its file, None if it stands for an unknown number of them; comparisons ignore it.
    """

    url: str
    reason: str
    detail: str
    record: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PageStatus:
    """An answer without a page: the page at ``url`` is unmodified (304), or gone (404, 410).

    ``record`` is the number of its record in its file; comparisons ignore it.
    """

    url: str
    is_gone: bool
    fetched_at: datetime | None = None
    etag: str | None = None
    last_modified: str | None = None
    record: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class SourcePage:
    """One page, neither decoded nor parsed.

    A ``bytearray`` or ``memoryview`` given as ``html`` is copied to ``bytes``. ``charset`` comes
    from outside the page (an HTTP header, a JSON field). ``fetched_at`` has a time zone. ``etag``
    and ``last_modified`` are headers of its response, for conditional requests. ``truncated`` is
    that of the verdict. ``record`` is the number of its line or record in its file; comparisons
    ignore it. ``content`` and ``ignore`` are CSS selectors, and win over options and policies.
    ``noindex`` is whether its ``X-Robots-Tag`` says so.
    """

    url: str
    html: bytes | str
    charset: str | None = None
    fetched_at: datetime | None = None
    record: int = field(default=1, compare=False)
    etag: str | None = None
    last_modified: str | None = None
    truncated: str | None = None
    content: str | None = None
    ignore: str | None = None
    noindex: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.html, bytearray | memoryview):
            object.__setattr__(self, "html", bytes(self.html))


@dataclass(frozen=True, slots=True)
class Pause(PageFailure):
    """A source yields this while no page arrives, so that earlier pages are decided meanwhile.

    It gets no verdict.
    """

    url: str = ""
    reason: str = "crashed"
    detail: str = "no page comes at the moment"


PageItem = SourcePage | PageStatus | PageFailure
"""What a reader of files yields."""

Item = PageRecord | PageStatus | PageFailure
"""What a store decides about: the items of a source after its pages were read."""

Input = SourcePage | Item
"""What a store takes; the collection's scheme made the simhash of a record."""


@dataclass(frozen=True, slots=True)
class JsonRecord:
    """The base of records that have a form in JSON."""

    _omitted: ClassVar[tuple[str, ...]] = ()
    _computed: ClassVar[tuple[str, ...]] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON: simhashes as hex, times in ISO 8601, ages in seconds."""
        names = [each.name for each in fields(self) if each.name not in self._omitted]
        return json_values(self, *names, *self._computed)


@dataclass(frozen=True, slots=True)
class Verdict(JsonRecord):
    """The store's decision about one page.

    ``duplicate_of`` is the URL of the nearest known page of a ``duplicate`` (0 to 3 bits) or a
    ``near`` page, ``distance`` bits away. The ``distance`` of an ``updated`` page is the number of
    bits that changed. ``detail`` says why a page is ``too_short`` or ``failed``, or of a stored
    one, that it was fetched before the version that it follows. docs/ingest.md lists the kinds.

    ``reason`` is a stable code: ``first_seen``, or ``address_known`` if a page at the same
    :func:`~pgsimhash.pages.urls.page_address` is known (an ignored parameter matters);
    ``unchanged``, or ``not_modified`` by an answer 304 or a ``revisit`` record; ``gone``;
    ``changed``, ``same_text`` (only the boilerplate differs) or ``selectors_changed`` since the
    known version; ``same_bytes``, ``same_simhash`` or ``within_distance`` of the original;
    ``marked_same`` or ``canonical_link``, at any distance; ``policy`` (fewer words than
    ``min_tokens``); else one of ``PageError.reasons``.

    ``keep`` says whether the page is worth keeping: it is ``new``, ``updated`` with another text,
    one of its first ``max_copies`` (see :class:`pgsimhash.pages.policies.PolicySettings`), or a
    change that nobody kept, of which a mark or a canonical link names the original. ``truncated``
    says why an archive has only the begin of the page, such as ``length``. ``content_missing`` says
    that the page was read whole, because ``content`` selects nothing.

    ``page_id`` is the number of the version in the table ``pages``, within the collection; None
    without a row. ``original_page_id`` is that of the original (of an ``unchanged`` page, that of
    the known version); None without one, or if it is in another collection. Of a page in a file,
    ``source`` is the path as given, ``record`` the number of its line or record, ``fetched_at``
    when it was fetched. ``title`` and ``markdown`` are those of the page, the latter if the
    collection keeps it or the call asked for it. Comparisons of verdicts ignore these.
    """

    _omitted = ("html_bytes", "title", "markdown")

    url: str
    kind: VerdictKind
    reason: str
    simhash: int | None = None
    distance: int | None = None
    duplicate_of: str | None = None
    detail: str | None = None
    html_bytes: int | None = None
    truncated: str | None = None
    content_missing: bool = False
    keep: bool = False
    page_id: int | None = field(default=None, compare=False)
    original_page_id: int | None = field(default=None, compare=False)
    source: str | None = field(default=None, compare=False)
    record: int | None = field(default=None, compare=False)
    fetched_at: datetime | None = field(default=None, compare=False)
    title: str | None = field(default=None, compare=False)
    markdown: str | None = field(default=None, compare=False, repr=False)


CAPTURE: Final = ("source", "record", "fetched_at")
"""The fields of a verdict that only ``Store.ingest_files`` knows."""


class Deletion(NamedTuple):
    """The number of deleted versions of pages, and the URLs that the deletion changed.

    ``gone`` are the URLs without a version left; ``reverted`` are those whose current version is
    now an earlier one. ``promoted`` are copies of deleted originals that are originals now.
    """

    deleted: int
    gone: list[str]
    reverted: list[str]
    promoted: list[str]

    def as_json(self, *, urls: bool = False) -> dict[str, Any]:
        """Return the number, and with ``urls`` the lists, as JSON values."""
        return self._asdict() if urls else {"deleted": self.deleted}


@dataclass(frozen=True, slots=True)
class Match(JsonRecord):
    """A known simhash within the requested distance, with the first page that had it."""

    simhash: int
    distance: int
    url: str
    title: str | None


@dataclass(frozen=True, slots=True)
class NearPage(Match):
    """A page whose current version, fetched at ``fetched_at``, is within the requested distance.

    ``page_id`` is the number of that version, ``gone_at`` is that of :class:`StoredPage`.
    """

    fetched_at: datetime
    page_id: int
    gone_at: datetime | None


class Matches(NamedTuple):
    """The matches of many queries, one entry each: shape (n,).

    ``queries`` holds the index of the query (int64), ``simhashes`` the known simhash (uint64),
    ``distances`` the differing bits (uint8).
    """

    queries: NDArray[np.int64]
    simhashes: NDArray[np.uint64]
    distances: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class StoredPage(PageRecord):
    """The current version of a page in the store.

    ``duplicate_of`` is the URL of its original, ``distance`` bits away. ``seen_at`` is when this
    version was last seen, ``run_id`` the run that added it. ``gone_at`` is when the URL was last
    found gone, unless a page was seen there since. ``covered`` says whether its text was worth
    keeping, at any URL. ``unseen`` is not stored, ``markdown`` only if the collection keeps it.
    """

    fetched_at: datetime
    duplicate_of: str | None = field(kw_only=True)
    distance: int | None = field(kw_only=True)
    seen_at: datetime = field(kw_only=True)
    gone_at: datetime | None = field(kw_only=True)
    run_id: int | None = field(kw_only=True)
    covered: bool = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class CollectionStatus(JsonRecord):
    """The figures of one collection.

    ``pages`` counts versions, ``urls`` distinct URLs. ``duplicates`` are the versions that
    duplicated a known page when they were added, ``duplicate_bytes`` the size of their HTML. With
    ``estimated``, which needs more than 100,000 pages, these counts come from the planner's
    statistics and 10,000 pages.

    ``schema_bytes`` is the size of all tables of the schema on disk, with their indexes.
    Collections share the tables, so it is the same for all of them.

    ``last_write`` is the latest time at which a page was fetched or seen, or a run wrote a batch;
    ``last_write_age`` is how long ago that is by the server's clock. Both are None without any;
    comparisons ignore the age. ``content_missing`` and ``cut_short`` are those of the last run.
    """

    _computed = ("duplicate_percent",)

    name: str
    scheme: str
    layout: str
    default_distance: int
    normalize_urls: bool
    pages: int
    urls: int
    duplicates: int
    duplicate_bytes: int
    simhashes: int
    estimated: bool
    schema_bytes: int
    last_write: datetime | None
    last_write_age: timedelta | None = field(compare=False)
    content_missing: int
    cut_short: int

    @property
    def duplicate_percent(self) -> float | None:
        """The share of duplicates among the versions, in per cent; None without any."""
        return round(100 * self.duplicates / self.pages, 1) if self.pages else None


@dataclass(frozen=True, slots=True)
class RunRecord(JsonRecord):
    """The numbers of pages of one run, by verdict.

    ``finished_at`` is the time of its last batch so far; ``ended_at`` is None if it was not ended,
    as of a killed job. ``pages`` is the sum of the new, duplicate, updated, unchanged and gone
    pages. ``content_missing`` of them were read whole, because ``content`` selected nothing;
    ``cut_short`` more were not stored, because selectors left too few words.
    """

    _computed = ("state",)

    run_id: int
    label: str
    started_at: datetime
    finished_at: datetime
    ended_at: datetime | None
    pages: int
    new: int
    duplicates: int
    updated: int
    unchanged: int
    gone: int
    content_missing: int
    cut_short: int

    @property
    def state(self) -> str:
        """Whether the run ended; otherwise also when its last batch was written."""
        last_batch = self.finished_at.isoformat(timespec="seconds")
        return "ended" if self.ended_at else f"unfinished, last batch at {last_batch}"


@dataclass(frozen=True, slots=True)
class Mark(JsonRecord):
    """A person's mark on the pages at two URLs, which overrides simhashes.

    It applies to all past and future versions of the pages. ``same`` is a must-link: a page is the
    duplicate of a known page that it is the same as, at any distance. Otherwise it is a
    cannot-link: the pages are compared neither with each other nor with their duplicates. Setting
    or removing a mark decides the two pages again.
    """

    a: str
    b: str
    same: bool
    marked_at: datetime


@dataclass(frozen=True, slots=True)
class Violation(JsonRecord):
    """A row that contradicts the others, or an object that runs code of another role.

    ``reason`` is a code; ``docs/maintain.md`` lists them. A row has the ``collection`` and its
    values; ``repair`` says how a repair changes it, if it does. An ``object`` of the schema is
    named together with the other role.
    """

    collection: str | None
    reason: str
    page_id: int | None = None
    url: str | None = None
    simhash: int | None = None
    repair: str | None = None
    repaired: bool = False
    object: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One batch or one lookup of a store.

    Attributes:
        name: ``ingest`` for a stored batch, ``decide`` for one that was only decided, else the name
            of the lookup method, such as ``find``.
        collection: the name of the collection.
        run_id: the run of a stored batch.
        seconds: the duration, including retries and waiting for other writers.
        count: the number of pages of the batch, or of URLs or simhashes that were looked up.
        results: for a batch, the number of pages by verdict; for a lookup, the number of pages or
            simhashes as ``found``: of ``should_fetch`` and ``request_headers``, those that need no
            fetch.
        error: the ``reason`` of the error that ended it, or the name of its class; else None.
    """

    name: str
    collection: str
    run_id: int | None
    seconds: float
    count: int
    results: Mapping[str, int]
    error: str | None = None


OnEvent = Callable[[Event], object]
"""A function that receives each event, in the calling thread, so it must be fast."""


def json_values(record: object, *names: str) -> dict[str, Any]:
    """Return attributes as JSON values: simhashes as hex digits, times in ISO 8601 or seconds."""
    values = {name: getattr(record, name) for name in names}
    for name, value in values.items():
        if name.endswith("simhash") and value is not None:
            values[name] = format_simhash(value)
        elif isinstance(value, datetime):
            values[name] = value.isoformat()
        elif isinstance(value, timedelta):
            values[name] = round(value.total_seconds(), 3)
    return values
