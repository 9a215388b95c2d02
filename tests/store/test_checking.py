"""Whether a collection is sound: what is planted is found, explained and mended, no more."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

import numpy as np
import psycopg
import pytest

from pgsimhash import Store, connect, maintenance
from pgsimhash.errors import StoreError
from pgsimhash.maintenance.violations import REASONS, Violation
from pgsimhash.policies import PolicySettings
from pgsimhash.testing import fresh_database
from tests.conftest import ROOT
from tests.manual import text_of
from tests.refusals import because

PAGES = sorted((ROOT / "examples" / "pages").glob("*.html"))
SITE = "https://example.com/"


def ingest_all(store: Store, site: str = SITE) -> None:
    pages = [(f"{site}{path.stem}", path.read_bytes()) for path in PAGES]
    assert {verdict.verdict for verdict in store.ingest_many(pages)} > {"identical"}


def live(dsn: str) -> None:
    """Do to real pages all that may be done to them."""
    with connect(dsn) as store:
        ingest_all(store)
    with connect(dsn, collection="lived in", keep_markdown=True) as store:
        maintenance.set_policy(store, "mirror.example", PolicySettings(scope="host", distance=3))
        maintenance.set_policy(store, "paper.example", PolicySettings(scope="global"))
        for site in (SITE, "https://mirror.example/", "https://paper.example/"):
            ingest_all(store, site)
        store.ingest(f"{SITE}tide-pools", (ROOT / "examples/pages/town-swifts.html").read_bytes())
        maintenance.mark(store, f"{SITE}lighthouse", f"{SITE}seilfaehre", same=True)
        maintenance.mark(store, f"{SITE}town-swifts", f"{SITE}tide-pools", same=False)
        ingest_all(store)
        store.add_simhashes(np.arange(9, dtype=np.uint64))
        store.delete(f"{SITE}night-train")
        store.start_run("undone")
        ingest_all(store, "https://other.example/")
        maintenance.undo(store)
        maintenance.rebuild(store, layout="16+16+16+16", then="swap")
        maintenance.rebuild(store, "judged", layout="5 choose 2", distance=3, then="separate")
        maintenance.rebuild(store, "following", then="follow")
        store.delete_host("mirror.example")
        store.expire(timedelta(days=1))
        ingest_all(store, "https://late.example/")


@pytest.fixture(scope="module")
def lived_in(server_dsn: str, pgsimhash_template: str) -> Iterator[str]:
    """The name of a database with collections to which much was done."""
    with fresh_database(server_dsn, pgsimhash_template) as dsn:
        live(dsn)
        with psycopg.connect(dsn) as connection:
            name = connection.info.dbname
        yield name


@pytest.fixture
def hand(server_dsn: str, lived_in: str) -> Iterator[psycopg.Connection]:
    """A connection to a copy of that database."""
    with (
        fresh_database(server_dsn, lived_in) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        yield connection


def everything(hand: psycopg.Connection, *, repair: bool = False) -> list[Violation]:
    return list(maintenance.check_all(hand, repair=repair))


class Plant(NamedTuple):
    """What is done behind the package's back, and how many violations that makes; 0 is some."""

    statements: str
    found: int = 1


EVADING = """
UPDATE pg_index SET indisready = false WHERE indexrelid = 'pgsimhash.{index}'::regclass;
{insert};
UPDATE pg_index SET indisready = true WHERE indexrelid = 'pgsimhash.{index}'::regclass
"""
A_PAGE = (
    "INSERT INTO pgsimhash.pages (collection_id, url, simhash) "
    "SELECT collection_id, 'https://z.example/', 77 FROM pgsimhash.collections "
    "WHERE name = 'default'"
)

