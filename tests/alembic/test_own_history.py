"""The schema as one step of a project's own history."""

import re
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import create_engine, text

import pgsimhash
import pgsimhash.alembic
from pgsimhash.db.connections import open_connection
from pgsimhash.db.schema_names import REVISION
from pgsimhash.schema import migrate
from pgsimhash.testing import url_of_dsn
from tests.alembic.conftest import Project
from tests.database import let, run_sql
from tests.programs import PGSIMHASH, run_program, wait_until
from tests.refusals import because
from tests.store.schema.test_schema import dump

UP = 'pgsimhash.alembic.upgrade(op, revision="0001")'
DOWN = "pgsimhash.alembic.downgrade(op)"


def extend(project: Project) -> None:
    """Add the schema in a second revision, and an index in a third."""
    project.revision("0002", UP, DOWN, below="0001")
    made = 'op.create_index("articles_url_idx", "articles", ["url"])'
    project.revision("0003", made, 'op.drop_index("articles_url_idx")', below="0002")
    with (project.folder / "models.py").open("a") as models:
        models.write('\n\nfrom sqlalchemy import Index\nIndex("articles_url_idx", Article.url)\n')


@pytest.fixture
def history(project: Project) -> Project:
    extend(project)
    return project


def versions(project: Project) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    return (
        project.rows("SELECT version_num FROM public.alembic_version"),
        project.rows("SELECT version_num FROM pgsimhash.alembic_version"),
    )


def test_up_down_and_up_again(history: Project, dsn: str) -> None:
    history.alembic("upgrade", "head")
    assert versions(history) == ([("0003",)], [(REVISION,)])
    own = {"public.articles", "public.alembic_version"}
    deployed = {name for name in history.tables() if name.startswith("pgsimhash.")}
    assert history.tables() == deployed | own
    # It equals the schema of `pgsimhash migrate`, which finds nothing to do.
    by_route = dump(history.dsn)
    assert set(dump(dsn).splitlines()) <= set(by_route.splitlines())
    migrate.upgrade(history.dsn)
    assert dump(history.dsn) == by_route

    history.alembic("downgrade", "0001")
    assert history.tables() == own
    history.alembic("upgrade", "head")
    assert dump(history.dsn) == by_route
    # An existing schema stays.
    history.alembic("downgrade", "0001")
    migrate.upgrade(history.dsn)
    with pgsimhash.connect(history.dsn) as store:
        store.add_page("https://example.com/", 7)
    history.alembic("upgrade", "head")
    with pgsimhash.connect(history.dsn) as store:
        assert len(store.find(7)) == 1
    # A second downgrade finds nothing to do.
    migrate.downgrade(history.dsn)
    history.alembic("downgrade", "base")
    assert {name for name in history.tables() if "articles" in name or "simhash" in name} <= {
        "pgsimhash.alembic_version"
    }


def test_another_layout_of_an_existing_schema_is_refused(history: Project) -> None:
    migrate.upgrade(history.dsn)
    history.revision("0002", UP.replace(")", ', layout="32+32")'), DOWN, below="0001")
    assert "has layout '22+21+21', not '32+32'" in history.alembic("upgrade", "head", fails=True)


@pytest.mark.one_server("Citus sends all statements of a string to the workers")
def test_a_script_does_the_same_for_any_layout_and_paramstyle(history: Project) -> None:
    history.revision("0002", UP.replace(")", ', layout="32+32")'), DOWN, below="0001")
    up = history.alembic("upgrade", "head", "--sql")
    assert up.startswith("BEGIN;")
    assert up.rstrip().endswith("COMMIT;")
    with psycopg.connect(history.dsn, autocommit=True) as connection:
        connection.execute("SET search_path = public, pg_temp")
        connection.execute(up.encode())
        assert connection.execute("SHOW search_path").fetchone() == ("public, pg_temp",)
    assert versions(history) == ([("0003",)], [(REVISION,)])
    by_script = dump(history.dsn)
    with pgsimhash.connect(history.dsn) as store:
        store.add_page("https://example.com/", 7)
        assert (store.collection.layout, len(store.find(7))) == ("32+32", 1)
    run_sql(history.dsn, history.alembic("downgrade", "0003:base", "--sql"))
    assert {name for name in history.tables() if "articles" in name or "pgsimhash" in name} == set()
    history.alembic("upgrade", "head")
    assert dump(history.dsn) == by_script
    history.change("history/env.py", 'dialect_opts={"paramstyle": "named"},', "")
    assert history.alembic("upgrade", "head", "--sql") == up


