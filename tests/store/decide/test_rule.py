"""Which page is the original: the rule as plain Python, and the store compared with it.

:func:`expected` is the rule, written to be read. It looks at all pages, one after the other. The
tests build small random collections and compare the store's decisions, rows and counters with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from psycopg.rows import namedtuple_row

from pgsimhash import PgsimhashError, connect
from pgsimhash.hashing.bits import from_bigint, hamming_distance, to_bigint
from pgsimhash.hashing.signature import verified
from pgsimhash.pages.policies import MatchOptions
from pgsimhash.pages.records import PageRecord, Verdict
from pgsimhash.pages.urls import host_of, same_site
from tests.database import database_examples, some_session_waits

OWN, OTHER = "own", "other"
NOW = datetime.now(UTC)
DEFAULTS: dict[str, Any] = {
    "distance": 8, "verify": True, "scope": "collection", "window_size": None, "max_age": None,
    "canonical_link": False, "max_copies": 1,
}  # fmt: skip


class Page(NamedTuple):
    """A stored version; versions are in order of arrival."""

    collection: str
    record: PageRecord
    original: Page | None = None
    distance: int | None = None
    covered: bool = True

    @property
    def text(self) -> int:
        return text_of(self.record)

    @property
    def url(self) -> str:
        return self.record.url

    @property
    def fetched_at(self) -> datetime:
        return self.record.fetched_at or NOW


@dataclass
class World:
    """The stored rows; ``different`` and ``same`` are the marks of OWN."""

    pages: list[Page] = field(default_factory=list)
    marks: dict[frozenset[str], bool] = field(default_factory=dict)

    def versions(self, collection: str, url: str) -> list[Page]:
        return [page for page in self.pages if (page.collection, page.url) == (collection, url)]

    def marked(self, collection: str, url: str, *, same: bool) -> set[str]:
        pairs = [pair for pair, value in self.marks.items() if value == same and url in pair]
        return {other for pair in pairs for other in pair - {url} if collection == OWN}


class Answer(NamedTuple):
    """The decision about a page; ``row`` is the stored version, if any."""

    kind: str
    reason: str
    distance: int | None
    duplicate_of: str | None
    keep: bool
    row: Page | None


def expected(
    world: World, collection: str, record: PageRecord, wanted: SimpleNamespace, known: int
) -> Answer:
    """Decide about a page; the first ``known`` pages of the world precede its batch."""
    versions = world.versions(collection, record.url)
    present = versions[-1] if versions else None

    # Apparently the present version again: nothing is stored.
    if present is not None and record.simhash == present.record.simhash:
        digests = {record.text_digest, present.record.text_digest}
        if None in digests or len(digests) == 1:
            return Answer("unchanged", "unchanged", 0, None, keep=False, row=None)

    # The original is the nearest eligible page; among equals the first to arrive. Of a change that
    # must not be lost, it is the first to arrive with its text.
    changed = is_change_of_safe_text(world, collection, record, wanted)
    matches = [
        (hamming_distance(record.simhash, page.record.simhash), place, page)
        for place, page in enumerate(world.pages)
        if counts(world, collection, record, wanted, known, place)
    ]
    nearest = next(iter(matches if changed else sorted(matches)), (None, None, None))
    bits, _, original = nearest
    reason = "within_distance" if bits else "same_simhash"
    if bits == 0 and original is not None and record.html_digest is not None:
        same_bytes = record.html_digest == original.record.html_digest
        reason = "same_bytes" if same_bytes else "same_simhash"

    eligible = len(matches)

    # A mark, or else the page's canonical link, names the original at any distance.
    named = named_original(world, collection, record, wanted)
    if named is not None:
        reason, original = named
        bits = hamming_distance(record.simhash, original.record.simhash)
        # It takes nothing away from such a change.
        eligible = eligible if changed else max(eligible, 1)

    # Read by other selectors: if its bytes are those of the version, its text was there before.
    by_others, same_bytes = is_reread(present, record)
    is_safe = text_of(record) in safe_texts(world, collection, wanted) or (
        same_bytes and present is not None and present.text in safe_texts(world, collection, wanted)
    )
    if bits is None and present is None:
        row = Page(collection, record)
        return Answer("new", "first_seen", None, None, keep=True, row=row)
    if bits is None:
        assert present is not None
        known_text = present.record.text_digest
        same_text = known_text is not None and known_text == record.text_digest
        moved = hamming_distance(record.simhash, present.record.simhash)
        reason = "same_text" if same_text else "changed"
        keep = not (same_text or same_bytes)
        row = Page(collection, record, covered=is_safe or keep)
        reason = "selectors_changed" if by_others else reason
        return Answer("updated", reason, moved, None, keep=keep, row=row)
    inside = original if original is not None and original.collection == collection else None
    keep = eligible < wanted.max_copies and not same_bytes
    return Answer(
        "duplicate" if bits <= 3 else "near",
        reason,
        bits,
        None if original is None else original.url,
        keep=keep,
        row=Page(collection, record, inside, bits, covered=is_safe or keep),
    )


def is_reread(present: Page | None, record: PageRecord) -> tuple[bool, bool]:
    """Whether the version before was read by other selectors, and whether its bytes are equal."""
    if present is None or None in (present.record.html_digest, record.html_digest):
        return False, False
    by_others = present.record.selectors != record.selectors
    return by_others, by_others and present.record.html_digest == record.html_digest


def text_of(record: PageRecord) -> int:
    return record.simhash if record.text_digest is None else record.text_digest


def safe_texts(world: World, collection: str, wanted: SimpleNamespace) -> set[int]:
    """The texts that a covered version has: they were kept, under this URL or another one."""
    compared = {collection} if wanted.scope != "global" else {OWN, OTHER}
    return {page.text for page in world.pages if page.covered and page.collection in compared}


def is_change_of_safe_text(
    world: World, collection: str, record: PageRecord, wanted: SimpleNamespace
) -> bool:
    """Whether the text before is safe and this one differs: then it is kept unless it is safe."""
    before = {page.text for page in world.versions(collection, record.url)[-1:]}
    return before != {text_of(record)} and bool(before & safe_texts(world, collection, wanted))


def counts(
    world: World,
    collection: str,
    record: PageRecord,
    wanted: SimpleNamespace,
    known: int,
    place: int,
) -> bool:
    """Return whether the page at this index of the world is an eligible original of ``record``."""
    page = world.pages[place]
    bits = hamming_distance(record.simhash, page.record.simhash)
    if bits > wanted.distance:
        return False
    # 1. It is in the compared collections,
    if page.collection != collection and wanted.scope != "global":
        return False
    # 2. on the page's host, if the scope is the host and the URL has one,
    host = host_of(record.url) if wanted.scope == "host" else None
    if host is not None and host_of(page.url) != host:
        return False
    # 3. not fetched longer before the page than the maximum age,
    fetched_at = record.fetched_at or NOW
    if wanted.max_age is not None and page.fetched_at < fetched_at - wanted.max_age:
        return False
    # 4. in the window, if it precedes the batch,
    if wanted.window_size is not None and place < window(world, collection, wanted, known, host):
        return False
    # 5. neither marked as different nor a duplicate of a page of its collection that is; pages at
    # the page's own URL are eligible anyway,
    apart = world.marked(collection, record.url, same=False)
    own_original = None if page.original is None else page.original.url
    if page.url != record.url and {page.url, own_original} & apart:
        return False
    # 6. not the page itself, if its own collection has it: neither at its URL, nor a copy that is
    # later than its first version and equally near to the previous version,
    versions = world.versions(collection, record.url)
    if versions:
        before = versions[-1].record.simhash
        is_copy = page.distance is not None
        copied = is_copy and hamming_distance(page.record.simhash, before) <= wanted.distance
        first = next(at for at, one in enumerate(world.pages) if one is versions[0])
        if page.url == record.url:
            return False
        # If the text before is safe and this one differs, only a covered version with this text is,
        if is_change_of_safe_text(world, collection, record, wanted):
            if not (page.covered and page.text == text_of(record)):
                return False
        elif place > first and copied:
            return False
    # 7. and has a signature like the page's, if verification is on and both have one.
    return not wanted.verify or verified(bits, record.signature, page.record.signature)


def window(
    world: World, collection: str, wanted: SimpleNamespace, known: int, host: str | None
) -> int:
    """The index of the oldest original in the window; copies do not count."""
    originals = [
        place
        for place, page in enumerate(world.pages[:known])
        if page.distance is None
        and (wanted.scope == "global" or page.collection == collection)
        and (host is None or host_of(page.url) == host)
    ]
    assert wanted.window_size is not None
    return originals[-wanted.window_size] if len(originals) >= wanted.window_size else 0


def named_original(
    world: World, collection: str, record: PageRecord, wanted: SimpleNamespace
) -> tuple[str, Page] | None:
    """The page marked as same, or the canonical page, if it was stored before the record's URL."""
    own = world.versions(collection, record.url)

    def earlier(url: str) -> bool:
        versions = world.versions(collection, url)
        places = [world.pages.index(found[0]) for found in (versions, own) if found]
        return bool(versions) and (not own or places[0] < places[1])

    same = [url for url in world.marked(collection, record.url, same=True) if earlier(url)]
    if same:
        first = min(same, key=lambda url: world.pages.index(world.versions(collection, url)[0]))
        return "marked_same", world.versions(collection, first)[-1]
    url = record.canonical_url
    if not wanted.canonical_link or url is None or not same_site(url, record.url):
        return None
    if url in world.marked(collection, record.url, same=False) or not earlier(url):
        return None
    return "canonical_link", world.versions(collection, url)[-1]


