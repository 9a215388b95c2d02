"""Plain SQL: the tables and functions, and their agreement with Python."""

import random
import re
from itertools import product

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import sql

import pgsimhash
from pgsimhash import Store, connect, hamming_distance
from pgsimhash.hashing.bits import from_bigint, to_base32, to_bigint
from pgsimhash.hashing.signature import to_halves, verified
from pgsimhash.pages.urls import host_of
from pgsimhash.search.layout import DISTANCE_MAX
from tests.database import database_examples, explained, run_sql, with_setting
from tests.hashing.test_bits import NOT_BASE32
from tests.refusals import sqlstate

EDGES = [0, 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]


def sample(count: int) -> list[int]:
    """Edge values, single bits, and random values, each once."""
    rng = random.Random(20070508)
    singles = [1 << bit for bit in range(64)]
    return list(dict.fromkeys([*EDGES, *singles, *(rng.getrandbits(64) for _ in range(count))]))


def new_collection(connection: psycopg.Connection, name: str, schema: str = "pgsimhash") -> int:
    new = f"INSERT INTO {schema}.collections (name, scheme) VALUES (%s, 'test') RETURNING 1, *"
    ((_, number, *_),) = connection.execute(new.encode(), [name]).fetchall()
    return int(number)


def insert(
    connection: psycopg.Connection,
    collection_id: int,
    simhashes: list[int],
    schema: str = "pgsimhash",
) -> None:
    """Insert a page for each simhash, as an importer does."""
    connection.execute(
        f"INSERT INTO {schema}.pages (collection_id, url, simhash) "
        "SELECT %s, 'https://a.example/' || n, simhash "
        "FROM unnest(%s::bigint[]) WITH ORDINALITY AS s (simhash, n)".encode(),
        [collection_id, [to_bigint(simhash) for simhash in simhashes]],
    )


def test_bit_count_and_hamming_distance_agree_with_python(connection: psycopg.Connection) -> None:
    values = sample(2000)
    pairs = list(zip(values, values[1:] + values[:1], strict=True))
    rows = connection.execute(
        "SELECT pgsimhash.bit_count(a), pgsimhash.hamming_distance(a, b) "
        "FROM unnest(%s::bigint[], %s::bigint[]) AS p (a, b)",
        [[to_bigint(a) for a, _ in pairs], [to_bigint(b) for _, b in pairs]],
    ).fetchall()
    assert rows == [(a.bit_count(), hamming_distance(a, b)) for a, b in pairs]


def test_base32_is_that_of_python(connection: psycopg.Connection) -> None:
    values = sample(2000)
    written = [to_base32(value) for value in values]
    rows = connection.execute(
        "SELECT pgsimhash.to_base32(v), pgsimhash.from_base32(w), "
        "pgsimhash.from_base32(upper(w) || '===') "
        "FROM unnest(%s::bigint[], %s::text[]) AS p (v, w)",
        [list(map(to_bigint, values)), written],
    ).fetchall()
    assert rows == [
        (form, to_bigint(value), to_bigint(value))
        for value, form in zip(values, written, strict=True)
    ]
    assert connection.execute("SELECT pgsimhash.to_base32(NULL)").fetchone() == (None,)


