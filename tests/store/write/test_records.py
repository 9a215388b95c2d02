"""Records arrive unchanged, and fail alone if PostgreSQL cannot store them."""

import asyncio
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash import Store, Verdict, analysis, connect, connect_async
from pgsimhash.errors import PageError
from pgsimhash.hashing.bits import to_bigint
from pgsimhash.hashing.signature import to_halves
from pgsimhash.pages.policies import NUMBER_MAX
from pgsimhash.pages.records import BITS_64, COUNTS, UNSTORED, PageFailure, PageRecord
from pgsimhash.sources import SourcePage
from pgsimhash.store import batches
from tests.database import database_examples
from tests.store.content import page_at, transactions
from tests.store.pages import page, paragraph

A = "https://a.example/"
FAR = 0xFFFF_FFFF << 16
GOOD = PageRecord(A, 1, title="a", tokens=9, signature=5, html_digest=b"a", markdown="b")


class Silent:
    """A value that cannot be shown."""

    def __repr__(self) -> str:
        raise ValueError("no words")


WRONG: list[dict[str, Any]] = [
    {"url": A + "x" * 3000}, {"url": f"{A}\0"}, {"url": "https://\ud800/"}, {"url": None},
    {"simhash": 2**64}, {"simhash": "5"}, {"title": "a\0b"}, {"title": "\ud800"}, {"title": 5},
    {"canonical_url": f"{A}\0"}, {"language": "\ud800"}, {"markdown": "a\0b"},
    {"tokens": -1}, {"tokens": 1.5}, {"tokens": np.int64(5)}, {"text_digest": -1},
    {"signature": 2**128}, {"signature": "5"},
    *({name: 2**31} for name in COUNTS), *({name: 2**64} for name in BITS_64),
    {"html_digest": "a"}, {"fetched_at": datetime(2024, 1, 1)}, {"fetched_at": "2024-01-01"},
    {"fetched_at": pd.NaT}, {"noindex": pd.NA}, {"content_missing": None},
    {"url": Silent()}, {"simhash": Silent()}, {"html_digest": Silent()},
]  # fmt: skip


@pytest.fixture
def keeping(dsn: str) -> Iterator[Store]:
    """A store that keeps Markdown."""
    with connect(dsn, keep_markdown=True, retry_seconds=0) as store:
        yield store


def around(wrong: dict[str, Any]) -> list[PageRecord]:
    first, second = replace(GOOD, url=f"{A}1"), replace(GOOD, url=f"{A}2", simhash=FAR)
    return [first, replace(GOOD, **wrong), second]


def check(verdicts: list[Verdict]) -> None:
    assert len(verdicts) == 3 * len(WRONG)
    for failed in verdicts[1::3]:
        assert (failed.kind, failed.reason in PageError.reasons) == ("failed", True), failed
        assert failed.detail
        assert failed.detail.encode()
    others = {verdict.kind for verdict in (*verdicts[::3], *verdicts[2::3])}
    assert others <= {"new", "unchanged"}


def test_a_record_that_cannot_be_stored_fails_alone(keeping: Store, dsn: str) -> None:
    records = [record for wrong in WRONG for record in around(wrong)]

    async def use() -> list[Verdict]:
        async with await connect_async(dsn, retry_seconds=0) as store:
            return [verdict async for verdict in store.ingest_many(records)]

    check(list(keeping.ingest_many(records)))
    check(asyncio.run(use()))


def test_a_pair_that_cannot_be_stored_fails_alone(store: Store) -> None:
    pairs: list[Any] = [(A, 1), (f"{A}\0", 2), ("https://\ud800/", 3), (A + "x" * 3000, 4)]
    pairs += [(f"{A}{n}", simhash) for n, simhash in enumerate((-1, 2**64, 1.5, None))]
    *failed, last = list(store.add_pages([*pairs, (f"{A}last", FAR)]))[1:]
    assert {verdict.kind for verdict in failed} == {"failed"}
    reasons = [verdict.reason for verdict in failed]
    assert reasons == ["invalid_url"] * 3 + ["unreadable"] * 4
    assert last.kind == "new"


