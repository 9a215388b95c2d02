"""The consistency of a collection's rows: only planted violations are found and repaired."""

import re
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from pgsimhash import SchemaError, Store, connect
from pgsimhash.schema import migrate
from pgsimhash.schema.deployed import create_roles
from pgsimhash.store import maintenance
from tests.conftest import ROOT
from tests.database import dropped_afterwards, new_role, run_sql
from tests.manual import text_of
from tests.refusals import because, sqlstate

PAGES = sorted((ROOT / "examples" / "pages").glob("*.html"))
SITE = "https://example.com/"

PLANTS = {
    "simhash_missing": [
        "UPDATE pgsimhash.pages SET indexed = false WHERE url = 'https://example.com/repair-cafe'",
        "DELETE FROM pgsimhash.pages WHERE page_id = (SELECT max(p.page_id) FROM pgsimhash.pages p "
        "JOIN pgsimhash.pages c USING (simhash) WHERE p.indexed AND NOT c.indexed)",
        "INSERT INTO pgsimhash.pages (collection_id, url, simhash, indexed) "
        "VALUES (1, 'x', 77, false)",
    ],
    "original_missing": [
        "DELETE FROM pgsimhash.pages WHERE page_id IN "
        "(SELECT duplicate_of FROM pgsimhash.pages WHERE distance > 0)",
        "UPDATE pgsimhash.pages SET duplicate_of = 0 WHERE page_id = "
        "(SELECT max(page_id) FROM pgsimhash.pages WHERE duplicate_of IS NOT NULL)",
        "UPDATE pgsimhash.pages SET duplicate_of = page_id, distance = 0 WHERE page_id = "
        "(SELECT max(page_id) FROM pgsimhash.pages)",
    ],
    "distance_wrong": [
        "UPDATE pgsimhash.pages SET simhash = simhash # 1 WHERE page_id = "
        "(SELECT max(page_id) FROM pgsimhash.pages WHERE duplicate_of IS NOT NULL)",
        "UPDATE pgsimhash.pages SET distance = 7 WHERE page_id = "
        "(SELECT max(page_id) FROM pgsimhash.pages WHERE duplicate_of IS NOT NULL)",
        "UPDATE pgsimhash.pages SET distance = NULL WHERE page_id = "
        "(SELECT max(page_id) FROM pgsimhash.pages WHERE duplicate_of IS NOT NULL)",
    ],
    "seen_orphaned": [
        "INSERT INTO pgsimhash.last_seen (collection_id, page_id, seen_at) VALUES (1, 0, now())",
        "TRUNCATE pgsimhash.pages",
    ],
}
CASES = [(reason, plant) for reason, plants in PLANTS.items() for plant in plants]


FOREIGN = {
    "CREATE FUNCTION pgsimhash.f() RETURNS int LANGUAGE sql RETURN 1; "
    "ALTER FUNCTION pgsimhash.f OWNER TO {role}": ("foreign_owner", "function pgsimhash.f()"),
    "CREATE TABLE pgsimhash.t (); ALTER TABLE pgsimhash.t OWNER TO {role}":
        ("foreign_owner", "table pgsimhash.t"),
    "CREATE TRIGGER t AFTER INSERT ON pgsimhash.clusters EXECUTE FUNCTION public.spy()":
        ("foreign_trigger", "trigger t on table pgsimhash.clusters"),
    "CREATE TRIGGER t BEFORE UPDATE ON pgsimhash.runs FOR EACH ROW WHEN (public.look()) "
    "EXECUTE FUNCTION suppress_redundant_updates_trigger()":
        ("foreign_trigger", "trigger t on table pgsimhash.runs"),
    "CREATE RULE r AS ON INSERT TO pgsimhash.clusters DO ALSO NOTHING":
        ("foreign_rule", "rule r on table pgsimhash.clusters"),
    "GRANT TRIGGER ON pgsimhash.pages TO {role}": ("foreign_grant", "table pgsimhash.pages"),
    "GRANT TRIGGER ON pgsimhash.pages TO PUBLIC": ("foreign_grant", "table pgsimhash.pages"),
    "GRANT CREATE ON SCHEMA pgsimhash TO {role}": ("foreign_grant", "schema pgsimhash"),
    "GRANT REFERENCES ON pgsimhash.pages TO {role}": ("foreign_grant", "table pgsimhash.pages"),
    "GRANT REFERENCES (collection_id, page_id) ON pgsimhash.pages TO PUBLIC":
        ("foreign_grant", "table pgsimhash.pages"),
    "GRANT ALL (collection_id) ON pgsimhash.collections TO {role}":
        ("foreign_grant", "table pgsimhash.collections"),
    "CREATE TABLE public.t (c int, p bigint, CONSTRAINT k FOREIGN KEY (c, p) "
    "REFERENCES pgsimhash.pages ON DELETE CASCADE); ALTER TABLE public.t OWNER TO {role}":
        ("foreign_key", "constraint k on table t"),
    "CREATE TABLE public.t (c int CONSTRAINT k REFERENCES pgsimhash.collections "
    "ON UPDATE SET NULL); ALTER TABLE public.t OWNER TO {role}":
        ("foreign_key", "constraint k on table t"),
    "CREATE TABLE public.t (c int CONSTRAINT k REFERENCES pgsimhash.collections); "
    "ALTER TABLE public.t OWNER TO {role}": ("foreign_key", "constraint k on table t"),
}  # fmt: skip
"""Statements of an administrator that let another role in, and what is found."""


