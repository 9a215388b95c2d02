"""A collection is rebuilt in one transaction, which keeps writers out and lookups going."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgsimhash import Store, Verdict, analysis, connect
from pgsimhash.db.schema_names import SCHEMA, schema_of
from pgsimhash.errors import (
    ArgumentError,
    CollectionError,
    NoServerError,
    SchemaError,
    StoreError,
)
from pgsimhash.schema import migrate
from tests.conftest import ON_CITUS, ROOT
from tests.database import (
    after_a_wait,
    end_others,
    insert_page,
    run_sql,
    wait_for_a_lock,
    with_setting,
)
from tests.store.content import content, indexed
from tests.store.maintain.test_rebuilding_scheme import WORDS
from tests.store.maintain.test_rebuilding_verdicts import crawl, put_marks, stored_ones
from tests.store.pages import FAR

A = "https://a.example/1"
PAGE = ROOT / "examples" / "pages" / "tide-pools.html"


def url(simhash: int) -> str:
    return f"https://a.example/{simhash:016x}"


@pytest.fixture
def full(dsn: str) -> Iterator[Store]:
    rng = random.Random(7)
    with connect(dsn) as store:
        store.add_page(url(1), 1)
        list(store.add_pages([(url(n), n) for n in (rng.getrandbits(64) for _ in range(600))]))
        yield store


def during(full: Store, action: Callable[[], object], **options: Any) -> None:
    """Rebuild, and do something in the middle."""

    def meanwhile(step: str, done: int, total: int) -> None:
        if done == 256:
            action()

    full.rebuild(progress=meanwhile, **options)


def everything(dsn: str, schema: str = "pgsimhash") -> list[Any]:
    """The content of all tables about the collection `default`."""
    files = (
        f"SELECT s.path, s.size, s.failed FROM {schema}.sources AS s "
        f"JOIN {schema}.collections AS c USING (collection_id) WHERE c.name = 'default'"
    )
    with connect(dsn, create=False, schema=schema) as store:
        return [
            content(dsn, "default", numbered=True, schema=schema),
            indexed(dsn, "default", schema=schema),
            store.marks(),
            store.policies(),
            store.runs(),
            run_sql(dsn, files),
        ]


@pytest.fixture(params=[None, "wide"], ids=str)
def into_schema(request: pytest.FixtureRequest, dsn: str) -> str | None:
    """Where the new collection is: here, or in a schema with another layout."""
    if request.param:
        migrate.upgrade(dsn, schema=request.param, layout="16+16+16+16", citus=ON_CITUS)
    schema: str | None = request.param
    return schema


def test_everything_is_copied(
    dsn: str, store: Store, tmp_path: Path, into_schema: str | None
) -> None:
    put_marks(dsn, "default")
    store.set_policy("c.example", distance=3, scope="host")
    ingested = stored_ones(list(store.ingest_many(crawl(1))))
    store.start_run("later")
    at = datetime(2026, 3, 1, tzinfo=UTC)
    for fetched_at in (at, at + timedelta(days=3)):
        store.add_page(A, 1 << 50, fetched_at=fetched_at)
    (tmp_path / "a.html").write_text("short")
    list(store.ingest_files([tmp_path]))
    before = everything(dsn)
    assert all(before)

    verdicts: list[Verdict] = []
    made = store.rebuild(into_schema=into_schema, verdicts=verdicts.append)
    assert verdicts[: len(ingested)] == ingested
    assert (made.name, store.collection == made) == ("default", into_schema is None)
    assert everything(dsn, into_schema or SCHEMA) == before
    old = "default" if into_schema else "default-2"
    assert [content(dsn, old, numbered=True), indexed(dsn, old)] == before[:2]
    with (
        connect(dsn, schema=into_schema, create=False) as new,
        connect(dsn, collection=old, create=False) as first,
    ):
        assert list(new.check()) == []
        for record, distance in product(crawl(1, 40), (0, 3, 8)):
            assert new.find(record.simhash, distance) == first.find(record.simhash, distance)
        # Copied ids are not drawn again.
        newest, runs = before[0][-1][0], {run.run_id for run in new.runs()}
        assert new.start_run("after") not in runs
        verdict = new.add_page(url(0), crawl(1)[0].simhash)
        assert verdict.duplicate_of
        assert (verdict.page_id or 0) > newest
        new.mark(url(0), A, same=False)
        assert len(new.marks()) == len(before[2]) + 1
        # Both are independent.
        assert first.get(url(0)) is None
        assert first.add_page(url(0), 3).kind
        assert new.undo_run(new.runs()[0].run_id).deleted == 1
        assert len(content(dsn, old)) == len(before[0]) + 1


def test_a_new_page_is_in_no_crawl_before_it(
    dsn: str, store: Store, into_schema: str | None
) -> None:
    """The batch of the run before names the newest page too, which was deleted."""
    list(store.add_pages([(url(FAR), FAR), (url(1), 1)]))
    store.delete_page(url(1))
    store.rebuild(into_schema=into_schema)
    with connect(dsn, schema=into_schema) as new:
        new.add_page(url(7), 7)
        list(new.add_pages([(url(FAR), FAR), (url(7), 7)]))
        found = analysis.compare_crawls(new).changes
        assert [(one.change, one.url, one.pages) for one in found] == [
            ("new", url(7), 1), ("unchanged", None, 1),
        ]  # fmt: skip


def test_the_result_has_the_requested_settings(full: Store) -> None:
    steps: list[tuple[str, int, int]] = []
    full.rebuild("other", distance=3, progress=lambda *step: steps.append(step))
    assert steps == [("pages", done, 601) for done in (0, 256, 512, 601)]
    assert {one.name: one.default_distance for one in full.collections()} == {
        "default": 3,
        "other": 8,
    }
    full.rebuild(replace=True)
    assert [one.name for one in full.collections()] == ["default", "other"]
    assert full.collection.default_distance == 3


WRITES: list[Callable[[Store], object]] = [
    lambda store: store.add_page(url(7), 7),
    lambda store: list(store.add_pages([(url(n), n) for n in range(40)])),
    lambda store: store.delete_page(url(1)),
    lambda store: store.set_policy("*", distance=2),
    lambda store: store.rebuild("again"),
    lambda store: store.rename("renamed"),
]


def test_writers_are_refused_meanwhile_and_lookups_go_on(
    dsn: str, full: Store, into_schema: str | None
) -> None:
    told: list[str] = []

    def meanwhile() -> None:
        # The function may look up with the store itself.
        assert full.get(url(1)) is not None
        with connect(with_setting(dsn, "lock_timeout=100ms"), retry_seconds=0) as other:
            assert [match.url for match in other.find(1, 0)] == [url(1)]
            for write in WRITES:
                with pytest.raises(CollectionError, match="is being rebuilt: gave up") as refused:
                    write(other)
                told.append(refused.value.reason)
        if into_schema:
            with connect(dsn, collection="busy", create=True, schema=into_schema) as busy:
                assert busy.add_page(url(1), 1).kind == "new"
                assert [one.name for one in busy.collections()] == ["busy"]

    before = content(dsn, "default", numbered=True)
    during(full, meanwhile, into_schema=into_schema)
    assert told == ["being_rebuilt"] * len(WRITES)
    assert content(dsn, "default", numbered=True, schema=into_schema or SCHEMA) == before
    with connect(dsn) as other:
        for write in WRITES:
            write(other)


LATE: list[str | Callable[[Store], object]] = [
    lambda store: store.add_page(url(1 << 45), 1 << 45),
    lambda store: list(store.ingest_files([PAGE])),
    lambda store: store.change_settings(distance=3),
    "SELECT pgsimhash.set_policy('late.example', distance => 1)",
    "SELECT pgsimhash.remove_policy('a.example')",
    "SELECT pgsimhash.unmark(%(a)s, %(b)s)",
    "SELECT pgsimhash.mark(%(a)s, %(c)s, false)",
]
"""Calls of a store and statements, each of which changes one of the counts."""


@pytest.mark.parametrize("write", LATE)
def test_a_write_that_waits_for_the_end_applies_to_the_new_collection(
    dsn: str, store: Store, write: str | Callable[[Store], object]
) -> None:
    def counts(one: Store) -> tuple[int, ...]:
        marks, policies = len(one.marks()), len(one.policies())
        return (
            len(content(dsn, one.collection.name)),
            one.collection.default_distance,
            marks,
            policies,
        )

    urls = {"a": url(0), "b": url(1 << 40), "c": url(0xFF << 20)}
    for number in (0, 1 << 40, 0xFF << 20):
        store.add_page(url(number), number)
    store.mark(urls["a"], urls["b"], same=True)
    store.set_policy("a.example", distance=2)
    before = counts(store)
    with psycopg.connect(dsn) as ending:
        connect(ending).rebuild()
        late = (
            partial(run_sql, dsn, write, urls) if isinstance(write, str) else partial(write, store)
        )
        after_a_wait(ending, late)
    with connect(dsn) as new, connect(dsn, collection="default-2") as old:
        assert sum(a != b for a, b in zip(counts(new), before, strict=True)) == 1
        assert counts(old) == before


def test_a_call_that_began_with_the_old_collection_is_refused(dsn: str, full: Store) -> None:
    def save() -> None:
        with connect(dsn) as other:
            other.save_clusters()

    with psycopg.connect(dsn) as ending:
        connect(ending).rebuild()
        with pytest.raises(StoreError, match="was replaced"):
            after_a_wait(ending, save)


def test_pages_inserted_meanwhile_stay_in_the_old_collection(dsn: str, full: Store) -> None:
    """A plain INSERT waits for the rebuild; then its collection is the old one, or deleted."""

    with ThreadPoolExecutor(1) as pool:
        told: list[Any] = []

        def meanwhile() -> None:
            told.append(pool.submit(insert_page, dsn, "https://b.example/", 7))
            wait_for_a_lock(dsn)

        refused = ""
        try:
            during(full, meanwhile, replace=True)
        except StoreError as error:
            refused = str(error)
        if not refused:
            with pytest.raises(psycopg.errors.ForeignKeyViolation):
                told[0].result(timeout=60)
            return
        told[0].result(timeout=60)
    assert "1 page was inserted" in refused
    assert refused.endswith("the old collection, now 'default-2', is not deleted")
    assert len(content(dsn, "default")) == 601
    with connect(dsn, collection="default-2", create=False) as old:
        assert old.get("https://b.example/") is not None


@pytest.mark.one_server("tables elsewhere cannot refer to those of a distributed schema")
def test_rows_that_refer_to_pages_keep_the_old_collection(dsn: str, full: Store) -> None:
    run_sql(dsn, "CREATE TABLE mine AS SELECT collection_id, page_id FROM pgsimhash.pages")
    run_sql(
        dsn,
        "ALTER TABLE mine ADD FOREIGN KEY (collection_id, page_id) REFERENCES pgsimhash.pages"
        " (collection_id, page_id)",
    )
    with pytest.raises(StoreError, match="the old collection, now 'default-2', is not deleted"):
        full.rebuild(replace=True)
    assert content(dsn, "default") == content(dsn, "default-2")


def test_an_error_or_a_lost_connection_leaves_nothing(
    dsn: str, full: Store, into_schema: str | None
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    for action, error in (
        (interrupt, KeyboardInterrupt),
        (partial(end_others, dsn), NoServerError),
    ):
        with connect(dsn) as store, pytest.raises(error):
            during(store, action, into_schema=into_schema)
    with connect(dsn) as store:
        with pytest.raises(KeyboardInterrupt):
            store.rebuild(into_schema=into_schema, verdicts=interrupt)
        assert [one.name for one in store.collections()] == ["default"]
        assert content(dsn, "default", schema="wide") == [] if into_schema else True
        store.rebuild(into_schema=into_schema, replace=True)
    assert len(content(dsn, "default", schema=into_schema or SCHEMA)) == 601


def test_it_can_be_part_of_a_transaction_of_the_caller(
    dsn: str, full: Store, into_schema: str | None
) -> None:
    with psycopg.connect(dsn) as connection:
        store = connect(connection)
        store.rebuild(distance=3, into_schema=into_schema)
        assert schema_of(connection) == SCHEMA
        assert store.collection.default_distance == (8 if into_schema else 3)
        # The old collection counts again.
        assert store.add_page("https://b.example/", 1, scope="global").distance == 0
        connection.rollback()
    assert [one.default_distance for one in full.collections()] == [8]
    assert content(dsn, "default", schema="wide") == [] if into_schema else True


IMPOSSIBLE: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"into": "default"}, CollectionError, "exists already.*--into"),
    ({"into": "taken"}, CollectionError, "exists already.*--into"),
    ({"scope": "planet"}, ArgumentError, "planet"),
    ({"distance": 13}, ArgumentError, "from 0 to 12"),
    ({"into_schema": "nowhere"}, SchemaError, "not in this database; run: pgsimhash migrate --sch"),
    ({"into_schema": "No-where"}, ArgumentError, "cannot be the schema's name"),
    ({"into_schema": "wide"}, CollectionError, "in the schema wide; delete it, .*--into"),
    ({"into_schema": SCHEMA}, CollectionError, "exists already"),
    ({"into_schema": "narrow"}, ArgumentError, "from 0 to 7"),
    ({"into_schema": "narrow", "distance": 5}, ArgumentError, "policy has distance 8.*give 0 to 7"),
    ({"into_schema": "newer"}, SchemaError, "9999"),
    ({"scheme": "pgsimhash-interop-1"}, ArgumentError, "it reads pages differently; ingest the"),
    ({"scheme": "pgsimhash-text-1"}, ArgumentError, "it reads pages differently; ingest the pages"),
    ({"scheme": WORDS}, CollectionError, "stores no Markdown.*into a new collection, such as"),
    ({"scheme": "none"}, ArgumentError, "there is no scheme 'none'"),
]


def test_impossible_requests_name_the_fix(dsn: str, store: Store) -> None:
    store.add_page(url(1), 1)
    connect(dsn, collection="taken", create=True).close()
    for schema, layout in (("wide", "16+16+16+16"), ("narrow", "32+32"), ("newer", None)):
        migrate.upgrade(dsn, schema=schema, layout=layout)
    connect(dsn, schema="wide").close()
    run_sql(dsn, "UPDATE newer.alembic_version SET version_num = '9999'")
    store.set_policy("a.example", distance=8)
    for options, error, match in IMPOSSIBLE:
        with pytest.raises(error, match=match):
            pytest.fail(f"{options}: {store.rebuild(**options)}")
    assert [one.name for one in store.collections()] == ["default", "taken"]


def test_policies_and_pages_of_the_other_schema_count(dsn: str, store: Store) -> None:
    """The two collections that are compared have one id, in two schemas."""
    migrate.upgrade(dsn, schema="wide", layout="16+16+16+16")
    with connect(dsn, collection="first", create=True, schema="wide") as first:
        first.add_page("https://first.example/", 5)
        assert first.collection.collection_id == store.collection.collection_id
    list(store.add_pages((url(n), n) for n in (FAR, 7, 0)))
    store.set_policy("*", scope="global", distance=1)
    verdicts: list[Verdict] = []
    store.rebuild(into_schema="wide", verdicts=verdicts.append)
    assert [one.duplicate_of for one in verdicts] == [None, "https://first.example/", None]