REFUSED = {
    **{f"from_base32('{text}')": ("PS010", "13 digits of a-z and 2-7") for text in NOT_BASE32},
    "find(1, -1)": ("PS010", "from 0 to 12"),
    "find(1, 13)": ("PS010", "from 0 to 12"),
    "find(1, 3, 'typo')": ("PS001", 'collection "typo" does not exist'),
    "find(NULL::bigint, 3)": ("PS010", "Omit it"),
    "find_many(ARRAY[1, NULL], 3)": ("PS010", "Omit it"),
    "has_near(NULL, 3)": ("PS010", "Omit it"),
    "near_pages('https://a.example/', 3, 'typo')": ("PS001", "does not exist"),
    "near_pages(1::bigint, 3, 'typo')": ("PS001", "does not exist"),
    "near_pages('https://a.example/', 13)": ("PS010", "from 0 to"),
    "near_pages(1::bigint, 13)": ("PS010", "from 0 to"),
    "near_pages(NULL::bigint)": ("PS010", "Omit it"),
    "near_pages('https://nowhere.example/', 8)": ("PS020", "correct the URL"),
    "near_pages(NULL::text)": ("PS020", "correct the URL"),
    "add_pages(ARRAY['https://a.example/'], ARRAY[1, 2])": ("PS010", "one length"),
    "add_pages(ARRAY['https://a.example/'], ARRAY[NULL]::bigint[])": ("PS010", "without NULL"),
    "add_pages(ARRAY['https://a.example/'], ARRAY[1], collection => 'typo')": (
        "PS001",
        "not exist",
    ),
    "add_pages(ARRAY['https://a.example/'], NULL)": ("PS010", "without NULL"),
    "add_pages(NULL, ARRAY[1])": ("PS010", "without NULL"),
    "add_pages(ARRAY[['https://a.example/']], ARRAY[[1]])": ("PS010", "Give arrays"),
    "add_pages(ARRAY['https://a.example/'], ARRAY[1], text_digests => '{1,2}')": (
        "PS010",
        "one length",
    ),
    "mark('https://a.example/', NULL, true)": ("PS010", "both URLs"),
    "mark('https://a.example/', 'https://b.example/', NULL)": ("PS010", "both URLs"),
    "policy_for('https://a.example/', 'nowhere')": ("PS001", "does not exist"),
    "mark('https://a.example/', 'https://b.example/', false, 'nowhere')": ("PS001", "not exist"),
    "delete_page('', 'nowhere')": ("PS001", "does not exist"),
    "_expire_batch_1('default', interval '1 day', 0, 0)": ("PS010", "such as 1000"),
    "find_many('{{1}, {2}}'::bigint[])": ("PS010", "NULL or an array"),
    "compare_crawls()": ("PS021", "no run that ended"),
    "compare_crawls('{}', '{}')": ("PS021", "no run that ended"),
    "compare_crawls(collection => 'nowhere')": ("PS001", "does not exist"),
    "set_policy('*')": ("PS010", "a policy needs a setting"),
    "set_policy('*', 3, scope => 'page')": ("PS010", "policies_scope_known"),
    **{
        f"set_policy('*', {name} => {value})": ("PS010", name)
        for names, values in (
            (("max_age", "expire_after", "refetch_after"), ("'-1 day'", "'2000 years'")),
            (("window_size", "max_copies", "min_tokens"), (0, -1)),
        )
        for name in names
        for value in values
    },
    **{f"set_policy('*', {distance})": ("PS010", "distance") for distance in (-1, 65)},
    **{
        f"{call} => interval '{age}')": ("PS010", "an age must be positive, up to 1000 years")
        for call in (
            "should_fetch('https://a.example/', older_than",
            "fetch_conditions('https://a.example/', older_than",
            "_expire_batch_1('default', after_page => 0, batch => 1, older_than",
        )
        for age in ("-1 day", "90000 years")
    },
    "_expire_batch_1('default', '0', 0, 1)": ("PS010", "an age must be positive"),
    "status('typo')": ("PS001", "does not exist"),
    "undo_run(7)": ("PS021", "has no run 7"),
    "end_run(7)": ("PS021", "has no run 7"),
    "add_page('https://a.example/1', 1, run_id => 7)": ("PS021", "has no run 7"),
    "undo_run(NULL)": ("PS021", "has no run NULL"),
    "create_collection('default', 'another')": ("PS004", "exists with other settings"),
    "create_collection('default', 'pgsimhash-article-1', 3)": ("PS004", "other settings"),
    "create_collection('default', 'pgsimhash-article-1', normalize_urls => true)": (
        "PS004",
        "other settings",
    ),
    "create_collection('other', 'mine', 99)": ("PS010", "a distance of 0 to 12 bits"),
    "create_collection('other', 'mine', -1)": ("PS010", "a distance of 0 to 12 bits"),
    "create_collection('', 'mine')": ("PS010", "needs a name"),
    "create_collection('other', '')": ("PS010", "a scheme"),
    "create_collection(NULL, NULL)": ("PS010", "needs a name"),
    "delete_collection('nowhere')": ("PS001", "does not exist"),
    "lock_collection(NULL)": ("PS001", "does not exist"),
    "check_collection(slices => NULL)": ("PS010", "counted from 0"),
    "simhash('{{1}, {2}}'::bigint[])": ("PS010", "a weight above 0"),
    "simhash('{}'::bigint[])": ("PS010", "a weight above 0"),
    "simhash(ARRAY[NULL]::bigint[])": ("PS010", ""),
    "simhash(ARRAY[1::bigint, 2], ARRAY[1.0::float8])": ("PS010", ""),
    "simhash(ARRAY[1::bigint], ARRAY[-1.0::float8])": ("PS010", ""),
    "simhash(ARRAY[1::bigint], ARRAY['NaN'::float8])": ("PS010", ""),
    "simhash(ARRAY[1::bigint], ARRAY[0.0::float8])": ("PS010", ""),
}
"""Calls, the SQLSTATE of their error, and a part of its message or hint."""