PLANTS: dict[str, list[Plant]] = {
    "index_invalid": [
        Plant(
            "UPDATE pg_index SET indisvalid = false "
            "WHERE indexrelid = 'pgsimhash.simhashes_prefix_2_idx'::regclass"
        ),
    ],
    "index_missing": [
        Plant("DROP INDEX pgsimhash.simhashes_prefix_3_idx, pgsimhash.pages_original_idx", 2)
    ],
    "index_changed": [
        Plant(
            "DROP INDEX pgsimhash.simhashes_prefix_2_idx; "
            "CREATE INDEX simhashes_prefix_2_idx ON pgsimhash.simhashes (prefix_3, simhash)"
        ),
        Plant(
            "DROP INDEX pgsimhash.simhashes_prefix_2_idx; "
            "CREATE INDEX simhashes_prefix_2_idx ON pgsimhash.simhashes (prefix_2, simhash) "
            "WHERE NOT bare"
        ),
        Plant(
            "DROP INDEX pgsimhash.pages_url_idx; CREATE INDEX pages_url_idx "
            "ON pgsimhash.pages (collection_id, url, page_id) WHERE distance IS NULL"
        ),
        Plant(
            "DROP INDEX pgsimhash.pages_simhash_idx; CREATE UNIQUE INDEX pages_simhash_idx "
            "ON pgsimhash.pages (collection_id, simhash, page_id)"
        ),
    ],
    "table_missing": [Plant("DROP TABLE pgsimhash.loads")],
    "index_disagrees": [
        Plant(EVADING.format(index="pages_url_idx", insert=A_PAGE)),
        Plant(EVADING.format(index="pages_simhash_idx", insert=A_PAGE)),
        Plant(EVADING.format(index="simhashes_prefix_2_idx", insert=A_PAGE)),
    ],
    "constraint_missing": [
        Plant("ALTER TABLE pgsimhash.pages DROP CONSTRAINT pages_url_length"),
    ],
    "constraint_unchecked": [
        Plant(
            "ALTER TABLE pgsimhash.pages DROP CONSTRAINT pages_url_length; "
            "ALTER TABLE pgsimhash.pages ADD CONSTRAINT pages_url_length "
            "CHECK (octet_length(url) BETWEEN 1 AND 2048) NOT VALID"
        ),
    ],
    "trigger_missing": [Plant("DROP TRIGGER put_simhashes ON pgsimhash.pages")],
    "trigger_disabled": [
        Plant("ALTER TABLE pgsimhash.simhashes DISABLE TRIGGER note_inserted"),
    ],
    "function_missing": [
        Plant("DROP FUNCTION pgsimhash.similarity"),
        Plant("DROP FUNCTION pgsimhash.near_duplicates(bigint, integer, text)"),
    ],
    "column_changed": [
        Plant("ALTER TABLE pgsimhash.pages ALTER page_id DROP IDENTITY"),
        Plant("ALTER TABLE pgsimhash.simhashes ALTER COLUMN prefix_2 DROP EXPRESSION"),
    ],
    "sequence_behind": [
        Plant("SELECT setval('pgsimhash.pages_page_id_seq', 1)"),
        Plant("ALTER SEQUENCE pgsimhash.runs_run_id_seq RESTART"),
    ],
    "prefix_wrong": [
        # A server that filled the columns otherwise leaves the same behind.
        Plant(
            "ALTER TABLE pgsimhash.simhashes ALTER COLUMN prefix_3 DROP EXPRESSION; "
            "UPDATE pgsimhash.simhashes SET prefix_3 = prefix_3 # 1 WHERE ctid = '(0,2)'"
        ),
    ],
    "simhash_missing": [
        Plant(
            "DELETE FROM pgsimhash.simhashes AS s USING pgsimhash.pages AS p "
            "WHERE p.url = 'https://example.com/repair-cafe' "
            "AND s.collection_id = p.collection_id AND s.simhash = p.simhash",
            0,
        ),
        Plant(
            "ALTER TABLE pgsimhash.pages DISABLE TRIGGER put_simhashes; "
            f"{A_PAGE}; ALTER TABLE pgsimhash.pages ENABLE TRIGGER put_simhashes"
        ),
    ],
    "simhash_unused": [
        Plant(
            "INSERT INTO pgsimhash.simhashes (collection_id, simhash, bare) "
            "SELECT collection_id, 5, false FROM pgsimhash.collections WHERE name = 'default'"
        ),
        Plant("DELETE FROM pgsimhash.pages WHERE url = 'https://late.example/town-swifts'", 0),
    ],
    "simhash_astray": [
        Plant(
            "INSERT INTO pgsimhash.simhashes_16_16_16_16 (collection_id, simhash, bare) "
            "SELECT collection_id, 5, false FROM pgsimhash.collections WHERE name = 'default' "
            "UNION ALL SELECT 9999, 5, false",
            2,
        ),
    ],
    "page_astray": [
        Plant(
            "ALTER TABLE pgsimhash.pages DISABLE TRIGGER put_simhashes; "
            "INSERT INTO pgsimhash.pages (collection_id, url, simhash) VALUES (9999, 'x', 1); "
            "ALTER TABLE pgsimhash.pages ENABLE TRIGGER put_simhashes"
        ),
    ],
    "original_missing": [
        Plant(
            "UPDATE pgsimhash.pages SET duplicate_of = 0 WHERE duplicate_of IS NOT NULL "
            "AND url = 'https://late.example/town-swifts'"
        ),
    ],
    "original_later": [
        Plant(
            "UPDATE pgsimhash.pages SET duplicate_of = page_id, distance = 0 "
            "WHERE url = 'https://late.example/town-swifts'"
        ),
    ],
    "distance_wrong": [
        Plant(
            "UPDATE pgsimhash.pages SET distance = 7 WHERE duplicate_of IS NOT NULL "
            "AND url = 'https://late.example/town-swifts'"
        ),
        Plant(
            "UPDATE pgsimhash.pages SET distance = NULL WHERE duplicate_of IS NOT NULL "
            "AND url = 'https://late.example/town-swifts'"
        ),
    ],
    "run_unknown": [
        Plant("DELETE FROM pgsimhash.runs AS r USING pgsimhash.collections AS c "
              "WHERE c.name = 'default' AND r.collection_id = c.collection_id", 23),
        Plant("UPDATE pgsimhash.runs AS r SET last_page = last_page - 1 "
              "FROM pgsimhash.collections AS c "
              "WHERE c.name = 'default' AND r.collection_id = c.collection_id"),
    ],
    "run_miscounted": [
        Plant("UPDATE pgsimhash.runs AS r SET pages = pages + 1 "
              "FROM pgsimhash.collections AS c "
              "WHERE c.name = 'default' AND r.collection_id = c.collection_id"),
        Plant("UPDATE pgsimhash.runs AS r SET pages = pages - 3, duplicates = duplicates - 3 "
              "FROM pgsimhash.collections AS c "
              "WHERE c.name = 'default' AND r.collection_id = c.collection_id"),
    ],
    "seen_astray": [
        Plant("INSERT INTO pgsimhash.last_seen (collection_id, page_id, seen_at) "
              "SELECT collection_id, 0, now() FROM pgsimhash.collections WHERE name = 'default'"),
    ],
    "marks_contrary": [
        Plant("INSERT INTO pgsimhash.marks (collection_id, url_a, url_b, same) "
              "SELECT collection_id, url_a, url_b, NOT same FROM pgsimhash.marks "
              "WHERE NOT same LIMIT 1"),
    ],
    "distance_unanswered": [
        Plant("UPDATE pgsimhash.layouts SET largest_distance = 7 WHERE name = '5 choose 2'; "
              "UPDATE pgsimhash.collections SET default_distance = 8 WHERE name = 'judged'"),
        Plant("UPDATE pgsimhash.layouts SET largest_distance = 2 WHERE name = '5 choose 2'; "
              "UPDATE pgsimhash.collections SET default_distance = 2 WHERE name = 'judged'"),
    ],
}  # fmt: skip
"""By reason; ``two_originals`` is another check's."""