# Small worlds with few URLs and bits, so that many pages match.

URLS = (
    "https://a.example/1",
    "https://a.example/2",
    "https://www.a.example/1",
    "https://b.example/1",
    "file:/c/1",
)
SIMHASHES = [0, 1, 3, 0xF, 0xFF, 0xFFF, 0xFFFF, 0xFF00, 1 << 63, (1 << 63) - 1]
AGES = [timedelta(days=days) for days in (0.25, 1.25, 2.5)]


def records(
    urls: st.SearchStrategy[str], simhashes: st.SearchStrategy[int]
) -> st.SearchStrategy[PageRecord]:
    return st.builds(
        PageRecord,
        url=urls,
        simhash=simhashes,
        fetched_at=st.none() | st.sampled_from([NOW - age for age in AGES]),
        canonical_url=st.none() | urls,
        # Equal simhashes with different signatures are no copies.
        signature=st.sampled_from([None, 0, (1 << 25) - 1, (1 << 128) - 1]),
        text_digest=st.none() | st.integers(1, 2),
        html_digest=st.sampled_from([None, b"1" * 16, b"2" * 16]),
        selectors=st.none() | st.integers(1, 2),
    )


RECORDS = records(st.sampled_from(URLS), st.sampled_from(SIMHASHES))
PLAIN_RECORDS = RECORDS.map(lambda one: PageRecord(one.url, one.simhash, one.fetched_at))
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "distance": st.sampled_from([0, 3, 8, 12]),
    "verify": st.booleans(),
    "scope": st.sampled_from(["host", "collection", "global"]),
    "window_size": st.integers(1, 2),
    "max_age": st.sampled_from([timedelta(days=1), timedelta(days=2)]),
    "canonical_link": st.booleans(),
    "max_copies": st.integers(1, 3),
}