def test_invalid_values_are_refused_with_a_hint(store: Store, dsn: str) -> None:
    store.add_page("https://a.example/", 1)
    for call, (state, said) in REFUSED.items():
        with pytest.raises(psycopg.Error, check=sqlstate(state)) as refused:
            pytest.fail(f"{call}: {run_sql(dsn, f'SELECT * FROM pgsimhash.{call}')}")
        assert said in f"{refused.value}{refused.value.diag.message_hint}", call


def test_the_collection_is_the_last_argument(dsn: str) -> None:
    functions = run_sql(
        dsn,
        "SELECT proname, proargnames[:pronargs] FROM pg_proc "
        "WHERE pronamespace = 'pgsimhash'::regnamespace AND proname !~ '^_'",
    )
    named = [(name, names) for name, names in functions if "collection" in (names or ())]
    assert len(named) > 20
    assert [name for name, names in named if names[-1] != "collection"] == []


def test_verdicts_of_a_dry_run_write_nothing(store: Store, dsn: str) -> None:
    store.add_page("https://a.example/", 1)
    reader = with_setting(dsn, "default_transaction_read_only=on")
    urls = "ARRAY['https://b.example/', 'https://c.example/'], ARRAY[1, 1]"
    for call in (f"decide_pages({urls})", f"add_pages({urls}, dry_run => true)"):
        assert run_sql(reader, f"SELECT kind FROM pgsimhash.{call}") == [("duplicate",)] * 2


def test_a_crawl_without_python(dsn: str) -> None:
    """Two batches and a single page are one run."""
    create = "SELECT pgsimhash.create_collection('news', 'my-words-1', 3)"
    again = "SELECT pgsimhash.create_collection('news', 'my-words-1')"
    assert run_sql(dsn, create) == run_sql(dsn, create) == run_sql(dsn, again)
    # Eight million ids last for calls of every start of a job.
    last = "SELECT last_value::integer FROM pgsimhash.collections_collection_id_seq"
    assert run_sql(dsn, last) == run_sql(dsn, again)
    runs = []
    for label, pages in (("first", "{1,2}"), ("second", "{1,64}")):
        start = "SELECT pgsimhash.start_run(%s, 'news')"
        ((run_id,),) = run_sql(dsn, start, [label])
        add = "SELECT kind FROM pgsimhash.add_pages(%s, %s, run_id => %s, collection => 'news')"
        run_sql(dsn, add, [["https://a/1", "https://a/2"], pages, run_id])
        one = "SELECT pgsimhash.add_page('https://a/3', 2048, run_id => %s, collection => 'news')"
        run_sql(dsn, one, [run_id])
        run_sql(dsn, "SELECT pgsimhash.end_run(%s, 'news')", [run_id])
        runs.append((label, 3, True))
    counts = "SELECT label, pages, ended_at IS NOT NULL FROM pgsimhash.runs ORDER BY run_id"
    assert run_sql(dsn, counts) == runs
    compare = "SELECT change, pages, url FROM pgsimhash.compare_crawls(collection => 'news')"
    assert run_sql(dsn, compare) == [("changed", 1, "https://a/2"), ("unchanged", 2, None)]
    assert run_sql(dsn, "SELECT pgsimhash.delete_collection('news')") == [(4,)]
    assert run_sql(dsn, "SELECT name FROM pgsimhash.status()") == []


def test_the_query_of_the_papers_readers_runs_as_they_write_it(
    connection: psycopg.Connection,
) -> None:
    insert(connection, new_collection(connection, "default"), [0b1111, 0b0111, 2**63 | 1])
    connection.execute("SET LOCAL search_path = pgsimhash, public")
    rows = connection.execute(
        "SELECT simhash FROM pages WHERE bit_count(simhash # %s::bigint) <= 3 ORDER BY 1", [15]
    ).fetchall()
    assert rows == [(7,), (15,)]


def test_the_default_distance_is_the_collections(connection: psycopg.Connection) -> None:
    insert(connection, new_collection(connection, "default"), [7])
    for distance, found in ((2, []), (3, [(7, 3)])):
        connection.execute("UPDATE pgsimhash.collections SET default_distance = %s", [distance])
        for call in (
            *("find(simhash => 0)", "find(simhash => 0, distance => NULL)"),
            *("find_many(simhashes => '{0}')", "near_pages(0::bigint)"),
        ):
            rows = connection.execute(f"SELECT m.simhash, m.distance FROM pgsimhash.{call} AS m")
            assert rows.fetchall() == found
        (known,) = connection.execute("SELECT pgsimhash.has_near(0)").fetchone() or ()
        assert known == bool(found)