def ingest_all(store: Store, site: str = SITE) -> None:
    list(store.ingest_many([(f"{site}{path.stem}", path.read_bytes()) for path in PAGES]))


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "_SLICE", 5)


def test_each_reason_is_planted_and_in_the_manual() -> None:
    _, section = text_of("maintain.md").split("\n## Checking\n")
    reasons = {*PLANTS, *(reason for reason, _ in FOREIGN.values())}
    assert sorted(reasons) == sorted(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


@pytest.mark.parametrize(("reason", "plant"), CASES)
def test_a_planted_violation_is_found_and_repaired(
    dsn: str, store: Store, reason: str, plant: str
) -> None:
    ingest_all(store)
    ingest_all(store, "https://mirror.example/")
    ingest_all(store)
    run_sql(dsn, plant)
    found = list(store.check())
    assert reason in {one.reason for one in found}
    # The rows of a page that was deleted without the package, and of its copies.
    others = {"seen_orphaned", "original_missing"}
    if plant.startswith(("DELETE", "UPDATE pgsimhash.pages SET simhash")):
        others.add("simhash_missing")
    assert {one.reason for one in found} <= {reason, *others}
    assert not any(one.repaired for one in found)
    whole = run_sql(dsn, "SELECT reason, page_id FROM pgsimhash.check_collection()")
    assert sorted(map(str, whole)) == sorted(str((one.reason, one.page_id)) for one in found)
    repaired = list(store.check(repair=True))
    assert {one.reason for one in repaired} >= {one.reason for one in found}
    assert all(one.repaired for one in repaired)
    assert list(store.check()) == []


def test_concurrent_writers_cause_no_false_alarm(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Concurrent repairs change nothing either."""
    monkeypatch.setattr(maintenance, "_SLICE", 50)
    done = threading.Event()

    def write(name: str) -> None:
        with connect(dsn) as store:
            for number in range(0, 6_000, 50):
                if done.is_set() and number >= 300:
                    break
                some = range(number, number + 50)
                pages = ((f"{SITE}{name}/{n % 700}", n * 0x9E3779B9) for n in some)
                list(store.add_pages(pages))
                store.delete_page(f"{SITE}{name}/{number}")

    with ThreadPoolExecutor(2) as pool, connect(dsn) as store:
        writing = pool.map(write, "ab")
        try:
            found = [one for number in range(12) for one in store.check(repair=number > 6)]
        finally:
            done.set()
        list(writing)
    assert found == []


def test_nothing_is_written_without_repair(dsn: str) -> None:
    with connect(dsn) as store:
        ingest_all(store)
    with connect(f"{dsn} options='-c default_transaction_read_only=on'", create=False) as store:
        assert list(store.check()) == []


def test_an_invalid_slice_is_refused(connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.Error, check=sqlstate("PS010"), match="there is no slice 3 of 3"):
        connection.execute(
            "INSERT INTO pgsimhash.collections (name, scheme) VALUES ('default', 'x');"
            "SELECT pgsimhash.check_collection(false, 3, 3)"
        )


@pytest.fixture
def stranger(dsn: str) -> Iterator[str]:
    """A role that owns two functions in ``public``."""
    with new_role(dsn) as name:
        run_sql(
            dsn,
            f"""
            CREATE FUNCTION public.spy() RETURNS trigger LANGUAGE plpgsql
                AS 'BEGIN RETURN NULL; END';
            CREATE FUNCTION public.look() RETURNS boolean LANGUAGE plpgsql
                AS 'BEGIN RETURN true; END';
            ALTER FUNCTION public.spy OWNER TO {name};
            ALTER FUNCTION public.look OWNER TO {name}
            """,
        )
        yield name


@pytest.mark.one_server("Citus refuses such triggers and rules")
@pytest.mark.parametrize("statement", FOREIGN)
def test_code_of_other_roles_is_found_and_not_deployed_over(
    dsn: str,
    store: Store,
    stranger: str,
    statement: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    reason, described = FOREIGN[statement]
    run_sql(dsn, statement.format(role=stranger))
    (found,) = store.check(repair=True)
    assert (found.reason, found.collection, found.repaired) == (reason, None, False)
    role = "public" if reason == "foreign_rule" or "PUBLIC" in statement else stranger
    assert found.object == f"{described}, of the role {role}"
    if reason == "foreign_grant":
        migrate.upgrade(dsn)
        assert re.search(rf'a grant on {described} .* lets role "{role}" run code', caplog.text)
    else:
        with pytest.raises(SchemaError, match=role, check=because("other_owner")):
            migrate.upgrade(dsn)


@pytest.mark.one_server("the trigger of the test")
def test_triggers_and_roles_of_the_owner_are_no_violations(dsn: str, store: Store) -> None:
    roles = create_roles(dsn, f"test_{uuid.uuid4().hex[:12]}")
    member = f"{roles[0]}_member"
    with dropped_afterwards(dsn, [*roles, member]):
        run_sql(
            dsn,
            f"""
            CREATE TRIGGER mine BEFORE UPDATE ON pgsimhash.runs FOR EACH ROW
                EXECUTE FUNCTION suppress_redundant_updates_trigger();
            CREATE ROLE {member} IN ROLE {roles[0]};
            ALTER FUNCTION pgsimhash.host_of OWNER TO {member}
            """,
        )
        assert list(store.check()) == []
        migrate.upgrade(dsn)