def some_of(options: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=options)


POLICIES = st.dictionaries(
    st.sampled_from(["*", "a.example", "b.example"]), some_of(OPTIONS).filter(bool), max_size=2
)


@dataclass(frozen=True)
class Batch:
    """Pages of one batch, and ``meanwhile``, which another writer stores before them.

    ``meanwhile`` arrives between lookup and lock.
    """

    collection: str
    records: list[PageRecord]
    options: dict[str, Any]
    together: bool
    meanwhile: list[PageRecord]
    by_sql: bool = False


@dataclass(frozen=True)
class Mark:
    """A mark of two pages of OWN, if both are known; None removes it."""

    a: str
    b: str
    same: bool | None


COLLECTIONS = st.sampled_from([OWN, OWN, OTHER])
BATCHES = st.builds(
    Batch,
    collection=COLLECTIONS,
    records=st.lists(RECORDS, min_size=1, max_size=6),
    options=some_of(OPTIONS),
    together=st.booleans(),
    meanwhile=st.lists(RECORDS, max_size=3),
)
BY_SQL = st.builds(
    Batch,
    collection=COLLECTIONS,
    records=st.lists(PLAIN_RECORDS, min_size=1, max_size=6),
    options=st.just({}),
    together=st.just(True),
    meanwhile=st.just([]),
    by_sql=st.just(True),
)
MARKS = st.builds(
    Mark,
    a=st.sampled_from(URLS[:3]),
    b=st.sampled_from(URLS[2:]),
    same=st.sampled_from([True, False, None]),
).filter(lambda mark: mark.a != mark.b)
STEPS = st.lists(BATCHES | BY_SQL | MARKS, min_size=1, max_size=7)


def settings_of(
    url: str, collection: str, options: dict[str, Any], policies: dict[str, dict[str, Any]]
) -> SimpleNamespace:
    """The caller's option, else the policy of the host or of all hosts, else the default."""
    fitting = dict(DEFAULTS)
    host = host_of(url) or ""
    # "*" comes first, and at most one of the others matches.
    for pattern in sorted(policies) if collection == OWN else ():
        if pattern == "*" or host == pattern or host.endswith(f".{pattern}"):
            fitting |= policies[pattern]
    return SimpleNamespace(**{**fitting, **options})


