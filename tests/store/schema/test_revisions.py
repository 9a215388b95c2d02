"""An upgrade to the next revision, and the downgrade, keep all data or change nothing."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from psycopg import conninfo

import pgsimhash.alembic
from pgsimhash import SchemaError, StoreError, connect
from pgsimhash.schema import deployed, migrate
from pgsimhash.sources import read_pages
from tests.conftest import ROOT
from tests.database import run_sql
from tests.refusals import because
from tests.store.content import content, indexed
from tests.store.schema.test_schema import dump

EXAMPLES = ROOT / "examples" / "pages"
SHAPE = ["--schema-only"]
DOTTED, PLAIN = "https://example.com./tide-pools", "https://example.com/tide-pools-print"


@pytest.fixture(autouse=True)
def _next_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Alembic find the revision after the package's newest one."""
    own = Path(migrate.known_revisions().dir)
    folders = [own / "versions", Path(__file__).parent / "next_revision"]
    with_next = ScriptDirectory(own, version_locations=folders)
    monkeypatch.setattr(migrate, "known_revisions", lambda: with_next)


@contextmanager
def package_at(revision: str) -> Iterator[None]:
    """Let the package expect this revision, like its next release."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(deployed, "REVISION", revision)
        yield


@pytest.fixture
def filled(empty_dsn: str) -> str:
    """A database at revision 0001, with all kinds of rows in every table."""
    migrate.upgrade(empty_dsn, "0001", layout="16+16+16+16")
    with connect(empty_dsn, keep_markdown=True) as store:
        store.start_run("first")
        list(store.ingest_many(read_pages([EXAMPLES])))
        list(store.ingest_many(read_pages([EXAMPLES])))
        store.ingest(DOTTED, (EXAMPLES / "tide-pools.html").read_bytes())
        store.mark(DOTTED, (EXAMPLES / "town-swifts.html").as_uri(), same=True)
        store.set_policy("example.com", distance=3)
        assert store.save_clusters()
    with connect(empty_dsn, collection="apart", create=True) as store:
        pages = [7, 5, 2**63, 7]
        list(store.add_pages((f"https://example.com/{n}", one) for n, one in enumerate(pages)))
    return empty_dsn


def everything(dsn: str) -> list[object]:
    parts: list[object] = []
    for collection in ("default", "apart"):
        parts += [content(dsn, collection, numbered=True), indexed(dsn, collection)]
    for table in ("clusters", "last_seen", "marks", "collections", "policies", "runs"):
        parts.append(run_sql(dsn, f"SELECT t::text FROM pgsimhash.{table} AS t ORDER BY 1"))
    return parts


def hosts(dsn: str) -> set[str | None]:
    return {host for (host,) in run_sql(dsn, "SELECT host FROM pgsimhash.pages")}


def test_an_upgrade_and_the_downgrade_keep_all_data(filled: str) -> None:
    before, schema = everything(filled), dump(filled, options=SHAPE)
    assert len(content(filled, "default")) > 20
    assert "example.com." in hosts(filled)
    older = pytest.raises(SchemaError, match="run: pgsimhash migrate", check=because("older"))
    with package_at("0002"), older:
        connect(filled)

    migrate.upgrade(filled)
    assert everything(filled) == before
    assert "example.com." not in hosts(filled)
    newer = "upgrade in an up-to-date clone"
    with pytest.raises(SchemaError, match=newer, check=because("newer")):
        connect(filled)
    unfilled = "SELECT FROM pgsimhash.pages WHERE length(markdown) IS DISTINCT FROM markdown_chars"
    assert run_sql(filled, unfilled) == []
    html = (EXAMPLES / "tide-pools-print.html").read_bytes()
    with package_at("0002"), connect(filled) as store:
        found = store.decide(PLAIN, html, scope="host")
        assert (found.kind, found.duplicate_of) == ("duplicate", DOTTED)
        assert [*store.check()] == []

    migrate.downgrade(filled, "0001")
    assert everything(filled) == before
    assert "example.com." in hosts(filled)
    assert dump(filled, options=SHAPE) == schema
    with connect(filled) as store:
        assert store.decide(PLAIN, html, scope="host").kind == "new"
        assert store.ingest(PLAIN, html).kind == "duplicate"
        assert [*store.check()] == []
    with connect(filled, collection="apart") as store:
        assert [match.distance for match in store.find(4)] == [1, 2, 2]
    migrate.upgrade(filled)
    assert "example.com." not in hosts(filled)


@pytest.mark.one_server("Citus sends all statements of a string to the workers")
def test_the_script_between_two_revisions_does_the_same(filled: str) -> None:
    upgraded = migrate.upgrade_sql(since="0001", layout="16+16+16+16")
    output = io.StringIO()
    options = {"as_sql": True, "output_buffer": output}
    context = MigrationContext.configure(dialect_name="postgresql", opts=options)
    pgsimhash.alembic.downgrade(Operations(context), "0001", since="0002")
    assert "CREATE TABLE" not in upgraded
    assert migrate.upgrade_sql(since="0002") == ""
    before, schema = everything(filled), dump(filled, options=SHAPE)
    with psycopg.connect(filled, autocommit=True) as connection:
        connection.execute(upgraded)
        assert "example.com." not in hosts(filled)
        by_script = dump(filled, options=SHAPE)
        connection.execute(output.getvalue())
    assert (everything(filled), dump(filled, options=SHAPE)) == (before, schema)
    migrate.upgrade(filled)
    assert dump(filled, options=SHAPE) == by_script


def test_an_upgrade_that_is_refused_changes_nothing(filled: str) -> None:
    before, schema = everything(filled), dump(filled, options=SHAPE)
    impatient = conninfo.make_conninfo(filled, options="-c lock_timeout=200")
    with psycopg.connect(filled) as reader:
        reader.execute("SELECT FROM pgsimhash.pages LIMIT 1")
        with pytest.raises(StoreError, check=because("locked")):
            migrate.upgrade(impatient)
    assert (everything(filled), dump(filled, options=SHAPE)) == (before, schema)
    with connect(filled) as store:
        assert store.decide(PLAIN, b"<p>too little").kind == "too_short"
