"""Policies in the database: set, looked up and applied."""

import fnmatch
from datetime import UTC, datetime, timedelta
from itertools import product

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import sql
from psycopg.rows import dict_row

from pgsimhash import Store, connect
from pgsimhash.errors import ArgumentError
from pgsimhash.pages.policies import SETTINGS, PolicySettings
from pgsimhash.schema import migrate
from pgsimhash.sources import SourcePage
from tests.database import database_examples, run_sql
from tests.refusals import because, sqlstate
from tests.store.content import page_at
from tests.store.pages import ARTICLE, page, paragraph

HTML = page(*ARTICLE)


def settings_for(store: Store, urls: list[str]) -> list[PolicySettings]:
    """What policies define for URLs."""
    with store._session.calls_to_read() as calls:
        return calls.records("settings_for", PolicySettings, urls=urls)


def test_a_policy_is_set_listed_merged_and_removed(store: Store) -> None:
    made = store.set_policy("Shop.example/Sale/*", distance=3)
    assert (made.pattern, made.distance) == ("shop.example/Sale/*", 3)
    made = store.set_policy("shop.example/Sale/*", scope="host")
    assert (made.distance, made.scope) == (3, "host")
    store.set_policy("*", distance=6, max_age=timedelta(days=30))
    patterns = [policy.pattern for policy in store.policies()]
    assert patterns == ["*", "shop.example/Sale/*"]
    merged = PolicySettings(distance=3, scope="host", max_age=timedelta(days=30))
    assert store.policy_for("https://www.shop.example/Sale/1") == merged
    assert store.remove_policy("shop.example/Sale/*")
    assert not store.remove_policy("shop.example/Sale/*")
    assert store.policy_for("https://www.shop.example/Sale/1").distance == 6


def asked(store: Store, url: str, *patterns: str) -> list[str]:
    """Return the patterns that match a URL, in the order of precedence."""
    for policy in store.policies():
        store.remove_policy(policy.pattern)
    for number, pattern in enumerate(patterns, 1):
        store.set_policy(pattern, max_copies=number)
    fitting: list[str] = []
    while (first := store.policy_for(url).max_copies) is not None:
        fitting.append(patterns[first - 1])
        store.remove_policy(patterns[first - 1])
    return fitting


HOSTS = ["*", "example.com", "com", "shop.example.com", "ample.com"]
PATHS = ["*/very/long/path/*", "a.example", "a.example/very/*", "a.example/very/long/*"]
PRECEDENCE = [
    # A host stands for its subdomains, and the nearest comes first.
    ("https://shop.EXAMPLE.com:8080/a", HOSTS, ["shop.example.com", "example.com", "com", "*"]),
    ("https://other.example/", HOSTS, ["*"]), ("file:///srv/page.html", HOSTS, ["*"]),
    # A longer path comes first, and the host counts more.
    ("https://a.example/very/long/path/1", PATHS, [*PATHS[:0:-1], PATHS[0]]),
    # A star in a path stands for anything.
    ("https://a.example", ["a.example/"], ["a.example/"]),
    ("https://a.example/", ["a.example/"], ["a.example/"]),
    ("https://a.example/b", ["a.example/"], []),
    ("https://a.example?q=1", ["a.example/*"], ["a.example/*"]),
    ("https://a.example?q=1", ["a.example/?q=1"], ["a.example/?q=1"]),
    ("https://a.example/a", ["a.example/[ab]"], []),
]  # fmt: skip


def test_the_patterns_of_a_url_in_their_order(store: Store) -> None:
    for url, patterns, fitting in PRECEDENCE:
        assert asked(store, url, *patterns) == fitting, url


@database_examples(40)
@given(
    st.text("ab*/%_\\", max_size=12).map(lambda text: f"/{text}"),
    st.lists(st.text("ab/%_\\", max_size=20).map(lambda text: f"/{text}"), max_size=9),
)
def test_paths_fit_as_file_names_would(store: Store, pattern: str, paths: list[str]) -> None:
    for policy in store.policies():
        store.remove_policy(policy.pattern)
    store.set_policy(f"a.example{pattern}", distance=1)
    policies = settings_for(store, [f"https://a.example{path}" for path in paths])
    fitting = [at for at, policy in enumerate(policies) if policy.distance]
    # fnmatch interprets brackets too, and the patterns have none.
    assert fitting == [at for at, path in enumerate(paths) if fnmatch.fnmatchcase(path, pattern)]


def test_many_urls_give_the_results_of_single_ones(store: Store, dsn: str) -> None:
    hosts = ["a.example", "b.a.example", "c.b.a.example", "xa.example", "test"]
    patterns = ["*", "*/a/*", "example", "a.example/*1", "b.a.example", "b.a.example/a/*"]
    for number, pattern in enumerate(patterns, 1):
        store.set_policy(pattern, max_copies=number)
        if number % 2:
            store.set_policy(pattern, distance=number)
        else:
            store.set_policy(pattern, window_size=9)
    store.remove_policy("*")
    urls = [f"https://{host}/{path}" for host in hosts for path in ("", "a/", "a/1", "1", "b")] * 2
    found = settings_for(store, urls)
    assert PolicySettings() in found
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        for at, url in enumerate(urls):
            (in_sql,) = connection.execute(
                f"SELECT {', '.join(SETTINGS)} FROM pgsimhash.policy_for(%s)".encode(), [url]
            ).fetchall()
            assert PolicySettings(**{name: in_sql[name] for name in SETTINGS}) == found[at]
            assert store.policy_for(url) == found[at]


