"""A schema that Citus keeps on one of its nodes: what deploys it, and what is refused."""

import os
import sys

import psycopg
import pytest
from psycopg import conninfo
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

import pgsimhash.alembic
from pgsimhash import connect
from pgsimhash.errors import StoreError
from pgsimhash.schema import migrate
from pgsimhash.testing import url_of_dsn
from tests.citus import workers
from tests.conftest import ROOT
from tests.database import run_sql
from tests.programs import run_program
from tests.refusals import because

on_citus = pytest.mark.skipif(
    "PGSIMHASH_TEST_CITUS_DSN" not in os.environ, reason="it is about Citus"
)


def schemas(dsn: str) -> set[str]:
    rows = run_sql(dsn, "SELECT nspname FROM pg_namespace")
    return {str(name) for (name,) in rows if str(name).startswith("crawl")}


def refused(dsn: str, message: str) -> None:
    """Check that the schema ``crawl`` is refused, and that nothing of it is left."""
    before = schemas(dsn)
    with pytest.raises(StoreError, match=message) as raised:
        migrate.upgrade(dsn, schema="crawl", citus=True)
    assert raised.value.reason == "refused"
    assert schemas(dsn) == before


@pytest.mark.skipif("PGSIMHASH_TEST_CITUS_DSN" in os.environ, reason="there Citus is")
def test_without_the_extension_nothing_is_deployed(empty_dsn: str) -> None:
    refused(empty_dsn, r"has no extension citus; run CREATE EXTENSION citus in it on all nodes")


@on_citus
def test_an_old_version_is_refused(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn) as connection:
        connection.execute("UPDATE pg_extension SET extversion = '11.3-1' WHERE extname = 'citus'")
        connection.execute("SET LOCAL citus.enable_version_checks TO off")
    off = conninfo.make_conninfo(empty_dsn, options="-c citus.enable_version_checks=off")
    refused(off, "has version 11.3-1, and 12 or later is needed; upgrade Citus on all nodes")


@on_citus
@pytest.mark.parametrize("setting", ["enable_ddl_propagation", "enable_metadata_sync"])
def test_without_sharding_by_schema_nothing_is_deployed(empty_dsn: str, setting: str) -> None:
    off = conninfo.make_conninfo(empty_dsn, options=f"-c citus.{setting}=off")
    refused(off, "Citus does not shard by schema here; read the documentation of")


@on_citus
def test_a_schema_without_citus_is_not_taken_over(empty_dsn: str) -> None:
    migrate.upgrade(empty_dsn, schema="crawl")
    refused(empty_dsn, r"the schema crawl exists already, without Citus; give another name")
    with connect(empty_dsn, schema="crawl") as store:
        assert store.add_page("https://a.example/", 1).kind == "new"


@on_citus
def test_a_worker_is_refused(dsn: str) -> None:
    there = workers(dsn)[0]
    refused(there, "this node is a worker of the Citus cluster; connect to the coordinator")
    with pytest.raises(StoreError, check=because("unsuitable")):
        connect(there)
    with connect(dsn):
        pass
    with pytest.raises(psycopg.Error, match="On a worker of a cluster, connect to"):
        run_sql(there, "SELECT pgsimhash.add_page('https://a.example/', 1)")


@on_citus
def test_a_node_without_the_settings_is_named(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("CREATE ROLE no_owner LOGIN")
        try:
            name = connection.info.dbname
            connection.execute(f"GRANT CREATE ON DATABASE {name} TO no_owner".encode())
            connection.execute(f"ALTER DATABASE {name} RESET ALL".encode())
            refused(
                conninfo.make_conninfo(empty_dsn, user="no_owner"),
                "does not have the settings that functions need.*ALTER DATABASE",
            )
        finally:
            connection.execute("DROP OWNED BY no_owner")
            connection.execute("DROP ROLE no_owner")


@on_citus
def test_it_has_no_triggers_and_its_own_node(dsn: str) -> None:
    migrate.upgrade(dsn, citus=True)
    migrate.upgrade(dsn, schema="crawl", citus=True)
    with psycopg.connect(dsn) as connection:
        ours = "tgrelid::regclass::text ~ '^(pgsimhash|crawl)' AND NOT tgisinternal"
        found = connection.execute(f"SELECT tgname FROM pg_trigger WHERE {ours}".encode())
        assert found.fetchall() == []
        placed = connection.execute(
            "SELECT count(DISTINCT (nodename, nodeport)) FROM citus_shards "
            "GROUP BY split_part(table_name::text, '.', 1)"
        )
        assert placed.fetchall() == [(1,), (1,)]


@on_citus
def test_a_history_of_alembic_deploys_it(empty_dsn: str) -> None:
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    engine = create_engine(url_of_dsn(empty_dsn), poolclass=NullPool)
    with engine.begin() as connection:
        op = Operations(MigrationContext.configure(connection))
        pgsimhash.alembic.upgrade(op, schema="crawl", citus=True)
    with connect(empty_dsn, schema="crawl") as store:
        assert store.add_page("https://a.example/", 1).kind == "new"
        assert store.add_page("https://b.example/", 3).kind == "duplicate"


@on_citus
def test_a_reference_from_another_schema_is_refused(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("SET citus.enable_schema_based_sharding TO on")
        connection.execute("CREATE SCHEMA crawl")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="foreign key"):
            connection.execute(
                "CREATE TABLE crawl.own (id integer REFERENCES pgsimhash.collections)"
            )


@on_citus
def test_the_tour(empty_dsn: str) -> None:
    tour = ROOT / "examples" / "citus_tour.py"
    done = run_program(sys.executable, tour, PGSIMHASH_DSN=empty_dsn)
    lines = [line.split(", on ") for line in done.stdout.splitlines()]
    schemas = ["crawl_a", "crawl_b", "crawl_c"]
    assert [text for text, _ in lines] == [
        *(f"{name}: 8 new of 24 pages" for name in schemas),
        *(f"{name}: 3 near tide-pools-print.html" for name in schemas),
    ]
    before, after = [node for _, node in lines[:3]], [node for _, node in lines[3:]]
    assert before[0] != after[0]
    assert before[1:] == after[1:]
    assert len({*before}) == 2