ALONG: dict[str, set[str]] = {
    "column_changed": {"prefix_wrong"},
    "prefix_wrong": {"column_changed", "index_disagrees"},
    "index_disagrees": set(),
    "run_unknown": {"run_miscounted"},
    "trigger_missing": set(),
}
"""What else may be found with it."""

CASES = [(reason, number) for reason, plants in PLANTS.items() for number in range(len(plants))]


def test_each_reason_is_planted_and_in_the_manual() -> None:
    assert {*PLANTS, "two_originals"} == set(REASONS)
    _, section = text_of("maintain.md").split("\n## Checking\n")
    told = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert sorted(told) == sorted(REASONS)


def test_a_collection_that_much_was_done_to_is_sound(hand: psycopg.Connection) -> None:
    assert everything(hand) == []
    names = {row[0] for row in hand.execute("SELECT name FROM pgsimhash.collections").fetchall()}
    assert names == {"default", "lived in", "lived in-2", "judged", "following"}
    for name in names:
        with connect(hand, collection=name, create=False) as store:
            assert list(maintenance.check(store, repair=True)) == []


@pytest.mark.parametrize(("reason", "number"), CASES)
def test_what_is_planted_is_found_explained_and_mended(
    hand: psycopg.Connection, reason: str, number: int
) -> None:
    plant = PLANTS[reason][number]
    for statement in plant.statements.split(";"):
        hand.execute(statement)
    found = everything(hand)
    own = [one for one in found if one.reason == reason]
    assert len(own) == plant.found or plant.found == 0 < len(own)
    assert {one.reason for one in found} <= {reason} | ALONG.get(reason, set())
    for one in own:
        assert not one.repaired
        assert "{" not in one.what + one.repair

    mended = everything(hand, repair=True)
    assert [one.reason for one in mended if one.reason == reason] == [reason] * len(own)
    left = everything(hand)
    if REASONS[reason].mended:
        assert all(one.repaired for one in mended if one.reason == reason)
        assert {one.reason for one in left} <= {"column_changed"}
    else:
        assert {one.reason for one in left} == {reason}