def test_a_page_of_too_few_words_is_not_stored(store: Store) -> None:
    store.set_policy("long.example", min_tokens=10_000)
    copy_html = f"<title>A copy</title>{HTML}"
    pages = [("https://long.example/", HTML), ("https://a.example/", HTML)]
    short, new, copy = store.ingest_many([*pages, ("https://b.example/", copy_html)])
    assert (short.kind, short.reason, new.reason) == ("too_short", "policy", "first_seen")
    assert copy.duplicate_of == new.url
    assert page_at(store, copy.url).title == "A copy"
    assert str(short.detail).endswith("words, fewer than 10000")
    assert store.get("https://long.example/") is None
    assert not store.ingest("https://long.example/", HTML).keep


def test_other_stores_notice_a_policy_at_their_next_batch(store: Store, dsn: str) -> None:
    with connect(dsn) as other:
        store.ingest("https://a.example/", HTML)
        assert other.decide("https://b.example/", HTML).kind == "duplicate"
        store.set_policy("*", scope="host")
        for add in (other.decide, other.ingest):
            assert add("https://b.example/", HTML).kind == "new"
        run_sql(dsn, "SELECT pgsimhash.remove_policy('*')")
        assert other.decide("https://c.example/", HTML).kind == "duplicate"
        # A page that a policy refused is not refused without it.
        store.set_policy("long.example", min_tokens=10_000)
        assert other.ingest("https://long.example/", HTML).reason == "policy"
        store.remove_policy("long.example")
        for add in (other.decide, other.ingest):
            assert add("https://long.example/", HTML).kind == "duplicate"
        assert [one.pages for one in other.collections()] == [3]


def test_a_policy_that_was_rolled_back_does_not_stay(store: Store, dsn: str) -> None:
    store.add_page("https://a.example/", 0)
    with psycopg.connect(dsn) as connection:
        own = connect(connection)
        connection.commit()
        own.set_policy("*", distance=0)
        connection.rollback()
        store.set_policy("*", distance=3)
        assert own.add_page("https://b.example/", 0b1).kind == "duplicate"


def test_each_host_has_its_own_age_to_expire(store: Store, dsn: str) -> None:
    old = datetime.now(UTC) - timedelta(days=60)
    pages = [
        SourcePage(f"https://{host}/{number}", page(paragraph(number)), fetched_at=old)
        for number, host in enumerate(["news.example", "a.example", "text.example"])
    ]
    assert {verdict.kind for verdict in store.ingest_many(pages, scope="host")} == {"new"}
    # Without an age and a policy nothing expires.
    store.set_policy("*", distance=3)
    with pytest.raises(ArgumentError, match="set expire_after"):
        store.expire()
    for host, days in (("news.example", 30), ("text.example", 30), ("a.example", 90)):
        age = timedelta(days=days)
        store.set_policy(host, expire_after=age)
    told: list[int] = []
    assert store.expire(progress=told.append).deleted == 2
    assert told[-1] == 2
    assert store.get("https://news.example/0") is None
    assert store.get("https://a.example/1") is not None
    store.set_policy("a.example", expire_after=timedelta(days=59))
    run_sql(dsn, "CALL pgsimhash.expire()")
    assert store.get("https://a.example/1") is None


class TestRefusals:
    """Policies that contradict the layout, the scheme or themselves; the error names the fix."""

    def test_an_invalid_pattern(self, store: Store) -> None:
        others = ("a.example /x", "*.example", ".example", "a@b.example", "a:80")
        for pattern in ("", "https://a.example/", *others):
            with pytest.raises(ArgumentError, match="without https://"):
                store.set_policy(pattern, distance=3)

    def test_settings(self, store: Store) -> None:
        with pytest.raises(ArgumentError, match="needs a setting"):
            store.set_policy("*")
        with pytest.raises(ArgumentError, match="max_copies"):
            PolicySettings(max_copies=0)
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            PolicySettings(expire_after=timedelta(0))
        assert store.policies() == []

    def test_an_age_that_is_too_long(self, dsn: str) -> None:
        connect(dsn).close()
        statement = sql.SQL("SELECT pgsimhash.set_policy('*', {} => %s::interval)")
        ages = ("0", "-1 day", "1001 years", "5000000 years")
        for setting, age in product(("max_age", "expire_after", "refetch_after"), ages):
            if (setting, age) == ("refetch_after", "0"):  # always
                continue
            with pytest.raises(psycopg.Error, check=sqlstate("PS010"), match=setting):
                run_sql(dsn, statement.format(sql.Identifier(setting)), [age])

    def test_a_distance_that_the_layout_does_not_support(self, empty_dsn: str) -> None:
        dsn = empty_dsn
        migrate.upgrade(dsn, layout="32+32")
        with connect(dsn, collection="two", create=True) as store:
            with pytest.raises(ArgumentError, match="from 0 to 7"):
                store.set_policy("*", distance=8)
            store.set_policy("*", distance=7)
            with pytest.raises(psycopg.Error, check=sqlstate("PS010"), match="does not support"):
                run_sql(dsn, "SELECT pgsimhash.set_policy('*', 8, collection => 'two')")
            run_sql(dsn, "UPDATE pgsimhash.policies SET distance = 8")
            with pytest.raises(ArgumentError, match="from 0 to 7"):
                store.add_page("https://a.example/", 5)