class Database:
    """The same world in PostgreSQL: a store for each collection, and another writer."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.stores = {name: connect(dsn, collection=name, create=True) for name in (OWN, OTHER)}
        self.plain = psycopg.connect(dsn, autocommit=True)
        self.late = psycopg.connect(dsn)
        self.others = {
            name: connect(self.late, collection=name, create=True) for name in (OWN, OTHER)
        }
        self.late.commit()
        self.policies: dict[str, dict[str, Any]] = {}

    def close(self) -> None:
        for store in self.stores.values():
            store.close()
        self.late.close()
        self.plain.close()

    def begin(self, policies: dict[str, dict[str, Any]]) -> None:
        """Delete everything, and set policies for OWN."""
        self.plain.execute(
            "TRUNCATE pgsimhash.pages, pgsimhash.marks, pgsimhash.policies, "
            "pgsimhash.last_seen, pgsimhash.runs, pgsimhash.sightings"
        )
        self.policies = policies
        for pattern, options in policies.items():
            self.stores[OWN].set_policy(pattern, **options)

    def settings(self, url: str, batch: Batch) -> SimpleNamespace:
        return settings_of(url, batch.collection, batch.options, self.policies)

    def decide(self, batch: Batch, *, dry_run: bool = False) -> list[Verdict]:
        store = self.stores[batch.collection]
        options = cast("MatchOptions", batch.options)
        size = len(batch.records) if batch.together else 1
        return list(store._ingest.decide_each(batch.records, size, options, dry_run=dry_run))

    def write(self, batch: Batch) -> tuple[list[Verdict], list[Verdict]]:
        """Store a batch; return its verdicts, and those of the pages between lookup and lock."""
        if batch.by_sql:
            columns = zip(
                *((one.url, to_bigint(one.simhash), one.fetched_at) for one in batch.records),
                strict=True,
            )
            urls, simhashes, times = map(list, columns)
            rows = self.plain.cursor(row_factory=namedtuple_row).execute(
                "SELECT * FROM pgsimhash.add_pages(%s, %s, %s, collection => %s)",
                [urls, simhashes, times, batch.collection],
            )
            return cast("list[Verdict]", rows.fetchall()), []
        if not batch.meanwhile:
            return self.decide(batch), []
        other = self.others[batch.collection]
        first = list(other._ingest.decide_each(batch.meanwhile, 10, {}, batch_size=10))
        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(self.decide, batch)
            while not late.done() and not some_session_waits(self.plain):
                wait([late], timeout=0.002)
            self.late.commit()
            return late.result(), first

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows; lookups find each simhash of a collection by one of them."""
        assert not self.plain.execute(
            "SELECT FROM pgsimhash.pages GROUP BY collection_id, simhash "
            "HAVING count(*) FILTER (WHERE indexed) <> 1"
        ).fetchall()
        found = self.plain.execute(
            "SELECT c.name, p.url, p.simhash, o.url, p.distance, p.covered, p.selectors "
            "FROM pgsimhash.pages AS p "
            "JOIN pgsimhash.collections AS c USING (collection_id) "
            "LEFT JOIN pgsimhash.pages AS o "
            "ON o.collection_id = p.collection_id AND o.page_id = p.duplicate_of "
            "ORDER BY p.page_id"
        )
        return [(name, url, from_bigint(value), *rest) for name, url, value, *rest in found]


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    opened = Database(dsn)
    yield opened
    opened.close()


def take(
    world: World,
    collection: str,
    records: Sequence[PageRecord],
    wanted: Sequence[SimpleNamespace],
    *,
    together: bool = True,
) -> list[Answer]:
    """The expected results of consecutive pages; stored pages join the world."""
    known = len(world.pages)
    answers = []
    for record, settings_ in zip(records, wanted, strict=True):
        known = known if together else len(world.pages)
        answers.append(expected(world, collection, record, settings_, known))
        row = answers[-1].row
        if row is not None:
            world.pages.append(row)
            continue
        # The same text, read by other selectors.
        place = max(
            at for at, one in enumerate(world.pages)
            if (one.collection, one.url) == (collection, record.url)
        )  # fmt: skip
        page = world.pages[place]
        if is_reread(page, record)[0]:
            reread = replace(page.record, selectors=record.selectors)
            replace_page(world.pages, place, page._replace(record=reread))
    return answers


def told(verdicts: Sequence[Verdict]) -> list[tuple[Any, ...]]:
    return [(v.kind, v.reason, v.distance, v.duplicate_of, v.keep) for v in verdicts]


def rows_of(world: World) -> list[tuple[Any, ...]]:
    return [
        (
            page.collection,
            page.url,
            page.record.simhash,
            None if page.original is None else page.original.url,
            page.distance,
            page.covered,
            page.record.selectors,
        )
        for page in world.pages
    ]