def test_a_page_with_any_odd_value_fails_alone(store: Store) -> None:
    good, released = page(paragraph(1)), memoryview(b"<p>")
    released.release()
    silent: Any = Silent()
    nothing: Any = pd.NaT
    odd: list[Any] = [
        (silent, good), (nothing, good), (f"{A}1", released), (f"{A}2", silent),
        *(SourcePage(f"{A}3", good, charset) for charset in ("hex", silent, nothing)),
        *(SourcePage(f"{A}4", good, None, time) for time in (nothing, silent)),
        SourcePage(silent, good), SourcePage(nothing, nothing),
        *(SourcePage(f"{A}5", good, noindex=noindex) for noindex in (nothing, silent)),
    ]  # fmt: skip
    verdicts = list(store.ingest_many([*odd, (f"{A}last", page(paragraph(2)))]))
    outcomes = {verdict.kind for verdict in verdicts[4:7]}
    assert outcomes <= {"failed", "new", "unchanged"}
    assert {verdict.kind for verdict in (*verdicts[:4], *verdicts[7:-1])} == {"failed"}
    assert all(each.detail and isinstance(each.url, str) for each in verdicts[:4])
    assert verdicts[-1].keep


def test_a_failure_with_any_odd_value_is_one_verdict_in_texts(store: Store) -> None:
    odd: list[Any] = [pd.NA, Silent(), [1], ValueError()]
    failures = [
        PageFailure(*values)
        for value in odd
        for values in ((value, "unreadable", "a"), (A, value, "a"), (A, "unreadable", value))
    ]
    *failed, last = list(store.ingest_many([*failures, (A, page(paragraph(1)))]))
    assert len(failed) == len(failures)
    for verdict in failed:
        assert verdict.kind == "failed"
        assert {type(text) for text in (verdict.url, verdict.reason, verdict.detail)} == {str}
    assert last.kind == "new"


def records(count: int, markdown: str) -> list[PageRecord]:
    return [PageRecord(f"{A}{n}", n << 40, markdown=markdown) for n in range(count)]


def test_a_batch_ends_at_its_bytes_and_a_larger_record_is_refused(
    keeping: Store, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 1000)
    given = records(12, "ä" * 200)
    given[5] = replace(given[5], markdown="ä" * 500)
    verdicts = list(keeping.ingest_many(given, distance=0))
    assert [verdict.reason for verdict in verdicts].count("too_large") == 1
    assert verdicts[5].reason == "too_large"
    # Three of 400 bytes reach the limit.
    assert transactions(dsn) == 4
    html = "<p>" + "".join(f"word{n} " for n in range(400))
    assert keeping.ingest(f"{A}large", html).reason == "too_large"


def test_concurrent_pages_end_a_batch_at_its_bytes(
    keeping: Store, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 1000)

    async def use() -> list[Verdict]:
        page = "<p>" + "".join(f"word{n} " for n in range(50))
        large = "<p>" + "".join(f"word{n} " for n in range(400))
        async with await connect_async(dsn) as store:
            calls = [store.ingest(f"{A}{n}", page) for n in range(12)]
            return await asyncio.gather(*calls, store.ingest(f"{A}large", large))

    *verdicts, refused = asyncio.run(use())
    assert "failed" not in {verdict.kind for verdict in verdicts}
    assert refused.reason == "too_large"
    assert transactions(dsn) >= 4


EAST = timezone(timedelta(hours=23))
MOMENT = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def pages(*times: Any) -> list[SourcePage]:
    return [
        SourcePage(f"https://a.example/{number}", page(paragraph(number)), fetched_at=time)
        for number, time in enumerate(times)
    ]


