"""Settings by host and path, in the database: set, found and obeyed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

import pgsimhash
from pgsimhash import Store, connect
from pgsimhash.errors import (
    InvalidDistanceError,
    InvalidTimeError,
    PolicyError,
    SchemeError,
    UnknownRuleError,
)
from pgsimhash.policies import SETTINGS, Settings
from pgsimhash.schemes import scheme_names
from pgsimhash.sources import SourcePage
from tests.store.test_store import ARTICLE, FAR, page, paragraph

HTML = page(*ARTICLE)
OTHER = "pgsimhash-text-1"


def near(number: int) -> str:
    """A page some bits from ``HTML``."""
    remark = f"One added remark, signed by reader {'abcdefgh'[number]}."
    return page(f"{ARTICLE[0]} {remark}", *ARTICLE[1:])


def test_a_policy_is_set_listed_merged_and_removed(store: Store) -> None:
    made = store.set_policy("Shop.example/Sale/*", Settings(distance=3))
    assert (made.pattern, made.distance) == ("shop.example/Sale/*", 3)
    made = store.set_policy("shop.example/Sale/*", Settings(scope="host"))
    assert (made.distance, made.scope) == (3, "host")
    store.set_policy("*", Settings(distance=6, max_age=timedelta(days=30)))
    assert [policy.pattern for policy in store.policies()] == ["*", "shop.example/Sale/*"]
    assert store.policy_for("https://www.shop.example/Sale/1") == Settings(
        distance=3, scope="host", max_age=timedelta(days=30)
    )
    assert store.remove_policy("shop.example/Sale/*")
    assert not store.remove_policy("shop.example/Sale/*")
    assert store.policy_for("https://www.shop.example/Sale/1").distance == 6


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["*", "a.example", "b.a.example", "example"]),
            st.one_of(st.just(""), st.text("ab*%_\\/", max_size=5).map(lambda text: f"/{text}")),
            st.sampled_from([{"distance": 1}, {"distance": 2, "keep_first": 2}, {"min_words": 50}]),
        ),
        max_size=6,
    ),
    st.sampled_from(["a.example", "b.a.example", "c.b.a.example", "x.example", "xa.example"]),
    st.one_of(st.just(""), st.text("ab%_\\/", max_size=6).map(lambda text: f"/{text}")),
)
def test_python_and_sql_find_the_same_settings(
    store: Store, dsn: str, said: list[tuple[str, str, dict[str, int]]], host: str, path: str
) -> None:
    for policy in store.policies():
        store.remove_policy(policy.pattern)
    for pattern, tail, values in said:
        store.set_policy(pattern + tail, Settings(**values))  # type: ignore[arg-type]
    url = f"https://{host}{path}"
    with psycopg.connect(dsn) as connection:
        (in_sql,) = connection.execute(
            "SELECT * FROM pgsimhash.policy_for('default', %s)", [url]
        ).fetchall()
    found = store.policy_for(url)
    assert in_sql == tuple(getattr(found, name) for name in SETTINGS)


def test_distance_and_scope_differ_by_host_within_a_batch(store: Store) -> None:
    store.set_policy("strict.example", Settings(distance=0))
    store.set_policy("island.example", Settings(scope="host"))
    pages = [
        ("https://a.example/", HTML),
        ("https://b.example/", near(0)),
        ("https://strict.example/", near(1)),
        ("https://island.example/1", HTML),
        ("https://island.example/2", HTML),
    ]
    expected = [None, "https://a.example/", None, None, "https://island.example/1"]
    dry = list(store.decide_many(pages))
    assert [verdict.duplicate_of for verdict in dry] == expected
    assert dry == list(store.ingest_many(pages))
    # The same with all of them known.
    later = [(f"{url}later", html) for url, html in pages]
    assert [verdict.duplicate_of for verdict in store.decide_many(later)] == [
        "https://a.example/",
        "https://b.example/",
        "https://strict.example/",
        "https://island.example/1",
        "https://island.example/1",
    ]


def test_an_option_counts_before_a_policy(store: Store) -> None:
    store.set_policy("*", Settings(scope="host", distance=0))
    store.ingest("https://a.example/", HTML)
    assert store.decide("https://b.example/", HTML).verdict == "new"
    assert store.decide("https://b.example/", HTML, scope="collection").verdict == "identical"


def test_the_first_pages_of_a_kind_are_kept(store: Store) -> None:
    store.set_policy("*", Settings(keep_first=2))
    known = [store.should_store(f"https://a.example/{n}", HTML) for n in range(4)]
    assert known == [True, True, False, False]
    batch = [(f"https://b.example/{n}", page(paragraph(3), paragraph(4))) for n in range(3)]
    assert [verdict.keep for verdict in store.ingest_many(batch)] == [True, True, False]
    verdict = store.decide("https://c.example/", HTML)
    assert (verdict.verdict, verdict.keep) == ("identical", False)
    assert store.decide("https://c.example/", HTML, keep_first=5).keep


def test_what_is_kept_counts_pages_and_not_only_simhashes(store: Store) -> None:
    for number in range(3):
        store.add(f"https://a.example/{number}", 0)
    store.add("https://a.example/far", FAR)
    assert store.add("https://b.example/1", 0b1, keep_first=4).keep
    assert not store.add("https://b.example/2", 0b1, keep_first=4).keep


def test_a_page_of_too_few_words_is_not_remembered(store: Store) -> None:
    store.set_policy("long.example", Settings(min_words=10_000))
    verdicts = list(
        store.ingest_many([("https://long.example/", HTML), ("https://a.example/", HTML)])
    )
    assert [(verdict.verdict, verdict.reason) for verdict in verdicts] == [
        ("too_short", "policy"),
        ("new", "first_seen"),
    ]
    assert verdicts[0].detail is not None
    assert verdicts[0].detail.endswith("words, and 10000 are asked for")
    assert store.get("https://long.example/") is None
    assert not store.should_store("https://long.example/", HTML)


def test_a_canonical_link_is_believed_where_a_policy_says_so(store: Store) -> None:
    store.set_policy("a.example", Settings(canonical_link=True))
    link = '<link rel="canonical" href="https://{0}/page"><title>'
    far = page(paragraph(3), paragraph(4))
    for host in ("a.example", "b.example"):
        store.ingest(f"https://{host}/page", HTML, scope="host")
        html = far.replace("<title>", link.format(host))
        verdict = store.decide(f"https://{host}/print", html, scope="host")
        assert (verdict.reason == "canonical_link") == (host == "a.example")


def test_other_stores_notice_a_policy_at_their_next_batch(store: Store, dsn: str) -> None:
    with connect(dsn) as other:
        store.ingest("https://a.example/", HTML)
        assert other.decide("https://b.example/", HTML).verdict == "identical"
        store.set_policy("*", Settings(scope="host"))
        assert other.decide("https://b.example/", HTML).verdict == "new"
        assert other.ingest("https://b.example/", HTML).verdict == "new"
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("SELECT pgsimhash.remove_policy('default', '*')")
        assert other.decide("https://c.example/", HTML).verdict == "identical"
        assert [run.pages for run in other.runs()] == [1, 1]


def test_a_policy_that_was_taken_back_refuses_no_page_any_more(store: Store, dsn: str) -> None:
    store.set_policy("long.example", Settings(min_words=10_000))
    with connect(dsn) as other:
        assert other.ingest("https://long.example/", HTML).reason == "policy"
        store.remove_policy("long.example")
        assert other.decide("https://long.example/", HTML).verdict == "new"
        assert other.ingest("https://long.example/", HTML).verdict == "new"
        store.set_policy("*", Settings(min_words=10_000))
        assert other.ingest("https://a.example/", HTML).reason == "policy"
        assert [run.pages for run in other.runs()] == [1]


def test_a_policy_that_was_rolled_back_does_not_stay(store: Store, dsn: str) -> None:
    store.add("https://a.example/", 0)
    with psycopg.connect(dsn) as connection:
        own = connect(connection=connection)
        connection.commit()
        own.set_policy("*", Settings(distance=0))
        connection.rollback()
        store.set_policy("*", Settings(distance=3))
        assert own.add("https://b.example/", 0b1).verdict == "identical"


class TestScheme:
    """Pages that a policy reads by another scheme live in a collection of their own."""

    def test_they_are_compared_with_one_another_only(self, store: Store, dsn: str) -> None:
        store.set_policy("text.example", Settings(scheme=OTHER, distance=2))
        pages = [
            ("https://text.example/1", HTML),
            ("https://a.example/", HTML),
            ("https://text.example/2", HTML),
        ]
        expected = [None, None, "https://text.example/1"]
        assert [verdict.duplicate_of for verdict in store.decide_many(pages)] == expected
        assert len(store.status()) == 1, "a dry run creates no collection"
        verdicts = list(store.ingest_many(pages))
        assert [verdict.duplicate_of for verdict in verdicts] == expected
        assert store.get("https://text.example/1") is None
        with connect(dsn, collection=f"default:{OTHER}", create=False) as branch:
            assert branch.scheme == OTHER
            found = branch.get("https://text.example/2")
            assert found is not None
            assert found.simhash == pgsimhash.fingerprint(HTML, scheme=OTHER).simhash
            assert branch.decide("https://text.example/3", HTML).verdict == "identical"
            assert branch.policy_for("https://text.example/").distance == 2
        assert store.ingest("https://text.example/1", HTML).reason == "unchanged"

    def test_several_writers_open_the_collection_once(self, store: Store, dsn: str) -> None:
        store.set_policy("text.example", Settings(scheme=OTHER))
        together = Barrier(4)

        def write(number: int) -> str:
            with connect(dsn) as writer:
                together.wait(60)
                return writer.ingest(f"https://text.example/{number}", HTML).verdict

        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(write, range(4))) == ["identical"] * 3 + ["new"]
        assert len(store.status()) == 2

    def test_they_go_with_their_url_and_their_host(self, store: Store) -> None:
        store.set_policy("text.example", Settings(scheme=OTHER))
        for number in range(3):
            store.ingest(f"https://text.example/{number}", page(paragraph(number)))
        assert store.delete("https://text.example/1") == 1
        told: list[int] = []
        assert store.delete_host("text.example", progress=told.append) == 2
        assert told[-1] == 2
        assert store.decide("https://text.example/0", page(paragraph(0))).verdict == "new"

    def test_in_several_processes_too(self, store: Store) -> None:
        store.set_policy("text.example", Settings(scheme=OTHER))
        pages = [(f"https://{host}.example/", HTML) for host in ("a", "text", "b")]
        simhashes = [verdict.simhash for verdict in store.decide_many(pages, jobs=2)]
        schemes = [store.scheme, OTHER, store.scheme]
        assert simhashes == [pgsimhash.fingerprint(HTML, scheme=one).simhash for one in schemes]

    def test_a_scheme_that_is_not_there_is_refused(self, store: Store) -> None:
        with pytest.raises(SchemeError, match=scheme_names()[0]):
            store.set_policy("a.example", Settings(scheme="mine-9"))

    def test_a_name_that_is_taken_is_an_error_that_names_the_fix(
        self, store: Store, dsn: str
    ) -> None:
        with connect(dsn, collection=f"default:{OTHER}"):
            store.set_policy("text.example", Settings(scheme=OTHER))
            with pytest.raises(pgsimhash.CollectionError, match="collection rename"):
                store.ingest("https://text.example/1", HTML)


class TestExpiry:
    """Pages go when the policy of their host says."""

    def fill(self, store: Store) -> None:
        old = datetime.now(UTC) - timedelta(days=60)
        pages = [
            SourcePage(f"https://{host}/{number}", page(paragraph(number)), fetched_at=old)
            for number, host in enumerate(["news.example", "a.example", "text.example"])
        ]
        assert {verdict.verdict for verdict in store.ingest_many(pages, scope="host")} == {"new"}

    def test_each_host_has_its_own_age(self, store: Store, dsn: str) -> None:
        store.set_policy("news.example", Settings(expire_after=timedelta(days=30)))
        store.set_policy("text.example", Settings(expire_after=timedelta(days=30), scheme=OTHER))
        store.set_policy("a.example", Settings(expire_after=timedelta(days=90)))
        self.fill(store)
        told: list[int] = []
        assert store.expire(progress=told.append) == 2
        assert told[-1] == 2
        assert store.get("https://news.example/0") is None
        assert store.get("https://a.example/1") is not None
        store.set_policy("a.example", Settings(expire_after=timedelta(days=59)))
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CALL pgsimhash.expire('default')")
        assert store.get("https://a.example/1") is None

    def test_the_procedure_goes_through_other_schemes_too(self, store: Store, dsn: str) -> None:
        store.set_policy("text.example", Settings(expire_after=timedelta(days=30), scheme=OTHER))
        self.fill(store)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CALL pgsimhash.expire('default', interval '365 days')")
            assert [status.pages for status in store.status()] == [2, 1]
            connection.execute("CALL pgsimhash.expire('default')")
            assert [status.pages for status in store.status()] == [2, 0]
            with pytest.raises(psycopg.errors.UndefinedObject, match='"nowhere" does not exist'):
                connection.execute("CALL pgsimhash.expire('nowhere')")

    def test_what_was_seen_again_stays(self, store: Store) -> None:
        store.set_policy("*", Settings(expire_after=timedelta(days=30)))
        self.fill(store)
        store.ingest("https://a.example/1", page(paragraph(1)))
        assert store.expire() == 2
        assert store.get("https://a.example/1") is not None

    def test_without_an_age_and_a_policy_nothing_goes(self, store: Store) -> None:
        self.fill(store)
        store.set_policy("*", Settings(distance=3))
        with pytest.raises(PolicyError, match="policy set"):
            store.expire()

    def test_an_unknown_collection_is_named(self, connection: psycopg.Connection) -> None:
        with pytest.raises(psycopg.errors.UndefinedObject, match='"nope" does not exist'):
            connection.execute("SELECT * FROM pgsimhash.expire_batch('nope', NULL, 0, 10)")


class TestRefusals:
    """What contradicts the layout, the scheme or itself, with what would help."""

    @pytest.mark.parametrize(
        "pattern", ["", "https://a.example/", "a.example /x", "*.example", "a@b.example", "a:80"]
    )
    def test_a_pattern_that_is_none(self, store: Store, pattern: str) -> None:
        with pytest.raises(PolicyError, match="without https://"):
            store.set_policy(pattern, Settings(distance=3))

    def test_settings(self, store: Store) -> None:
        with pytest.raises(PolicyError, match="needs a setting"):
            store.set_policy("*", Settings())
        with pytest.raises(PolicyError, match="fewer than 12 words"):
            store.set_policy("*", Settings(min_words=5))
        with pytest.raises(UnknownRuleError, match="keep_first"):
            store.set_policy("*", Settings(keep_first=0))
        with pytest.raises(InvalidTimeError):
            store.set_policy("*", Settings(expire_after=timedelta(0)))
        assert store.policies() == []

    @pytest.mark.parametrize("age", ["0", "-1 day", "1001 years", "5000000 years"])
    @pytest.mark.parametrize("setting", ["max_age", "expire_after"])
    def test_an_age_that_no_writer_could_go_by(self, dsn: str, setting: str, age: str) -> None:
        connect(dsn).close()
        statement = sql.SQL("SELECT pgsimhash.set_policy('default', '*', {} => %s::interval)")
        with (
            psycopg.connect(dsn) as connection,
            pytest.raises(psycopg.errors.CheckViolation, match=f"policies_{setting}_fits"),
        ):
            connection.execute(statement.format(sql.Identifier(setting)), [age])

    def test_a_distance_that_the_layout_does_not_answer(self, dsn: str) -> None:
        with connect(dsn, collection="two", layout="32+32") as store:
            with pytest.raises(InvalidDistanceError, match="from 0 to 7"):
                store.set_policy("*", Settings(distance=8))
            store.set_policy("*", Settings(distance=7))
            with (
                psycopg.connect(dsn) as connection,
                pytest.raises(psycopg.errors.CheckViolation, match="answers up to 7"),
            ):
                connection.execute("UPDATE pgsimhash.policies SET distance = 8")

    def test_a_move_to_a_layout_that_does_not_answer_a_policy(self, store: Store) -> None:
        store.set_policy("a.example", Settings(distance=9))
        with pytest.raises(pgsimhash.CollectionError, match="policy"):
            store.relayout("32+32", distance=3)
        assert store.layout == "22+21+21"