def say(world: World, database: Database, mark: Mark) -> None:
    """Mark two pages, if both are known and no mark contradicts it; or remove the mark."""
    store, pair = database.stores[OWN], frozenset((mark.a, mark.b))
    if mark.same is None:
        if not store.unmark(mark.a, mark.b):
            return
        del world.marks[pair]
    else:
        try:
            store.mark(mark.a, mark.b, same=mark.same)
        except PgsimhashError:
            return
        world.marks[pair] = mark.same
    decide_again(world, mark.a, mark.b, mark.same, database.policies)


def decide_again(
    world: World, a: str, b: str, same: bool | None, policies: dict[str, dict[str, Any]]
) -> None:
    """Decide the versions of two URLs again whose original a new or removed mark can change."""
    other = {a: b, b: a}
    urls = [page.url if page.collection == OWN else "" for page in world.pages]
    later = max((url for url in other if url in urls), key=urls.index, default="")

    def concerns(url: str, page: Page) -> bool:
        original = page.original
        if same:
            return url == later
        if same is None:
            return original is None or original.url in other
        return original is not None and other[url] in {
            original.url,
            original.original.url if original.original else "",
        }

    pages = world.pages
    places = [at for at, page in enumerate(pages) if urls[at] in other and concerns(urls[at], page)]
    for place in places:
        page = pages[place]
        wanted = settings_of(page.url, OWN, {}, policies)
        until = replace(world, pages=pages[:place])
        row = expected(until, OWN, page.record, wanted, place).row
        if row is not None:
            replace_page(pages, place, page._replace(original=row.original, distance=row.distance))


def replace_page(pages: list[Page], place: int, page: Page) -> None:
    """Replace a version, and the originals of its copies."""
    old, pages[place] = pages[place], page
    for at, other in enumerate(pages):
        if other.original is old:
            replace_page(pages, at, other._replace(original=page))


FAR, FARTHER = 0xFFFF << 48, 0xFFFF << 32


def batch(collection: str, *pages: tuple[str, int], **options: Any) -> Batch:
    records = [PageRecord(url, simhash, NOW) for url, simhash in pages]
    return Batch(collection, records, options, together=True, meanwhile=[])


APART = [
    batch(OTHER, (URLS[0], 0)),
    batch(OWN, (URLS[0], FAR), (URLS[3], FARTHER)),
    Mark(URLS[0], URLS[3], same=False),
    # The first page is a copy of a page of the other collection, then of the page marked here.
    batch(OWN, (URLS[1], 0), (URLS[3], 0), scope="global"),
    batch(OWN, (URLS[2], FAR), (URLS[3], FAR)),
]
READ_BY_OTHERS = [
    Batch(OWN, records, {}, together=True, meanwhile=[])
    for records in (
        [PageRecord(URLS[0], 0), PageRecord(URLS[1], 0, html_digest=b"1" * 16, selectors=1)],
        # Nothing of the second page is stored, so its text is not known to the third one.
        [
            PageRecord(URLS[1], 0, text_digest=1, html_digest=b"1" * 16),
            PageRecord(URLS[2], 0, text_digest=1),
        ],
    )
]
"""Histories that random ones rarely contain."""


@example(steps=APART, policies={})
@example(steps=READ_BY_OTHERS, policies={})
@database_examples(90)
@given(steps=STEPS, policies=POLICIES)
def test_the_store_decides_by_the_rule(
    database: Database, steps: list[Any], policies: dict[str, dict[str, Any]]
) -> None:
    world = World()
    database.begin(policies)
    for step in steps:
        if isinstance(step, Mark):
            say(world, database, step)
        else:
            wanted = [database.settings(record.url, step) for record in step.records]
            dry_world = replace(world, pages=list(world.pages))
            dry = take(dry_world, step.collection, step.records, wanted)
            assert told(database.decide(replace(step, together=True), dry_run=True)) == [
                answer[:5] for answer in dry
            ]
            meanwhile = step.meanwhile if step.together else []
            late = replace(step, records=meanwhile, options={})
            late_settings = [database.settings(record.url, late) for record in meanwhile]
            # It stores them one by one: in a caller's transaction, each page is a batch.
            late_answers = take(world, step.collection, meanwhile, late_settings)
            answers = take(world, step.collection, step.records, wanted, together=step.together)
            made, first = database.write(replace(step, meanwhile=meanwhile))
            assert told(first) == [answer[:5] for answer in late_answers]
            assert told(made) == [answer[:5] for answer in answers]
        assert database.rows() == rows_of(world)
