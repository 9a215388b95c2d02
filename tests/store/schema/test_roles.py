"""The roles of `migrate --roles` can do their work, and nothing else."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from typing import Any

import psycopg
import pytest
from psycopg import sql

from pgsimhash import Store, StoreError, connect
from pgsimhash.errors import ArgumentError
from pgsimhash.schema import migrate
from pgsimhash.schema.deployed import create_roles
from pgsimhash.testing import fresh_database
from tests.database import as_role, dropped_afterwards, new_role, run_sql
from tests.manual import blocks
from tests.refusals import because
from tests.store.calls import CHANGES, A, B
from tests.store.pages import ARTICLE, page


@pytest.fixture
def roles(dsn: str) -> Iterator[dict[str, str]]:
    """A DSN for each role, by its purpose."""
    prefix = f"test {uuid.uuid4().hex[:12]}"
    made = create_roles(dsn, prefix)
    with dropped_afterwards(dsn, made):
        yield {name.rpartition("_")[2]: as_role(dsn, name) for name in made}


def name_of(dsn: str) -> str:
    options = str(psycopg.conninfo.conninfo_to_dict(dsn)["options"])
    return options.partition("role=")[2].replace("\\ ", " ")


def add_as(dsn: str, role: str, **options: Any) -> None:
    with connect(as_role(dsn, role), **options) as store:
        store.add_page(A, 5)


HARMFUL: dict[str, Callable[[Store], object]] = {
    "check": lambda store: list(store.check(repair=True)),
    "delete_page": lambda store: store.delete_page(A),
    "delete_host": lambda store: store.delete_host("a.example"),
    "undo_run": lambda store: store.undo_run(store.runs()[0].run_id),
    "rebuild": lambda store: store.rebuild(replace=True),
}
"""Calls that would damage rows that the role does not see."""


OWNERS = (
    "ALTER TABLE pgsimhash.pages ADD COLUMN mine text",
    "DROP TABLE pgsimhash.clusters",
    "CREATE TABLE pgsimhash.mine ()",
    "CREATE FUNCTION pgsimhash.mine() RETURNS int LANGUAGE sql RETURN 1",
    "CREATE TRIGGER mine BEFORE INSERT ON pgsimhash.pages FOR EACH ROW "
    "EXECUTE FUNCTION pg_catalog.suppress_redundant_updates_trigger()",
    "CREATE INDEX ON pgsimhash.pages (title)",
    "TRUNCATE pgsimhash.pages",
    "CREATE OR REPLACE FUNCTION pgsimhash.layout() RETURNS text LANGUAGE sql RETURN 'x'",
    "UPDATE pgsimhash.alembic_version SET version_num = '9'",
    "UPDATE pgsimhash.pages SET simhash = 0",
    "UPDATE pgsimhash.pages SET url = 'https://b.example/'",
    "UPDATE pgsimhash.collections SET scheme = 'other'",
    "DELETE FROM pgsimhash.collections",
)
"""Statements for the owner only."""


def test_a_writer_can_do_everything_with_pages(roles: dict[str, str]) -> None:
    with connect(roles["writer"]) as store:
        list(store.add_pages([(A, 1), (B, 2**63)]))
        store.save_clusters()
        for change in CHANGES.values():
            change(store)


def test_a_reader_looks_up_and_writes_nothing(roles: dict[str, str]) -> None:
    with connect(roles["writer"]) as store:
        simhash = store.ingest(A, page(*ARTICLE)).simhash
        list(store.add_pages([(B, 2**63)]))
    with connect(roles["reader"]) as store:
        assert [match.url for match in store.find(simhash or 0)] == [A]
        assert store.decide(B, page(*ARTICLE)).duplicate_of == A
        assert store.status().pages == 2
        for name, change in {**CHANGES, "save_clusters": Store.save_clusters}.items():
            with pytest.raises(StoreError, check=because("not_permitted")):
                pytest.fail(f"{name}: {change(store)}")


def test_a_reader_checks_and_a_writer_repairs(roles: dict[str, str], dsn: str) -> None:
    with connect(roles["writer"]) as store:
        store.add_page(A, 1)
    run_sql(dsn, "UPDATE pgsimhash.pages SET indexed = false")
    with connect(roles["reader"]) as store:
        assert [one.reason for one in store.check()] == ["simhash_missing"]
        with pytest.raises(StoreError, check=because("not_permitted")):
            list(store.check(repair=True))
    with connect(roles["writer"]) as store:
        assert [one.repaired for one in store.check(repair=True)] == [True]
        assert list(store.check()) == []


@pytest.mark.one_server("Citus writes by COPY, which row security refuses")
def test_nobody_removes_simhashes_of_pages_that_row_security_hides(
    roles: dict[str, str], dsn: str
) -> None:
    with connect(roles["writer"]) as store:
        list(store.add_pages([(A, 5), (B, 5)]))
    run_sql(dsn, "ALTER TABLE pgsimhash.pages ENABLE ROW LEVEL SECURITY")
    run_sql(dsn, f"CREATE POLICY own ON pgsimhash.pages USING (url <> '{B}')")
    with connect(roles["writer"]) as store:
        for change in HARMFUL.values():
            with pytest.raises(StoreError, match="BYPASSRLS", check=because("unsuitable")):
                change(store)
        assert store.add_page("https://c.example/", 5).duplicate_of == A
        with pytest.raises(StoreError, match="admit the row", check=because("not_permitted")):
            store.add_page(B, 9)
    with connect(roles["reader"]) as store:
        with pytest.raises(StoreError, check=because("unsuitable")):
            list(store.check())
        assert [match.url for match in store.find(5)] == [A]
    for whole in (roles["owner"], dsn):
        with connect(whole) as store:
            assert list(store.check(repair=True)) == []
            assert store.delete_page(A).deleted == 1
            assert store.add_page(A, 5).duplicate_of == B


def test_neither_reader_nor_writer_changes_the_schema_or_a_simhash(roles: dict[str, str]) -> None:
    with connect(roles["writer"]) as store:
        store.add_page(A, 5)
    for role, statement in product(("writer", "reader"), OWNERS):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run_sql(roles[role], statement)
    for role in ("writer", "reader"):
        # PostgreSQL warns that nothing was granted.
        run_sql(roles[role], "GRANT SELECT ON pgsimhash.pages TO PUBLIC")
        public = (
            "SELECT FROM pg_class, aclexplode(relacl) AS a "
            "WHERE oid = 'pgsimhash.pages'::regclass AND a.grantee = 0"
        )
        assert run_sql(roles[role], public) == []


def test_a_writer_rebuilds_and_the_owner_deletes_the_old_collection(roles: dict[str, str]) -> None:
    with connect(roles["writer"]) as store:
        store.add_page(A, 7)
        with pytest.raises(StoreError, match="or owner, which alone can delete"):
            store.rebuild(into="old", replace=True)
        assert run_sql(roles["reader"], "SELECT name FROM pgsimhash.collections") == [("default",)]
        store.rebuild(into="old")
    with connect(roles["reader"]) as store:
        assert store.has_near(7)
    with psycopg.connect(roles["owner"]) as connection:
        assert connect(connection, collection="old", create=False).delete_collection() == 1


@pytest.mark.one_server("Citus has a connection for each role, and one transaction uses two")
def test_a_writer_of_two_schemas_copies_a_collection(roles: dict[str, str], dsn: str) -> None:
    migrate.upgrade(dsn, schema="crawl", layout="16+16+16+16")
    made = create_roles(dsn, f"test_{uuid.uuid4().hex[:12]}", schema="crawl")
    writer = name_of(roles["writer"])
    with dropped_afterwards(dsn, made), connect(roles["writer"]) as store:
        store.add_page(A, 7)
        with pytest.raises(StoreError, check=because("not_permitted")):
            store.rebuild(into_schema="crawl")
        grant = sql.SQL("GRANT {} TO {}")
        run_sql(dsn, grant.format(sql.Identifier(made[1]), sql.Identifier(writer)))
        assert store.rebuild(into_schema="crawl").layout == "16+16+16+16"
        with connect(roles["writer"], schema="crawl") as copy:
            assert copy.add_page(B, 7).duplicate_of == A


def test_roles_are_made_once_and_again_after_an_upgrade(roles: dict[str, str], dsn: str) -> None:
    prefix = name_of(roles["owner"]).removesuffix("_owner")
    migrate.upgrade(roles["owner"])
    for again in (prefix, None):
        assert create_roles(dsn, again) == [
            f"{prefix}_{what}" for what in ("owner", "writer", "reader")
        ]
    with pytest.raises(ArgumentError, match=f'has the roles of the prefix "{prefix}" already'):
        create_roles(dsn, "other")
    with connect(roles["writer"]) as store:
        assert store.ingest(A, page(*ARTICLE)).keep


def rights(dsn: str) -> dict[str, list[Any]]:
    """The owners of the objects of the schema, and who has which rights on them."""
    rows = run_sql(
        dsn,
        """
        SELECT pg_describe_object(d.classid, d.objid, d.objsubid), d.owner, ARRAY(
            SELECT concat(a.grantee, a.grantor, a.privilege_type)
            FROM aclexplode(d.acl) AS a ORDER BY 1
        )
        FROM pg_namespace AS n
        CROSS JOIN LATERAL (
            SELECT n.tableoid, n.oid, 0, n.nspowner, n.nspacl
            UNION ALL
            SELECT c.tableoid, c.oid, 0, c.relowner, c.relacl
            FROM pg_class AS c WHERE c.relnamespace = n.oid
            UNION ALL
            SELECT c.tableoid, c.oid, a.attnum, c.relowner, a.attacl
            FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
            WHERE c.relnamespace = n.oid
            UNION ALL
            SELECT p.tableoid, p.oid, 0, p.proowner, p.proacl
            FROM pg_proc AS p WHERE p.pronamespace = n.oid
            UNION ALL
            SELECT a.tableoid, a.oid, 0, a.defaclrole, a.defaclacl
            FROM pg_default_acl AS a WHERE a.defaclnamespace = n.oid
        ) AS d (classid, objid, objsubid, owner, acl)
        WHERE n.nspname = 'pgsimhash'
        """,
    )
    return {name: held for name, *held in rows}


def test_roles_made_again_mend_their_rights_without_a_wait(roles: dict[str, str], dsn: str) -> None:
    writer = sql.Identifier(name_of(roles["writer"]))
    impatient = psycopg.conninfo.make_conninfo(dsn, options="-clock_timeout=1s")
    before = rights(dsn)
    with psycopg.connect(dsn) as reading:
        reading.execute(
            "SELECT FROM pgsimhash.pages, pgsimhash.collections, pgsimhash.last_seen, "
            "pgsimhash.runs, pgsimhash.sources, pgsimhash.policies, pgsimhash.marks, "
            "pgsimhash.clusters, pgsimhash.alembic_version"
        )
        migrate.upgrade(impatient)
        create_roles(impatient)
        assert rights(dsn) == before
        run_sql(dsn, sql.SQL("REVOKE SELECT, UPDATE ON pgsimhash.pages FROM {}").format(writer))
        run_sql(dsn, sql.SQL("GRANT DELETE ON pgsimhash.collections TO {}").format(writer))
        run_sql(dsn, sql.SQL("GRANT UPDATE ON pgsimhash.pages TO {}").format(writer))
        run_sql(
            dsn,
            sql.SQL("REVOKE USAGE ON SEQUENCE pgsimhash.runs_run_id_seq FROM {}").format(writer),
        )
        run_sql(dsn, "CREATE FUNCTION pgsimhash.later() RETURNS int LANGUAGE sql RETURN 1")
        create_roles(impatient)
    after = rights(dsn)
    (owner, _), (new_owner, _) = before["schema pgsimhash"], after.pop("function pgsimhash.later()")
    assert owner == new_owner
    assert after == before
    test_a_writer_can_do_everything_with_pages(roles)
    test_neither_reader_nor_writer_changes_the_schema_or_a_simhash(roles)


def test_two_schemas_in_a_database_are_closed_to_one_another(dsn: str) -> None:
    own = create_roles(dsn, f"test_{uuid.uuid4().hex[:12]}")
    migrate.upgrade(dsn, schema="crawl")
    other = create_roles(dsn, schema="crawl")
    with dropped_afterwards(dsn, [*own, *other]):
        database = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
        assert other == [f"{database}_crawl_{what}" for what in ("owner", "writer", "reader")]
        add_as(dsn, own[1])
        add_as(dsn, other[1], schema="crawl")
        for role, schema in ((own[0], "crawl"), (own[1], "crawl"), (other[1], "pgsimhash")):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                run_sql(as_role(dsn, role), f"SELECT FROM {schema}.pages")


def test_the_writer_of_one_database_reads_nothing_in_another(dsn: str, server_dsn: str) -> None:
    with ExitStack() as stack:
        other = stack.enter_context(fresh_database(server_dsn))
        migrate.upgrade(other)
        for each in (dsn, other):
            made = create_roles(each)
            stack.enter_context(dropped_afterwards(each, made))
        prefix = f"{psycopg.conninfo.conninfo_to_dict(other)['dbname']}_pgsimhash"
        assert made == [f"{prefix}_{what}" for what in ("owner", "writer", "reader")]
        add_as(other, made[1])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run_sql(as_role(dsn, made[1]), "SELECT FROM pgsimhash.pages")


def test_roles_of_others_and_long_names_are_refused(dsn: str) -> None:
    """A member of such a role would get its rights."""
    for what in ("owner", "writer", "reader"):
        prefix = f"test_{uuid.uuid4().hex[:12]}"
        leftover = f"{prefix}_{what}"
        run_sql(dsn, f"CREATE ROLE {leftover}")
        with dropped_afterwards(dsn, [leftover]):
            with pytest.raises(ArgumentError, match=leftover):
                create_roles(dsn, prefix)
            roles = "SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s)"
            assert run_sql(dsn, roles, [prefix]) == [(leftover,)]
    too_long = pytest.raises(ArgumentError, check=because("invalid_argument"), match="56 bytes")
    with too_long:
        create_roles(dsn, "x" * 57)
    with too_long:
        create_roles(dsn, "")


def test_roles_need_no_rights_of_public(dsn: str) -> None:
    """A hardened database revokes them, before the schema is deployed or after."""
    run_sql(dsn, "REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA pgsimhash FROM PUBLIC")
    made = create_roles(dsn, f"test_{uuid.uuid4().hex[:12]}")
    with dropped_afterwards(dsn, made):
        add_as(dsn, made[1])
        with connect(as_role(dsn, made[2])) as store:
            assert store.has_near(5)
        later = "CREATE FUNCTION pgsimhash.later() RETURNS int LANGUAGE sql RETURN 1"
        run_sql(as_role(dsn, made[0]), later)
        run_sql(dsn, "REVOKE EXECUTE ON FUNCTION pgsimhash.later() FROM PUBLIC")
        assert run_sql(as_role(dsn, made[2]), "SELECT pgsimhash.later()") == [(1,)]


@pytest.fixture
def admin(empty_dsn: str) -> Iterator[str]:
    """A role that deployed the schema and may create roles, but is not a superuser."""
    database = psycopg.conninfo.conninfo_to_dict(empty_dsn)["dbname"]
    with new_role(empty_dsn, "CREATEROLE") as admin:
        run_sql(empty_dsn, f"GRANT CREATE ON DATABASE {database} TO {admin}")
        migrate.upgrade(as_role(empty_dsn, admin))
        yield admin


@pytest.mark.one_server("rights to a database are granted on each node")
@pytest.mark.parametrize("by_superuser", [False, True])
def test_an_owner_who_may_create_roles_needs_no_superuser(
    empty_dsn: str, admin: str, by_superuser: bool
) -> None:
    """They also stay a member of the owner, even if another role created the roles."""
    made = create_roles(empty_dsn if by_superuser else as_role(empty_dsn, admin), admin)
    with dropped_afterwards(empty_dsn, made):
        migrate.upgrade(as_role(empty_dsn, admin))
        add_as(empty_dsn, made[1])
        add_as(empty_dsn, admin, collection="x", create=True)
        with connect(as_role(empty_dsn, made[2]), collection="x") as store:
            assert store.has_near(5)


@pytest.mark.one_server("rights to a database are granted on each node")
def test_such_an_owner_can_remove_roles_as_the_manual_describes(empty_dsn: str, admin: str) -> None:
    made, gone = [block for block in blocks("operate.md", "sql") if "trial_crawler" in block]
    with psycopg.connect(as_role(empty_dsn, admin), autocommit=True) as connection:
        for block in (made, gone):
            connection.execute(block.replace("trial", admin).encode())
    assert run_sql(empty_dsn, "SELECT FROM pg_roles WHERE rolname LIKE %s", [f"{admin}_%"]) == []
    add_as(empty_dsn, admin)


@pytest.mark.one_server("rights to a database are granted on each node")
def test_a_user_who_may_not_create_roles_reads_what_is_missing(empty_dsn: str, admin: str) -> None:
    run_sql(empty_dsn, sql.SQL("ALTER ROLE {} NOCREATEROLE").format(sql.Identifier(admin)))
    with pytest.raises(
        StoreError, match=r"denied to create role.* as a superuser", check=because("not_permitted")
    ):
        create_roles(as_role(empty_dsn, admin), admin)