@pytest.mark.parametrize("place", ["within", "after"])
def test_a_failure_leaves_nothing(history: Project, place: str) -> None:
    if place == "within":
        # The tables exist, but without a recorded revision.
        run_sql(history.dsn, "CREATE SCHEMA pgsimhash")
        run_sql(history.dsn, "CREATE TABLE pgsimhash.pages ()")
    else:
        history.revision("0004", "raise RuntimeError('no more')", below="0003")
    before = history.tables()
    history.alembic("upgrade", "head", fails=True)
    assert history.tables() == before


def test_a_second_schema(project: Project) -> None:
    project.revision(
        "0002", 'pgsimhash.alembic.upgrade(op, revision="0001")\n'
        '    pgsimhash.alembic.upgrade(op, revision="0001", schema="crawl")',
        'pgsimhash.alembic.downgrade(op, schema="crawl")', below="0001",
    )  # fmt: skip
    project.configure(include_schemas="True")
    project.alembic("upgrade", "head")
    for name in ("pgsimhash", "crawl"):
        assert project.rows(f"SELECT version_num FROM {name}.alembic_version") == [(REVISION,)]
        with pgsimhash.connect(project.dsn, schema=name) as store:
            store.add_page(f"https://example.com/{name}", 7)
            assert [match.url for match in store.find(7)] == [f"https://example.com/{name}"]
    project.alembic("check")
    project.alembic("downgrade", "0001")
    assert {name.split(".")[0] for name in project.tables()} == {"public", "pgsimhash"}
    assert project.rows("SELECT url FROM pgsimhash.pages") == [("https://example.com/pgsimhash",)]


def test_autogenerate_proposes_nothing(project: Project) -> None:
    """Before the schema exists, while it exists, and afterwards."""
    project.configure(include_schemas="True")
    project.alembic("upgrade", "0001")
    assert "pgsimhash" not in project.autogenerated()
    extend(project)
    project.alembic("upgrade", "head")
    project.alembic("check")
    assert "op." not in project.autogenerated().split("def upgrade")[1]
    project.revision("0004", DOWN, UP, below="0003")
    project.alembic("upgrade", "head")
    project.alembic("check")
    project.alembic("downgrade", "0003")
    project.revision("0004", "pass", below="0003")
    project.alembic("upgrade", "head")
    project.alembic("check")


def test_autogenerate_drops_no_table_of_a_search_path(history: Project) -> None:
    history.alembic("upgrade", "head")
    history.rows(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pgsimhash', "
        "current_database()); END $$"
    )
    history.alembic("check")
    history.configure(include_schemas="True")
    history.alembic("check")


def test_a_projects_own_tables_may_have_such_names(project: Project) -> None:
    project.alembic("upgrade", "head")
    for name in ("collections", "pages", "last_seen"):
        project.rows(f"CREATE TABLE {name} ()")
    made = project.autogenerated()
    assert "op.drop_table('pages')" in made
    assert "op.create_table('articles'" not in made


REFERENCE = """collection_id: Mapped[int | None]
    page_id: Mapped[int | None] = mapped_column(BigInteger)
    __table_args__ = (
        ForeignKeyConstraint(
            ["collection_id", "page_id"], [Page.collection_id, Page.page_id], name="page_fk"
        ),
    )"""


def test_a_foreign_key_in_the_models_needs_no_copy_of_our_tables(project: Project) -> None:
    project.configure(include_schemas="True")
    project.revision("0002", UP, DOWN, below="0001")
    project.alembic("upgrade", "head")
    imports = "from sqlalchemy import ForeignKeyConstraint\nfrom pgsimhash.sqlalchemy import Page\n"
    project.change("models.py", "\nfrom sqlalchemy import", f"{imports}from sqlalchemy import")
    project.change("models.py", "url: Mapped", f"{REFERENCE}\n    url: Mapped")
    project.alembic("revision", "--autogenerate", "-m", "reference", "--rev-id", "0003")
    (made,) = (project.folder / "history" / "versions").glob("0003_*.py")
    assert "create_table" not in made.read_text()
    assert "['collection_id', 'page_id'], referent_schema='pgsimhash'" in made.read_text()
    project.alembic("upgrade", "head")
    project.alembic("check")