def test_an_invalid_time_fails_its_page_alone(store: Store) -> None:
    times = [
        MOMENT, "2024-05-06T07:08:09Z", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))),
        datetime(1, 1, 1, tzinfo=UTC), date(2024, 5, 6), datetime(2024, 5, 6, 7, 8, 9),
        datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=23))), MOMENT.astimezone(EAST),
        None,
    ]  # fmt: skip
    verdicts = list(store.ingest_many(pages(*times)))
    reasons = [verdict.reason for verdict in verdicts]
    assert reasons == ["first_seen", *["unreadable"] * 6, "first_seen", "first_seen"]
    assert all(verdict.detail for verdict in verdicts[1:7])
    assert page_at(store, "https://a.example/7").fetched_at == MOMENT
    assert store.decide("https://a.example/x", page(paragraph(7))).duplicate_of is not None
    store.rebuild(replace=True)
    (version,) = analysis.versions(store, "https://a.example/0")
    assert version.fetched_at == MOMENT


def test_an_age_may_reach_back_before_all_pages(store: Store) -> None:
    first, second = pages(MOMENT, datetime(1970, 1, 2, tzinfo=UTC))
    age = timedelta(days=739_000)
    verdicts = store.ingest_many([first, second], max_age=age)
    assert [verdict.kind for verdict in verdicts] == ["new", "new"]
    copy = SourcePage("https://a.example/copy", first.html, fetched_at=second.fetched_at)
    (verdict,) = store.ingest_many([copy], max_age=age)
    assert verdict.duplicate_of == first.url


# Batches travel as JSON: each value arrives unchanged, whatever the session's settings.

TOP = 2**64 - 1
WHEN = datetime(2024, 2, 3, 4, 5, 6, 789012, tzinfo=UTC)

TEXTS = [
    "", " ", "NULL", "null", "{}", "\"quoted\" and 'quoted'",
    "back\\slash, \\u0041, \\n, \\\\x00, E'\\x41'",
    "".join(map(chr, range(1, 32))) + "\x7f\x80\x9f\u2028\ufeff\ufffe\uffff",
    "größe 你好 \U0001f469\u200d\U0001f4bb \U0010ffff", "%s %(a)s %% $1 $$ {0}",
]  # fmt: skip
FULL = PageRecord(
    A, 1 << 63, WHEN, title="a title", canonical_url=f"{A}canonical", language="de",
    features=NUMBER_MAX, html_bytes=NUMBER_MAX, structure=TOP, signature=2**128 - 1, markdown="# a",
    tokens=NUMBER_MAX, html_digest=bytes(range(240, 256)), text_digest=TOP, etag='W/"1"',
    last_modified="Sat, 03 Feb 2024 04:05:06 GMT", selectors=NUMBER_MAX,
    noindex=True, alternates=f"{A}de {A}fr",
)  # fmt: skip
FIELDS = [each.name for each in fields(PageRecord) if each.name not in UNSTORED]
SESSIONS = [
    {},
    {"DateStyle": "SQL, DMY", "TimeZone": "Asia/Kathmandu", "IntervalStyle": "sql_standard"},
    {"DateStyle": "German", "TimeZone": "<+09:30>-9:30"},
    {"bytea_output": "escape", "extra_float_digits": "-15"},
    {"client_encoding": "UTF8", "transform_null_equals": "on"},
]


def stored(connection: psycopg.Connection, url: str) -> tuple[Any, ...]:
    (row,) = connection.execute(
        "SELECT url, simhash, extract(epoch FROM fetched_at)::text, title, canonical_url, "
        "language, features, html_bytes, structure, signature_high, signature_low, markdown, "
        "tokens, encode(html_digest, 'hex'), text_digest, etag, last_modified, "
        "selectors, noindex, alternates FROM pgsimhash.pages WHERE url = %s",
        [url],
    ).fetchall()
    return tuple(row)


def as_row(record: PageRecord) -> tuple[Any, ...]:
    moment = record.fetched_at
    assert moment is not None
    micros = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    big = [None if n is None else to_bigint(n) for n in (record.structure, record.text_digest)]
    return (
        record.url, to_bigint(record.simhash), f"{micros // 10**6}.{micros % 10**6:06}",
        record.title, record.canonical_url, record.language, record.features, record.html_bytes,
        big[0], *to_halves(record.signature), record.markdown, record.tokens,
        None if record.html_digest is None else record.html_digest.hex(), big[1], record.etag,
        record.last_modified, record.selectors, record.noindex, record.alternates,
    )  # fmt: skip


