"""A collection is copied into another schema of the database, which may have another layout."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pgsimhash import Store, Verdict, connect, maintenance
from pgsimhash.db.schema_names import SCHEMA
from pgsimhash.errors import ArgumentError, CollectionError, SchemaError
from pgsimhash.pages.policies import PolicySettings
from pgsimhash.schema import migrate
from tests.database import run_sql
from tests.refusals import because
from tests.store.content import content
from tests.store.maintain.test_rebuilding import everything
from tests.store.maintain.test_rebuilding_verdicts import crawl, put_marks, stored_ones
from tests.store.test_store import FAR

WIDE = "wide"
NEW = "https://new.example/"


@pytest.fixture(autouse=True)
def two_schemas(dsn: str) -> None:
    migrate.upgrade(dsn, schema=WIDE, layout="16+16+16+16")


def fill(dsn: str, store: Store, folder: Path) -> list[Verdict]:
    """Fill all tables of a collection; return the verdicts of the stored pages."""
    put_marks(dsn, "default")
    at = datetime(2026, 3, 1, tzinfo=UTC)
    maintenance.set_policy(store, "c.example", PolicySettings(distance=3, scope="host"))
    verdicts = list(store.ingest_many(crawl(1)))
    store.start_run("later")
    store.add("https://a.example/1", 1 << 50, fetched_at=at)
    store.add("https://a.example/1", 1 << 50, fetched_at=at + timedelta(days=3))
    (folder / "a.html").write_text("short")
    list(maintenance.ingest_files(store, [folder]))
    return verdicts


def test_everything_is_copied(dsn: str, store: Store, tmp_path: Path) -> None:
    ingested = stored_ones(fill(dsn, store, tmp_path))
    before = everything(dsn)
    assert all(before)
    verdicts: list[Verdict] = []
    copied = maintenance.rebuild(store, into_schema=WIDE, verdicts=verdicts.append)
    assert (copied.name, copied.layout) == ("default", "16+16+16+16")
    assert verdicts[: len(ingested)] == ingested
    assert everything(dsn) == everything(dsn, WIDE) == before
    with connect(dsn, schema=WIDE) as copy:
        assert list(maintenance.check(copy)) == []
        for record in crawl(1, 40):
            for distance in (0, 3, 8):
                assert copy.find(record.simhash, distance) == store.find(record.simhash, distance)
        newest = max(row[0] for row in before[0])
        runs = {run.run_id for run in maintenance.runs(copy)}
        # Copied ids are not drawn again.
        assert copy.start_run("after") not in runs
        verdict = copy.add(NEW, crawl(1)[0].simhash)
        assert verdict.duplicate_of
        assert (verdict.page_id or 0) > newest
        maintenance.mark(copy, NEW, "https://a.example/1", same=False)
        assert len(maintenance.marks(copy)) == len(before[2]) + 1
    # Both are independent, and the store still has the old one.
    assert store.layout == "22+21+21"
    assert store.get(NEW) is None
    assert store.add(NEW, 3).verdict
    assert maintenance.rebuild(store, "moved", into_schema=WIDE, replace=True).name == "moved"
    assert store.status() == []
    assert len(content(dsn, "moved", schema=WIDE)) == len(before[0]) + 1


def test_policies_and_pages_of_the_other_schema_count(dsn: str, store: Store) -> None:
    """The two collections that are compared have one id, in two schemas."""
    with connect(dsn, collection="first", schema=WIDE) as first:
        first.add("https://first.example/", 5)
        assert first.opened.collection_id == store.opened.collection_id
    list(store.add_many((f"https://a.example/{n}", one) for n, one in enumerate((FAR, 7, 0))))
    maintenance.set_policy(store, "*", PolicySettings(scope="global", distance=1))
    verdicts: list[Verdict] = []
    maintenance.rebuild(store, into_schema=WIDE, verdicts=verdicts.append)
    assert [one.duplicate_of for one in verdicts] == [None, "https://first.example/", None]


def test_impossible_requests_name_the_fix(dsn: str, store: Store) -> None:
    store.add(NEW, 1)
    with pytest.raises(SchemaError, match="not in this database; run: pgsimhash migrate --schema"):
        maintenance.rebuild(store, into_schema="nowhere")
    with pytest.raises(ArgumentError, match="cannot be the schema's name"):
        maintenance.rebuild(store, into_schema="No-where")
    maintenance.rebuild(store, into_schema=WIDE)
    with pytest.raises(CollectionError, match=r"delete default --schema wide.*--into"):
        maintenance.rebuild(store, into_schema=WIDE)
    with pytest.raises(CollectionError, check=because("taken")):
        maintenance.rebuild(store, into_schema=SCHEMA)
    migrate.upgrade(dsn, schema="narrow", layout="32+32")
    with pytest.raises(ArgumentError, match="from 0 to 7"):
        maintenance.rebuild(store, into_schema="narrow")
    maintenance.set_policy(store, "a.example", PolicySettings(distance=8))
    with pytest.raises(ArgumentError, match=r"policy has distance 8.*give a smaller"):
        maintenance.rebuild(store, into_schema="narrow", distance=5)
    run_sql(dsn, "UPDATE wide.alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaError, check=because("newer")):
        maintenance.rebuild(store, "other", into_schema=WIDE)
    assert store.add(NEW, 2).verdict == "updated"


def test_a_new_scheme_reads_the_markdown(dsn: str) -> None:
    from tests.store.maintain.test_rebuilding_scheme import WORDS
    from tests.store.test_store import ARTICLE, page

    with connect(dsn, collection="kept", keep_markdown=True) as kept:
        kept.ingest(NEW, page(*ARTICLE))
        kept.ingest(NEW, page(*ARTICLE))
        kept.add("https://a.example/", 1)
        copied = maintenance.rebuild(kept, into_schema=WIDE, scheme=WORDS)
        assert (copied.scheme, kept.scheme) == (WORDS, "pgsimhash-article-1")
    (row,) = content(dsn, "kept", schema=WIDE)
    assert row[0] == NEW
    assert row[-1] is not None