def test_refusals_name_the_fix(project: Project) -> None:
    project.alembic("upgrade", "0001")
    before = project.tables()
    for up, advice in (
        ('pgsimhash.alembic.upgrade(op, revision="9999")', "upgrade in an up-to-date clone of"),
        (f"with op.get_context().autocommit_block():\n        {UP}",
         "call it outside of op.get_context().autocommit_block()"),
        (f'try:\n        op.execute("SELECT 1/0")\n    except Exception:\n        {UP}',
         "connection.rollback()"),
    ):  # fmt: skip
        project.revision("0002", up, below="0001")
        said = project.alembic("upgrade", "0002", fails=True)
        # Errors are the package's, and name the fix.
        assert advice in " ".join(said.split("pgsimhash.errors.")[-1].split())
        assert project.tables() == before


def test_a_newer_schema_is_neither_upgraded_nor_downgraded(history: Project) -> None:
    history.alembic("upgrade", "head")
    run_sql(history.dsn, "UPDATE pgsimhash.alembic_version SET version_num = '9999'")
    history.alembic("stamp", "0001")
    history.revision("0003", "pass", below="0002")
    history.alembic("upgrade", "head")
    assert versions(history)[1] == [("9999",)]
    said = history.alembic("downgrade", "0001", fails=True)
    assert "upgrade in an up-to-date clone of pgsimhash: pip install" in said
    with pytest.raises(pgsimhash.SchemaError, match="upgrade in an up-to-date clone"):
        migrate.upgrade(history.dsn)


def test_a_database_where_all_transactions_are_read_only(history: Project) -> None:
    """As on a replica or with a full disk, by each of the package's routes."""
    history.alembic("upgrade", "0001")
    ini = history.folder / "ours.ini"
    ini.write_text("[alembic]\nscript_location = pgsimhash.migrations:.\npath_separator = os\n")
    before = history.tables()
    let(history.dsn, {"default_transaction_read_only": "on"})
    fix = "connect to the primary server, or free space"
    assert fix in history.alembic("upgrade", "0002", fails=True)
    alone = ["-c", ini.name, "-x", f"dsn={history.dsn}", "upgrade", "head"]
    said = history.alembic(*alone, fails=True)
    assert fix in said
    assert "Traceback" not in said
    with pytest.raises(pgsimhash.StoreError, match=fix, check=because("read_only")):
        migrate.upgrade(history.dsn)
    assert history.tables() == before


def test_another_database_than_postgresql() -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        op = Operations(MigrationContext.configure(connection))
        with pytest.raises(pgsimhash.ArgumentError, match="where op is connected to PostgreSQL"):
            pgsimhash.alembic.upgrade(op)
    engine.dispose()


def test_migrations_wait_for_one_another(history: Project) -> None:
    """One by `pgsimhash migrate`, one in the project's history."""
    history.alembic("upgrade", "0001")
    with psycopg.connect(history.dsn) as connection, ThreadPoolExecutor(2) as pool:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [migrate.MIGRATION_LOCK])
        pool.submit(history.alembic, "upgrade", "head")
        other = pool.submit(run_program, *PGSIMHASH, "migrate", PGSIMHASH_DSN=history.dsn)
        both = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        wait_until(lambda: len(history.rows(both)) == 2)
        connection.rollback()
    assert other.result().returncode == 0
    assert versions(history) == ([("0003",)], [(REVISION,)])


def test_connect_names_the_call_to_add(history: Project) -> None:
    call = re.escape(f'pgsimhash.alembic.upgrade(op, revision="{REVISION}")')
    with pytest.raises(pgsimhash.SchemaError, match=call, check=because("missing")):
        pgsimhash.connect(history.dsn)
    history.alembic("upgrade", "head")
    run_sql(history.dsn, "UPDATE pgsimhash.alembic_version SET version_num = '0000'")
    with pytest.raises(pgsimhash.SchemaError, match=call, check=because("older")):
        pgsimhash.connect(history.dsn)


def test_the_transaction_keeps_its_search_path(empty_dsn: str) -> None:
    engine = create_engine(url_of_dsn(empty_dsn))
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL search_path = public, pg_temp"))
        op = Operations(MigrationContext.configure(connection))
        for step in (pgsimhash.alembic.upgrade, pgsimhash.alembic.downgrade):
            step(op)
            path = connection.scalar(text("SHOW search_path"))
            assert path == "public, pg_temp"
        assert connection.in_transaction()
        connection.rollback()
    engine.dispose()
    with open_connection(empty_dsn) as own:
        assert own.execute("SELECT to_regnamespace('pgsimhash')").fetchone() == (None,)
