"""What one call reads in a large collection: what it needs, whatever the planner estimates."""

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import LiteralString
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner

from pgsimhash import Store, connect
from pgsimhash.cli import show
from pgsimhash.cli.commands import commands
from pgsimhash.db.statements import fetch
from pgsimhash.hashing.bits import from_bigint
from pgsimhash.pages.records import PageStatus
from pgsimhash.testing import fresh_database
from tests.database import explained

PAGES = 200_000
DELETED = count(1)  # both ways of planning delete from one database

FILL: LiteralString = """
INSERT INTO pgsimhash.pages (
    collection_id, url, simhash, fetched_at, title, features, html_bytes, html_digest, text_digest,
    signature_high, signature_low, duplicate_of, distance, indexed
)
SELECT
    1, 'https://www.site' || n %% 1000 || '.example/a/section/page-' || n,
    hashint8extended(n - (n %% 5 = 0)::integer, 1), now() - interval '1 hour' * (%(pages)s - n),
    'The title of page ' || n, 300, 60000, decode(md5(n::text), 'hex'), hashint8extended(n, 2),
    hashint8extended(n, 3), hashint8extended(n, 4), CASE n %% 5 WHEN 0 THEN n - 1 END,
    CASE n %% 5 WHEN 0 THEN 0 END, n %% 5 <> 0
FROM generate_series(1, %(pages)s) AS n
"""

WINDOW: LiteralString = (
    "SELECT pgsimhash._window_1(ARRAY[1], 'www.site7.example', 20, 9223372036854775807)"
)

pytestmark = [pytest.mark.long, pytest.mark.one_server("it reads plans")]


class Server:
    """A connection that counts the buffers of its statements."""

    def __init__(self, dsn: str, plans: str) -> None:
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.connection.execute(f"SET plan_cache_mode = {plans}".encode())
        settings = {"log_analyze": "on", "log_buffers": "on", "log_format": "json"}
        self._plans = explained(self.connection, log_nested_statements="off", **settings)

    def buffers(self, call: Callable[[int], object]) -> int:
        """Return what the last of eight calls reads, with its plans and catalogue in memory."""
        for number in range(8):
            read = self.read(call, number)
        return read

    def read(self, call: Callable[[int], object], number: int = 0) -> int:
        """Return what a call reads."""
        self._plans.clear()
        call(number)
        plans = [json.loads(text.partition("plan:")[2])["Plan"] for text in self._plans]
        return sum(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] for plan in plans)