def values(record: PageRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in FIELDS}


def test_every_field_has_a_value_here() -> None:
    assert None not in values(FULL).values()


@pytest.mark.parametrize("settings", SESSIONS, ids=str)
def test_every_value_arrives_unchanged(dsn: str, settings: dict[str, str]) -> None:
    records = [FULL]
    numbers = (0, 1, 2**63 - 1, 2**63, 2**63 + 1, TOP - 1, TOP)
    records += [
        replace(FULL, simhash=n, structure=n, text_digest=n, signature=n << 64 | n) for n in numbers
    ]
    records += [replace(FULL, title=text, language=text, markdown=text) for text in TEXTS]
    records += [replace(FULL, html_digest=digest) for digest in (b"", b"\\x", bytes(16), None)]
    first, leap = (1970, 1, 1, 0, 0, 0), (2000, 2, 29, 23, 59, 59)
    moments = [datetime(*day, us, tzinfo=UTC) for day in (first, leap) for us in (0, 1, 999999)]
    records += [replace(FULL, fetched_at=moment) for moment in moments]
    records = [replace(record, url=f"{A}{n}") for n, record in enumerate(records)]
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", [name, value])
        store = connect(connection, keep_markdown=True)
        verdicts = list(store.ingest_many(records, max_age=timedelta(days=1)))
        assert "failed" not in {verdict.kind for verdict in verdicts}
        for record in records:
            assert stored(connection, record.url) == as_row(record)
            page = store.get(record.url)
            assert {name: getattr(page, name) for name in FIELDS} == values(record)


def without_nul(text: str) -> str:
    return text.replace("\0", "")


@database_examples(50)
@given(texts=st.lists(st.text(max_size=40).map(without_nul), min_size=3, max_size=3))
def test_any_text_arrives_unchanged(
    store: Store, connection: psycopg.Connection, texts: list[str]
) -> None:
    title, language, canonical = texts
    store.delete_page(A)
    record = replace(FULL, title=title, language=language, canonical_url=canonical, markdown=None)
    (verdict,) = store.ingest_many([record])
    assert verdict.kind == "new"
    assert stored(connection, A) == as_row(record)
    connection.rollback()


def test_a_thousand_records_and_long_texts(dsn: str) -> None:
    with connect(dsn, keep_markdown=True) as store, psycopg.connect(dsn) as connection:
        long = 'a "long" text\\\n\U0001f600' * 600_000
        verdicts = list(store.ingest_many([replace(FULL, markdown=long)]))
        assert [verdict.kind for verdict in verdicts] == ["new"]
        assert stored(connection, A)[11] == long
        pages = [(f"{A}{n}", n * 0x9E37_79B9_7F4A_7C15 % 2**64) for n in range(1_000)]
        assert len(list(store.add_pages(pages, distance=0))) == 1_000
        rows = connection.execute("SELECT url, simhash FROM pgsimhash.pages WHERE url <> %s", [A])
        assert set(rows) == {(url, to_bigint(simhash)) for url, simhash in pages}


def test_the_last_times_arrive_unchanged(dsn: str) -> None:
    """The package refuses times in the future; the table does not."""
    with psycopg.connect(dsn) as connection:
        connect(connection)
        connection.execute("SET DateStyle = 'SQL, DMY'; SET TimeZone = 'America/St_Johns'")
        connection.execute(
            "SELECT pgsimhash._add_batch_1('default', 1, %s::json, '{}', false)",
            [
                '[{"number": 1, "url": "https://a.example/", "simhash": 1, '
                '"fetched_at": "9999-12-29T23:59:59.999999+00:00"}]'
            ],
        )
        moment = connection.execute(
            "SELECT fetched_at AT TIME ZONE 'UTC' = '9999-12-29 23:59:59.999999' "
            "FROM pgsimhash.pages"
        )
        assert moment.fetchone() == (True,)