def test_every_function_that_is_deployed_is_missed_where_it_is_not(
    hand: psycopg.Connection,
) -> None:
    deployed = hand.execute(
        "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'pgsimhash'::regnamespace"
    ).fetchall()
    for (function,) in deployed:
        hand.execute(f"DROP ROUTINE IF EXISTS {function} CASCADE".encode())
    missed = [one for one in everything(hand) if one.reason == "function_missing"]
    assert len(missed) == len(deployed) > 80


def test_two_near_copies_that_are_both_originals_are_told_of_where_that_is_certain(
    dsn: str,
) -> None:
    with connect(dsn) as store:
        ingest_all(store)
        assert list(maintenance.check(store, verdicts=True)) == []
        with psycopg.connect(dsn) as hand:
            hand.execute(
                "UPDATE pgsimhash.pages SET duplicate_of = NULL, distance = NULL "
                "WHERE url LIKE '%/tide-pools-redesign'"
            )
        assert list(maintenance.check(store)) == []
        (found,) = maintenance.check(store, verdicts=True, repair=True)
        assert found.reason == "two_originals"
        assert not found.repaired
        assert str(found.where["original"]).startswith(f"{SITE}tide-pools")
        maintenance.rebuild(store, rejudge=True)
        assert list(maintenance.check(store, verdicts=True)) == []


def test_marks_policies_and_updates_are_no_two_originals(dsn: str) -> None:
    with connect(dsn) as store:
        maintenance.set_policy(store, "mirror.example", PolicySettings(scope="host"))
        first = [(f"{SITE}a", 0), ("https://mirror.example/a", 1), (f"{SITE}b", 2**40)]
        list(store.add_many(first))
        maintenance.mark(store, f"{SITE}a", f"{SITE}b", same=False)
        list(store.add_many([(f"{SITE}b", 3), (f"{SITE}a", 5), (f"{SITE}c", 7)]))
        store.add_simhashes(np.array([9], dtype=np.uint64))
        list(store.add_many([(f"{SITE}d", 9), (f"{SITE}e", 2**41)]))
        assert list(maintenance.check(store, verdicts=True)) == []


def test_writers_that_go_on_make_no_false_alarm(dsn: str) -> None:
    """Nor do repairs meanwhile change anything."""
    done = threading.Event()

    def write(name: str) -> None:
        with connect(dsn) as store:
            number = 0
            while not done.is_set() or number < 300:
                some = range(number, number + 50)
                pages = ((f"{SITE}{name}/{n % 700}", n * 0x9E3779B9) for n in some)
                list(store.add_many(pages))
                store.delete(f"{SITE}{name}/{number}")
                store.add_simhashes(np.arange(number, number + 9, dtype=np.uint64))
                number += 50

    threads = [threading.Thread(target=write, args=[name]) for name in "ab"]
    for thread in threads:
        thread.start()
    try:
        with psycopg.connect(dsn, autocommit=True) as hand:
            found = [one for number in range(12) for one in everything(hand, repair=number > 6)]
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert found == []


def test_nothing_is_written_without_repair(dsn: str) -> None:
    connect(dsn).close()
    with connect(f"{dsn} options='-c default_transaction_read_only=on'", create=False) as store:
        assert list(maintenance.check(store, verdicts=True)) == []


def test_no_sequence_is_left_without_a_number(dsn: str) -> None:
    with connect(dsn) as store, psycopg.connect(dsn, autocommit=True) as hand:
        hand.execute(
            A_PAGE.replace("(coll", "(page_id, coll").replace(
                "SELECT", "SELECT 9223372036854775807,"
            )
        )
        (found,) = maintenance.check(store, repair=True)
        assert (found.reason, found.repaired) == ("sequence_behind", False)
        assert "no number comes after" in found.repair
        assert store.add(SITE, 5).verdict == "new"


def test_a_transaction_of_the_caller_is_refused(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        with pytest.raises(StoreError, check=because("needs_autocommit")):
            list(maintenance.check_all(connection))
        with pytest.raises(StoreError, check=because("needs_autocommit")):
            list(maintenance.check(connect(connection)))


def test_what_the_server_refuses_to_mend_is_told_and_left(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as hand:
        hand.execute("ALTER TABLE pgsimhash.pages DROP CONSTRAINT pages_url_length")
        hand.execute(
            "INSERT INTO pgsimhash.collections (name, scheme) VALUES ('default', 'pgsimhash-5')"
        )
        hand.execute(A_PAGE.replace("https://z.example/", ""))
        hand.execute(
            "ALTER TABLE pgsimhash.pages ADD CONSTRAINT pages_url_length "
            "CHECK (octet_length(url) BETWEEN 1 AND 2048) NOT VALID"
        )
        (left,) = everything(hand, repair=True)
        assert not left.repaired
        assert "the server refuses" in left.repair
        assert "pages_url_length" in left.repair