@pytest.mark.one_server("it reads a plan")
def test_matches_of_a_batch_find_their_pages_by_a_hash(dsn: str) -> None:
    """A nested loop over the batch takes minutes if all of it is near many simhashes."""
    with psycopg.connect(dsn, autocommit=True) as connection, connect(connection) as store:
        list(store.add_pages((f"https://a.example/{n}", 1 << n) for n in range(40)))
        plans = explained(connection)
        list(store.add_pages((f"https://b.example/{n}", 3 << n) for n in range(40)))
        (plan,) = (text for text in plans if "CTE question" in text)
        # Of stored pages, and of those of the batch.
        assert re.search(r"Hash Cond: \([gq]\w*\.(query|simhash) = [gq]", plan), plan
        assert re.search(r"Hash Cond: \([np]\w*\.(near|simhash) = [np]", plan), plan
        assert not re.search(r"Join Filter: .*\.(query|number) = ", plan), plan


@pytest.mark.one_server("it reads a plan")
def test_recent_pages_are_read_without_reading_all(dsn: str) -> None:
    """It runs under the collection's lock, even if the planner overestimates a nested loop."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        number = new_collection(connection, "default")
        connection.execute("SET enable_nestloop = off")
        insert(connection, number, sample(2000))
        plans = explained(connection)
        arrived = connection.execute(
            "SELECT cardinality(near), newest > 0 FROM pgsimhash._lock_compared_1("
            "'default', %s, ARRAY[%s], (SELECT ARRAY[max(page_id) - 100] FROM pgsimhash.pages), "
            'ARRAY[json_populate_record(NULL::pgsimhash._decision_1, \'{"simhash": 0, '
            '"distance": 64}\')])',
            [number, number],
        ).fetchone()
        assert arrived == (100, True)
        (plan,) = (text for text in plans if "page_id > c.newest_page" in text)
        (scan,) = (line for line in plan.splitlines() if "Index Cond: " in line)
        assert "page_id > " in scan, plan
        assert "Seq Scan on pages" not in plan


HOSTS = [
    *("https://A.Example/x", "http://user:pass@b.example:8080/?q=http://c.example/"),
    *("https://[2001:DB8::1]:443/x", "https://d.example?x=1", "https://e.example#top"),
    *("https://münchen.example/", "https://under_score.example/", "ftp://f.example/file"),
    *("file:///home/x.html", "https://g.example.:80/", "https://@h.example/"),
    *("https://a@b@i.example/", "https://a:b@c@i.example:80/", "http://j.example\\@k.example/"),
    *("http://user@/", "http://:80/", "http://[::1", "http://l]m/", "https://MÜNCHEN.example/"),
    *("https://WIKI.Info/", "https://İ.example/\u212a", "not a url", "//no-scheme.example/"),
    *("https://"),
]


@pytest.mark.parametrize("collation", ["default", "C", "tr-x-icu"])
def test_the_server_reads_the_host_of_a_url_as_python_does(dsn: str, collation: str) -> None:
    if not run_sql(dsn, "SELECT 1 FROM pg_collation WHERE collname = %s", [collation]):
        pytest.skip(f"the server has no collation {collation}")
    hosts = "SELECT pgsimhash.host_of(url COLLATE {}) FROM unnest(%s::text[]) AS url"
    found = run_sql(dsn, sql.SQL(hosts).format(sql.Identifier(collation)), [HOSTS])
    assert found == [(host_of(url),) for url in HOSTS]
    assert (host_of("http://me:1@[FE80::1]:80/"), host_of("file:///x.html")) == ("[fe80::1]", None)
    pattern = sql.SQL("SELECT host FROM pgsimhash._pattern_parts_1('WIKI.info' COLLATE {})")
    assert run_sql(dsn, pattern.format(sql.Identifier(collation))) == [("wiki.info",)]


def test_verification_is_equal_in_python_and_sql(dsn: str) -> None:
    """The constants in sql/simhash.sql must equal those of pgsimhash/hashing/signature.py."""
    # Differing bits begin in the second simhash, in the last samples, or in the first one.
    parts = product(range(0, 121, 2), (0, 1, 4))
    sampled = [(2**bits - 1) << max(8, 64 - bits * part // 4) for bits, part in parts]
    signatures = [None, *(bits % 2**128 | size for bits in sampled for size in (49, 122, 172, 250))]
    cases = list(product(range(DISTANCE_MAX + 1), signatures, (None, 0, 5, 50, 255, 2**128 - 1)))
    columns = zip(*((d, *to_halves(a), *to_halves(b)) for d, a, b in cases), strict=True)
    answers = run_sql(
        dsn,
        "SELECT pgsimhash._verified_1(q.d, q.ah, q.al, q.bh, q.bl) "
        "FROM unnest(%s::integer[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) "
        "WITH ORDINALITY AS q (d, ah, al, bh, bl, number) ORDER BY q.number",
        list(map(list, columns)),
    )
    assert [answer for (answer,) in answers] == [verified(*case) for case in cases]
    assert {answer for (answer,) in answers} == {True, False}


@pytest.mark.one_server("it reads a plan")
def test_verification_is_inlined(dsn: str) -> None:
    """PostgreSQL inlines its body into the surrounding statement."""
    plan = run_sql(
        dsn,
        "EXPLAIN (VERBOSE) SELECT FROM pgsimhash.pages AS p "
        "WHERE pgsimhash._verified_1(8, p.signature_high, p.signature_low, 1, 2)",
    )
    assert "bit_count" in str(plan)
    assert "_verified_1" not in str(plan)


# Pages added by SQL get the package's decisions.


def test_text_digests_tell_changes_that_keep_the_simhash(connection: psycopg.Connection) -> None:
    new_collection(connection, "default")
    added = "pgsimhash.add_pages(%s, '{7,7,7,7}', text_digests => '{1,2,2,NULL}')"
    kinds = connection.execute(f"SELECT kind, reason FROM {added}".encode(), [[A] * 4]).fetchall()
    assert kinds == [
        ("new", "first_seen"), ("updated", "changed"), *[("unchanged", "unchanged")] * 2,
    ]  # fmt: skip


A = "https://a.example/"
UNSEEN = "\x01\x7f\x85\xa0\xad\u200b\u2028\u3000\ufeff\ufffb"
URLS_OR_NOT = [
    *("HTTP://a.example/", "FILE:///x", "file:/x", "https://a.example/%20?q#f", "http:/x", "", "x"),
    *("http://a.example\\x", "http://:80/", "http://user@/", "http://[::1", "http://[::1]/"),
    *("http:///x", "ftp://a/", "http://a.example/é\u0301\U0001f6a2"),
    *("http://a.example/" + "x" * 2048, *(f"http://a.example/{unseen}" for unseen in UNSEEN)),
]


def test_it_takes_the_urls_that_the_package_takes(
    store: Store, connection: psycopg.Connection
) -> None:
    by_package = [made.reason for made in store.add_pages([(url, 1) for url in URLS_OR_NOT])]
    made = connection.execute(
        "SELECT reason FROM pgsimhash.add_pages(%s, %s)", [URLS_OR_NOT, [1] * len(URLS_OR_NOT)]
    )
    failed = [reason == "invalid_url" for (reason,) in made]
    assert failed == [reason == "invalid_url" for reason in by_package]
    assert 15 < sum(failed) < len(URLS_OR_NOT) - 5


@pytest.mark.parametrize("time", [
    "infinity", "-infinity", "4000-01-01 BC", "1969-12-31", "10001-01-01", "9000-01-01",
])  # fmt: skip
def test_times_that_no_page_was_fetched_at_are_refused(
    store: Store, connection: psycopg.Connection, time: str
) -> None:
    added = "SELECT kind, reason FROM pgsimhash.add_page(%s, 7, fetched_at => %s)"
    assert connection.execute(added, [A, time]).fetchall() == [("failed", "unreadable")]
    assert connection.execute("SELECT FROM pgsimhash.pages").fetchall() == []
    if time != "9000-01-01":
        with pytest.raises(psycopg.errors.CheckViolation, match="pages_fetched_at_fits"):
            connection.execute(
                "INSERT INTO pgsimhash.pages (collection_id, url, simhash, fetched_at) "
                "VALUES (pgsimhash._id_of_1('default'), 'https://a.example/', 1, %s)",
                [time],
            )


@database_examples(40)
@given(hashes=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40), data=st.data())
def test_a_simhash_made_in_sql_is_the_one_of_python(
    connection: psycopg.Connection, hashes: list[int], data: st.DataObject
) -> None:
    signed = list(map(to_bigint, hashes))
    ((plain,),) = connection.execute("SELECT pgsimhash.simhash(%s::bigint[])", [signed]).fetchall()
    assert from_bigint(plain) == pgsimhash.simhash(np.array(hashes, np.uint64))
    weights = {value: data.draw(st.floats(0.001, 1e6)) for value in hashes}
    ((weighted,),) = connection.execute(
        "SELECT pgsimhash.simhash(%s::bigint[], %s)",
        [list(map(to_bigint, weights)), list(weights.values())],
    ).fetchall()
    assert from_bigint(weighted) == pgsimhash.simhash(weights)
