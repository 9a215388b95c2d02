"""A change of a page is never lost.

If the text at a URL is safe (kept here, or the same as a text that is kept elsewhere) and it
changes, then the new text is kept, unless this very text is safe elsewhere. The whole rule is in
:mod:`tests.store.decide.test_rule`; here only this sentence counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash import PgsimhashError, Store, Verdict, connect
from pgsimhash.hashing.bits import to_bigint
from pgsimhash.pages.policies import MatchOptions
from pgsimhash.pages.records import PageRecord
from tests.database import database_examples, run_sql
from tests.html.made_streams import Stream, kept_each_day
from tests.store.decide.test_rule import OPTIONS, OTHER, OWN, Database, some_of

PAGE, VARIANT, AMP = (f"https://a.example/{path}" for path in ("1", "1?sessionid=7", "amp/1"))
MIRROR, OTHER_HOST = "https://www.a.example/1", "https://b.example/1"
URLS = (PAGE, VARIANT, AMP, MIRROR, OTHER_HOST)
SIMHASHES = (0, 1, 3, 0xF, 0x1F, 0xFF, 0xF0F, 0xFFFF_0000_0000)
"""Those of eight texts: edits of a story that move few bits, and one that moves many."""

NOW = datetime.now(UTC)


def edition(url: str, text: int, **values: Any) -> PageRecord:
    return PageRecord(url, SIMHASHES[text], text_digest=text, **values)


def keeps(store: Store, *records: PageRecord, **options: Any) -> list[bool]:
    return [verdict.keep for verdict in store.ingest_many(records, batch_size=1, **options)]


def test_a_variant_that_arrives_before_its_page(store: Store) -> None:
    keeps(store, edition(PAGE, 0), edition(VARIANT, 0))
    first, second = store.ingest_many([edition(VARIANT, 1), edition(PAGE, 1)], batch_size=1)
    assert (first.kind, first.reason, first.keep) == ("updated", "changed", True)
    assert (second.kind, second.duplicate_of, second.keep) == ("duplicate", VARIANT, False)


def test_a_variant_that_is_not_fetched_again(store: Store) -> None:
    keeps(store, edition(VARIANT, 0), edition(PAGE, 0))
    assert keeps(store, edition(PAGE, 1), edition(PAGE, 2), edition(PAGE, 1)) == [True] * 3


def test_a_copy_of_versions_that_moved_far(store: Store) -> None:
    keeps(store, edition(PAGE, 0), edition(VARIANT, 0), edition(PAGE, 7), edition(VARIANT, 7))
    # Text 1 is as near to the copies of text 0 as before, but those are far from the present one.
    assert keeps(store, edition(VARIANT, 1), edition(PAGE, 1)) == [True, False]


@pytest.mark.parametrize("reason", ["canonical_link", "marked_same"])
def test_a_named_original_takes_no_text_away(store: Store, reason: str) -> None:
    store.set_policy("*", canonical_link=reason == "canonical_link")
    named = {"canonical_url": PAGE}
    keeps(store, edition(PAGE, 0), edition(VARIANT, 0, **named), edition(AMP, 0, **named))
    if reason == "marked_same":
        store.mark(PAGE, VARIANT, same=True)
        store.mark(PAGE, AMP, same=True)
    for text in (5, 7):
        records = [
            edition(VARIANT, text, **named),
            edition(AMP, text, **named),
            edition(PAGE, text),
        ]
        first, second, third = store.ingest_many(records)
        assert (first.kind, first.reason, first.keep) == ("near", reason, True)
        assert (second.reason, second.duplicate_of, second.keep) == (reason, PAGE, False)
        assert (third.duplicate_of, third.keep) == (VARIANT, False)


def test_a_url_that_is_new_when_the_page_changed(store: Store) -> None:
    assert keeps(store, edition(PAGE, 0), edition(VARIANT, 1), edition(PAGE, 1)) == [
        True, False, True,
    ]  # fmt: skip
    # Its first text is kept at the page by now.
    assert keeps(store, edition(VARIANT, 2), edition(VARIANT, 3)) == [True, True]


def test_max_copies_counts_pages_with_the_text(store: Store) -> None:
    records = [edition(url, text) for text in range(3) for url in URLS]
    told = keeps(store, *records, max_copies=2)
    assert told == [True, True, False, False, False] * 3


def test_what_nobody_kept_takes_no_text_away(store: Store) -> None:
    # A near-duplicate whose text nobody kept, and its own copies.
    keeps(store, edition(PAGE, 0), edition(VARIANT, 1), edition(AMP, 1), edition(MIRROR, 2))
    assert [store.get(url).covered for url in (PAGE, VARIANT, AMP)] == [True, False, False]  # type: ignore[union-attr]
    assert keeps(store, edition(PAGE, 1), edition(AMP, 3)) == [True, True]
    # The text of this URL is still kept nowhere, so all is by the simhash.
    assert keeps(store, edition(MIRROR, 4)) == [False]


def test_marks_deletions_and_rebuilds_leave_it_alone(store: Store, dsn: str) -> None:
    keeps(store, edition(PAGE, 0), edition(VARIANT, 0), edition(AMP, 1))
    store.mark(PAGE, AMP, same=False)
    store.unmark(PAGE, AMP)
    store.delete_page(PAGE)
    statement = "SELECT url, covered FROM pgsimhash.pages ORDER BY url"
    covered = [(VARIANT, True), (AMP, False)]
    assert run_sql(dsn, statement) == covered
    for distance in (0, 12):
        store.rebuild("old", replace=True, distance=distance)
        assert run_sql(dsn, statement) == covered
    # Kept, because the text before was.
    assert keeps(store, edition(VARIANT, 1)) == [True]


# Random histories.


class Row(NamedTuple):
    url: str
    text: int
    safe: bool


@dataclass
class Archive:
    """The stored versions of each collection, by their ids, and whether their text is safe."""

    rows: dict[tuple[str, int], Row] = field(default_factory=dict)

    def safe_rows(self, collections: Sequence[str], text: int) -> list[Row]:
        return [
            row
            for (collection, _), row in self.rows.items()
            if collection in collections and row.safe and row.text == text
        ]

    def check(
        self,
        collection: str,
        records: Sequence[PageRecord],
        verdicts: Sequence[Verdict],
        scope: str,
    ) -> None:
        compared = (OWN, OTHER) if scope == "global" else (collection,)
        for record, verdict in zip(records, verdicts, strict=True):
            if verdict.kind == "unchanged":
                continue
            digest = record.text_digest
            text = to_bigint(record.simhash) if digest is None else digest
            versions = [
                (page_id, row)
                for (name, page_id), row in self.rows.items()
                if name == collection and row.url == record.url
            ]
            safe = self.safe_rows(compared, text)
            if versions and not verdict.keep:
                before = max(versions)[1].text
                if before != text and self.safe_rows((collection,), before):
                    assert [row for row in safe if row.url != record.url], (record, verdict)
            assert verdict.page_id is not None
            row = Row(record.url, text, verdict.keep or bool(safe))
            self.rows[collection, verdict.page_id] = row


@dataclass(frozen=True)
class Fetch:
    """Pages that arrive in this order, by the package or by SQL."""

    collection: str
    records: list[PageRecord]
    batch_size: int
    options: dict[str, Any]
    by_sql: bool


@dataclass(frozen=True)
class Deletion:
    way: str
    url: str


RECORDS = st.builds(
    lambda url, text, moved, canonical, age: PageRecord(
        url,
        # Another surrounding of the same text.
        SIMHASHES[text] ^ moved,
        NOW - timedelta(days=age),
        canonical_url=canonical,
        text_digest=100 + text,
    ),
    url=st.sampled_from(URLS),
    text=st.integers(0, len(SIMHASHES) - 1),
    moved=st.sampled_from([0, 0, 0, 1 << 60, 0b11111 << 55]),
    canonical=st.sampled_from([None, None, PAGE, AMP]),
    age=st.integers(0, 3),
)
EDITS = st.builds(
    lambda order, text: [edition(url, text, fetched_at=NOW) for url in order],
    order=st.permutations(URLS),
    text=st.integers(0, len(SIMHASHES) - 1),
)
"""All variants of a page get one text."""

STEPS = st.lists(
    st.builds(
        Fetch,
        collection=st.sampled_from([OWN, OWN, OWN, OTHER]),
        records=EDITS | st.lists(RECORDS, min_size=1, max_size=6),
        batch_size=st.sampled_from([1, 2, 100]),
        options=some_of(OPTIONS),
        by_sql=st.sampled_from([False, False, False, True]),
    )
    | st.builds(Deletion, st.sampled_from(["url", "run", "age"]), st.sampled_from(URLS))
    | st.tuples(
        st.sampled_from(URLS), st.sampled_from(URLS), st.sampled_from([True, False, None])
    ).filter(lambda mark: mark[0] != mark[1]),
    min_size=4,
    max_size=14,
)
POLICIES = st.dictionaries(
    st.sampled_from(["*", "a.example", "b.example", "*/amp/*"]),
    some_of(OPTIONS).filter(bool),
    max_size=2,
)


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    opened = Database(dsn)
    yield opened
    opened.close()


@database_examples(100)
@given(steps=STEPS, policies=POLICIES)
def test_a_change_of_a_safe_text_is_kept_or_safe_elsewhere(
    database: Database, steps: list[Any], policies: dict[str, dict[str, Any]]
) -> None:
    database.begin({})
    store, archive = database.stores[OWN], Archive()
    for pattern, options in policies.items():
        store.set_policy(pattern, **options)
    for step in steps:
        if isinstance(step, Fetch):
            of_step = database.stores[step.collection]
            if step.by_sql:
                records = [PageRecord(one.url, one.simhash) for one in step.records]
                verdicts = of_step.add_pages((one.url, one.simhash) for one in records)
                scope = policies.get("*", {}).get("scope", "collection")
            else:
                records, given = step.records, cast("MatchOptions", step.options)
                verdicts = of_step.ingest_many(records, batch_size=step.batch_size, **given)
                scope = step.options.get("scope")
            # With a policy, what is kept in the other collection may be meant.
            scopes = {scope, *(each.get("scope") for each in policies.values())}
            archive.check(
                step.collection, records, list(verdicts), "global" if "global" in scopes else ""
            )
        elif isinstance(step, Deletion):
            if step.way == "url":
                store.delete_page(step.url)
            elif step.way == "age":
                store.expire(timedelta(days=2))
            elif runs := store.runs():
                store.undo_run(runs[0].run_id)
            left = database.plain.execute(
                "SELECT c.name, p.page_id FROM pgsimhash.pages AS p "
                "JOIN pgsimhash.collections AS c USING (collection_id)"
            ).fetchall()
            archive.rows = {key: archive.rows[key] for key in left}
        else:
            a, b, same = step
            try:
                if same is None:
                    store.unmark(a, b)
                else:
                    store.mark(a, b, same=same)
            except PgsimhashError:
                pass


# Whole pages.


@pytest.mark.long
@pytest.mark.parametrize(("kind", "most"), [
    ("edited", [1, 1, 1]), ("equal", [1, 0, 0]), ("a block of five", [1, 4, 4]),
])  # fmt: skip
def test_a_story_at_127_urls_is_kept_once_for_each_text(
    dsn: str, kind: str, most: list[int]
) -> None:
    for seed in range(2):
        with connect(dsn, collection=f"{seed}", create=True) as store:
            each = kept_each_day(store, Stream(seed).days(kind))
        assert each[0] == 1
        assert sum(each) <= 5
        assert all(kept <= limit for kept, limit in zip(each, most, strict=True)), each
