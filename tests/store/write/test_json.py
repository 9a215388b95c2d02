"""Batches travel as JSON: each value arrives unchanged, whatever the session's settings."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash import Store, connect
from pgsimhash.hashing.bits import to_bigint
from pgsimhash.hashing.signature import to_halves
from pgsimhash.pages.policies import NUMBER_MAX
from pgsimhash.pages.records import PageRecord
from tests.database import database_examples

A = "https://a.example/"
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
    tokens=NUMBER_MAX, html_digest=bytes(range(240, 256)), text_digest=TOP,
)  # fmt: skip
FIELDS = [each.name for each in fields(PageRecord) if each.name != "unseen"]
SETTINGS = [
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
        "tokens, encode(html_digest, 'hex'), text_digest FROM pgsimhash.pages WHERE url = %s",
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
        None if record.html_digest is None else record.html_digest.hex(), big[1],
    )  # fmt: skip


def values(record: PageRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in FIELDS}


def test_every_field_has_a_value_here() -> None:
    assert None not in values(FULL).values()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
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
        assert "failed" not in {verdict.verdict for verdict in verdicts}
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
    store.delete(A)
    record = replace(FULL, title=title, language=language, canonical_url=canonical, markdown=None)
    (verdict,) = store.ingest_many([record])
    assert verdict.verdict == "new"
    assert stored(connection, A) == as_row(record)
    connection.rollback()


def test_a_thousand_records_and_long_texts(dsn: str) -> None:
    with connect(dsn, keep_markdown=True) as store, psycopg.connect(dsn) as connection:
        long = 'a "long" text\\\n\U0001f600' * 600_000
        verdicts = list(store.ingest_many([replace(FULL, markdown=long)]))
        assert [verdict.verdict for verdict in verdicts] == ["new"]
        assert stored(connection, A)[11] == long
        pages = [(f"{A}{n}", n * 0x9E37_79B9_7F4A_7C15 % 2**64) for n in range(1_000)]
        assert len(list(store.add_many(pages, distance=0))) == 1_000
        rows = connection.execute("SELECT url, simhash FROM pgsimhash.pages WHERE url <> %s", [A])
        assert set(rows) == {(url, to_bigint(simhash)) for url, simhash in pages}


def test_the_last_times_arrive_unchanged(dsn: str) -> None:
    """The package refuses times in the future; the table does not."""
    with psycopg.connect(dsn) as connection:
        connect(connection)
        connection.execute("SET DateStyle = 'SQL, DMY'; SET TimeZone = 'America/St_Johns'")
        connection.execute(
            "SELECT pgsimhash._add_batch('default', 1, %s::json, '{}', true)",
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