@pytest.fixture(scope="module")
def filled(server_dsn: str, pgsimhash_template: str) -> Iterator[str]:
    """The DSN of a database with many pages, vacuumed and analysed."""
    with (
        fresh_database(server_dsn, pgsimhash_template) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        connect(connection).close()
        # Indexes that are built afterwards take a third of the time.
        made = connection.execute(
            "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index "
            "WHERE indrelid = 'pgsimhash.pages'::regclass AND NOT indisprimary"
        ).fetchall()
        for name, _ in made:
            connection.execute(f"DROP INDEX {name}".encode())
        connection.execute(FILL, {"pages": PAGES})
        for _, definition in made:
            connection.execute(definition.encode())
        connection.execute(
            "SELECT setval(pg_get_serial_sequence('pgsimhash.pages', 'page_id'), max(page_id)) "
            "FROM pgsimhash.pages"
        )
        connection.execute("VACUUM (ANALYZE)")
        yield dsn


@pytest.fixture(params=["force_custom_plan", "force_generic_plan"])
def server(filled: str, request: pytest.FixtureRequest) -> Iterator[Server]:
    """The database under both ways of planning; by itself PostgreSQL chooses one of them."""
    opened = Server(filled, request.param)
    yield opened
    opened.connection.close()


@pytest.fixture
def store(server: Server) -> Store:
    """A store over that connection."""
    return connect(server.connection)


def new_url() -> str:
    return f"https://new.example/{uuid4()}"


def new_simhash() -> int:
    return uuid4().int >> 64


def new_pages(number: int) -> list[tuple[str, int]]:
    return [(new_url(), new_simhash()) for _ in range(number)]


def stored(server: Server, number: int, middle: int = PAGES // 2) -> tuple[str, int]:
    """The URL and the simhash of a page in the middle of the collection."""
    ((url, simhash),) = server.connection.execute(
        "SELECT url, simhash FROM pgsimhash.pages WHERE collection_id = 1 AND page_id >= %s "
        "ORDER BY page_id LIMIT 1",
        [middle + 5 * number],
    ).fetchall()
    return url, from_bigint(simhash)


def test_lookups(server: Server, store: Store) -> None:
    url, simhash = stored(server, 1)
    assert server.buffers(lambda _: store.find(simhash, 3)) <= 150
    assert server.buffers(lambda _: store.near_pages(url, 3)) <= 200


def test_writes(server: Server, store: Store) -> None:
    _, simhash = stored(server, 2)

    def add_near(_: int) -> None:
        assert store.add_page(new_url(), simhash, distance=3).kind == "duplicate"

    def add_batch(_: int) -> None:
        assert len(list(store.add_pages(new_pages(64), distance=3))) == 64

    assert server.buffers(lambda _: store.add_page(new_url(), new_simhash(), distance=3)) <= 300
    assert server.buffers(add_near) <= 300
    assert server.buffers(lambda _: store.decide(new_url(), "some words " * 30, distance=3)) <= 300
    assert server.buffers(add_batch) <= 8_000


def test_answers_without_a_page(server: Server, store: Store) -> None:
    urls = [stored(server, number)[0] for number in range(300, 364)]
    items = [PageStatus(url, number % 2 == 0) for number, url in enumerate(urls)]
    assert server.buffers(lambda _: store.seen(urls[0])) <= 150
    assert server.buffers(lambda _: store.gone(urls[0])) <= 150
    assert server.buffers(lambda _: store.request_headers(urls[0])) <= 40
    assert server.buffers(lambda _: list(store.ingest_many(items, batch_size=64))) <= 3_000


def test_deletions(server: Server, store: Store) -> None:
    def delete(_: int) -> None:
        """Delete a page whose copy then has to be indexed."""
        url, simhash = stored(server, 100 * next(DELETED), PAGES // 2 - 1)
        assert store.delete_page(url).promoted
        assert store.has_near(simhash, 0)

    assert server.buffers(delete) <= 500

    def undo(_: int) -> None:
        list(store.add_pages(new_pages(5), distance=3))
        run = store.runs()[0]
        assert store.undo_run(run.run_id).deleted == 5

    assert server.buffers(undo) <= 1_300

    def undo_of_seen_pages(number: int) -> None:
        list(store.add_pages([stored(server, 10 * number + n) for n in range(5)], distance=3))
        run = store.runs()[0]
        assert run.unchanged == 5
        store.undo_run(run.run_id)

    assert server.buffers(undo_of_seen_pages) <= 1_300


@pytest.mark.parametrize(("statement", "most"), [
    ("SELECT pgsimhash.delete_page(a) FROM asked", 500),
    ("SELECT pgsimhash.delete_host(host) FROM asked", 50_000),
    ("SELECT pgsimhash.mark(a, b, false), pgsimhash.unmark(a, b) FROM asked", 5_000),
    ("SELECT count(*) FROM asked, pgsimhash.fetch_conditions(a)", 100),
    ("SELECT count(*) FROM asked, pgsimhash.should_fetch_many(ARRAY[a, b])", 100),
    ("SELECT count(*) FROM asked, pgsimhash.near_pages(a, 3)", 200),
    ("SELECT kind FROM asked, pgsimhash.add_page(a, 7)", 3_000),
])  # fmt: skip
def test_urls_of_another_collation(server: Server, statement: LiteralString, most: int) -> None:
    """The arguments give a function their collation, which the indexes do not have."""
    server.connection.execute(
        'CREATE TEMP TABLE asked AS SELECT min(url) COLLATE "C" AS a, max(url) COLLATE "C" AS b, '
        'min(host) COLLATE "C" AS host FROM pgsimhash.pages WHERE page_id IN (1001, 1002)'
    )

    def call(_: int) -> None:
        with server.connection.transaction(force_rollback=True):
            server.connection.execute(statement)

    assert server.buffers(call) <= most


@pytest.mark.parametrize("collation", ["default", "C"])
def test_one_of_ten_thousand_policies(dsn: str, collation: LiteralString) -> None:
    server = Server(dsn, "force_generic_plan")
    connect(server.connection)
    server.connection.execute(
        "INSERT INTO pgsimhash.policies (collection_id, host, distance) "
        "SELECT 1, 'site' || n || '.example', 3 FROM generate_series(1, 10000) AS n"
    )
    server.connection.execute("VACUUM (ANALYZE) pgsimhash.policies")
    url = "https://a.example/"
    ask: LiteralString = (
        'SELECT pgsimhash.fetch_conditions(%s COLLATE "' + collation + '") '
        "FROM pgsimhash.policy_for('https://site7.example/') WHERE distance = 3"
    )
    with server.connection:
        assert server.buffers(lambda _: server.connection.execute(ask, [url])) <= 50


def test_removing_one_of_ten_thousand_marks(dsn: str) -> None:
    server = Server(dsn, "force_generic_plan")
    connect(server.connection)
    server.connection.execute(
        "INSERT INTO pgsimhash.marks (collection_id, url_a, url_b, same) "
        "SELECT 1, 'https://a.example/' || n, 'https://b.example/', false "
        "FROM generate_series(1, 10000) AS n"
    )
    unmark = "SELECT pgsimhash.unmark('https://b.example/', 'https://a.example/' || %s::integer)"
    with server.connection:
        assert server.buffers(lambda n: server.connection.execute(unmark, [n + 1])) <= 100


@pytest.mark.parametrize(("statement", "most"), [
    (
        "SELECT pages FROM pgsimhash._expire_batch_1('default', interval '1000 days', 0, 20)",
        2_000,
    ),
    ("SELECT count(*) FROM pgsimhash.check_collection(false, 100, 2000)", 1_200),
    (WINDOW, 100),
])  # fmt: skip
def test_expiry_a_slice_of_a_check_and_a_window(
    server: Server, statement: LiteralString, most: int
) -> None:
    assert server.buffers(lambda _: server.connection.execute(statement)) <= most


def test_a_check_of_a_collection_that_is_newer_than_the_statistics(dsn: str) -> None:
    server = Server(dsn, "auto")
    fill = FILL.replace("    1, 'https", "    %(own)s, 'https").replace(
        "n - 1 END", "n - 1 + %(earlier)s END"
    )
    with server.connection:
        for own, earlier in ((1, 0), (2, 4000)):
            connect(server.connection, collection=f"collection {own}", create=True)
            values = {"own": own, "earlier": earlier, "pages": 4000}
            server.connection.execute(fill, values)
            if own == 1:
                server.connection.execute("VACUUM (ANALYZE)")
        check = "SELECT count(*) FROM pgsimhash.check_collection(collection => 'collection 2')"
        assert server.connection.execute(check).fetchone() == (0,)
        assert server.read(lambda _: server.connection.execute(check)) <= 30_000


CROWD: LiteralString = """
INSERT INTO pgsimhash.pages (collection_id, url, simhash, signature_high, signature_low, indexed)
SELECT 1, 'https://site' || n || '.example/', 7, hashint8extended(n, 3), hashint8extended(n, 4),
    n = 1 OR %(all_indexed)s
FROM generate_series(1, 10000) AS n
"""
"""Pages of one simhash that are no copies: hosts and signatures differ."""


@pytest.mark.parametrize("all_indexed", [False, True], ids=["by the package", "by COPY"])
def test_lookups_do_not_read_ten_thousand_pages_of_one_simhash(dsn: str, all_indexed: bool) -> None:
    server = Server(dsn, "force_generic_plan")
    store = connect(server.connection)
    server.connection.execute(CROWD, {"all_indexed": all_indexed})
    server.connection.execute("VACUUM (ANALYZE)")
    calls: list[Callable[[int], object]] = [
        lambda _: store.find(7, 3),
        lambda _: store.find_many([7, 6], 3),
        lambda _: store.has_near(7, 3),
        lambda _: store.near_pages(7, 3, limit=10),
        lambda _: store.near_pages("https://site7.example/", 3, limit=10, verify=False),
        lambda _: store.add_page(new_url(), 7, distance=3),
    ]
    with server.connection:
        # The indexes have 10,000 entries each if every page is indexed, in about 60 disk pages.
        for call in calls:
            assert server.buffers(call) <= (1_200 if all_indexed else 100)


@pytest.mark.parametrize("covered", [False, True])
def test_a_change_to_a_text_with_ten_thousand_copies(dsn: str, covered: bool) -> None:
    server = Server(dsn, "force_generic_plan")
    store = connect(server.connection)
    server.connection.execute(CROWD, {"all_indexed": False})
    # Copies that nobody kept count as the original of no change.
    server.connection.execute("UPDATE pgsimhash.pages SET covered = %s", [covered])
    server.connection.execute("VACUUM (ANALYZE)")

    def change(_: int) -> None:
        url = new_url()
        with server.connection.transaction(force_rollback=True):
            assert store.add_page(url, new_simhash()).kind == "new"
            assert store.add_page(url, 7).kind == ("duplicate" if covered else "updated")

    # Before PostgreSQL 17, each of the probes of a lookup descends its index.
    most = 300 if server.connection.info.server_version >= 170_000 else 1700
    with server.connection:
        assert server.buffers(change) <= most


@pytest.mark.parametrize("vacuumed", [False, True], ids=["never analysed", "analysed while empty"])
def test_tables_that_seem_empty_to_the_planner(dsn: str, vacuumed: bool) -> None:
    server = Server(dsn, "force_generic_plan")
    store = connect(server.connection)
    if vacuumed:
        server.connection.execute("VACUUM (ANALYZE) pgsimhash.pages")
    server.connection.execute(FILL, {"pages": 5_000})
    taken = count(1)
    with server.connection:
        _, simhash = stored(server, 1, 2_500)
        assert server.buffers(lambda _: store.find(simhash, 3)) <= 150
        assert server.buffers(lambda _: store.has_near(simhash, 3)) <= 150
        assert server.buffers(lambda _: store.add_page(new_url(), new_simhash(), distance=3)) <= 300
        assert server.buffers(lambda _: server.connection.execute(WINDOW)) <= 40
        assert server.buffers(lambda _: store.near_pages(stored(server, 1, 2_500)[0], 3)) <= 200
        delete = server.buffers(
            lambda _: store.delete_page(stored(server, 100 * next(taken), 0)[0])
        )
        assert delete <= 500


def test_plans_that_a_connection_made_while_the_table_was_empty(dsn: str) -> None:
    server = Server(dsn, "auto")
    store = connect(server.connection)
    url = new_url()
    for simhash in (7, 9, 9):
        store.add_page(url, simhash)
    server.connection.execute(FILL, {"pages": 5_000})
    versions = [stored(server, number, 2_000) for number in range(64)]
    changes = [[(url, new_simhash()) for url, _ in versions] for _ in range(8)]
    with server.connection:
        assert server.buffers(lambda _: list(store.add_pages(versions, distance=0))) <= 4_000
        assert server.buffers(lambda n: list(store.add_pages(changes[n], distance=0))) <= 4_000


def test_status(server: Server, store: Store, filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its counts are near the right ones."""
    status = store.status()
    assert status.estimated
    assert 0.95 * PAGES < status.pages < 1.05 * PAGES
    assert 0.95 * status.pages < status.urls <= status.pages
    assert 0.19 < status.duplicates / status.pages < 0.21
    assert 0.95 < status.duplicate_bytes / status.duplicates / 60_000 < 1.05
    assert 0.75 < status.simhashes / status.pages < 0.85
    monkeypatch.setattr(show, "for_people", lambda: False)
    assert '"estimated": true' in CliRunner().invoke(commands, ["status", "--dsn", filled]).stdout
    monkeypatch.setattr(show, "for_people", lambda: True)
    assert "about " in CliRunner().invoke(commands, ["status", "--dsn", filled]).stdout
    with server.connection.transaction(force_rollback=True):
        # As seen once while a table grew fast.
        server.connection.execute(
            "UPDATE pg_class SET reltuples = 1e9 WHERE oid = 'pgsimhash.pages'::regclass"
        )
        status = connect(server.connection, create=False).status()
        assert PAGES * 0.95 < status.pages < PAGES * 2


LOADED: LiteralString = """
WITH page AS (
    INSERT INTO pgsimhash.pages (collection_id, url, simhash, text_digest)
    SELECT 1, 'https://a.example/' || n %% 3000, hashint8extended(n / 2, 1), n
    FROM generate_series(1, %(pages)s) AS n
    RETURNING page_id
)
INSERT INTO pgsimhash.last_seen (collection_id, page_id, seen_at) SELECT 1, page_id, now() FROM page
"""


@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
def test_a_rebuild_of_loaded_pages(dsn: str, analysed: bool) -> None:
    """The planner knows nothing of the new collection, and expects one page in it."""
    server = Server(dsn, "auto")
    store = connect(server.connection)
    pages = 4_000
    server.connection.execute(LOADED, {"pages": pages})
    if analysed:
        server.connection.execute("ANALYZE")
    with server.connection:
        assert server.read(lambda _: store.rebuild(distance=3)) <= 200 * pages


ADDRESSES: LiteralString = """
WITH page AS (
    INSERT INTO pgsimhash.pages (collection_id, url, simhash, address)
    SELECT 1, 'https://a.example/?sid=' || n, n, 'https://a.example/'
    FROM generate_series(1, 10000) AS n
    RETURNING page_id
)
INSERT INTO pgsimhash.last_seen (collection_id, page_id, seen_at) SELECT 1, page_id, now() FROM page
"""


@pytest.mark.parametrize("plans", ["force_custom_plan", "force_generic_plan"])
def test_an_address_with_ten_thousand_pages(dsn: str, plans: str) -> None:
    server = Server(dsn, plans)
    store = connect(server.connection)
    server.connection.execute(FILL, {"pages": 5_000})
    server.connection.execute(ADDRESSES)
    store.set_policy("a.example", ignore_parameters="sid", sample_every=2**31 - 1)
    server.connection.execute("VACUUM (ANALYZE)")
    with server.connection:
        assert server.buffers(lambda _: store.should_fetch("https://a.example/?sid=x")) <= 500
        urls = [f"https://a.example/{n}?sid=1" for n in range(100)]
        assert server.buffers(lambda _: store.should_fetch_many(urls)) <= 2_000
        batch = {"after_page": 9_000, "collection": "default"}
        assert server.buffers(lambda _: fetch(server.connection, "fill_addresses", batch)) <= 7_000
