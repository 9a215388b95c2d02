"""Other users' functions and operators never run with the rights of the schema's users.

A second role creates better matches for all calls in `public`. Any role with the right to create
objects there can do so: on PostgreSQL 14, and in databases upgraded from it, that is every role. By
default its functions win if PostgreSQL's own have other argument types; with `public` before
`pg_catalog` they always win.
"""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import product

import psycopg
import pytest
from psycopg import conninfo, sql

import pgsimhash
from pgsimhash import connect
from pgsimhash.db.schema_names import read_sql
from pgsimhash.schema import migrate
from pgsimhash.search.layout import LAYOUTS
from pgsimhash.testing import fresh_database
from tests.database import as_role, new_role, run_sql
from tests.refusals import sqlstate
from tests.sent_statements import SENT_FILES
from tests.store.pages import page, paragraph

PINNED = "search_path=pg_catalog, pg_temp"

TYPES = (
    *("boolean", "smallint", "integer", "bigint", "numeric", "real", "double precision"),
    *("oid", "regclass", "tid", "text", "character varying", "name", "bytea", "jsonb"),
    *("interval", "timestamp with time zone", "timestamp with time zone[]"),
    *("smallint[]", "integer[]", "bigint[]", "text[]", "character varying[]"),
)
OPERATORS = (
    *("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||"),
    *("#", "&", "|", "<<", ">>", "?", "~", "!~", "~~", "@>"),
)

BODY = "LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'hijacked'; END$$"

INTERNAL = {"internal", "cstring", '"any"', "record", "trigger"}

# Syntax that looks like a call.
NO_CALLS = {"coalesce", "greatest", "least", "nullif"}


def without_texts(script: str) -> str:
    """The script without its comments, and with empty strings."""
    return re.sub(r"--[^\n]*|'(?:[^']|'')*'", "''", script)


def calls(script: str) -> set[str]:
    """The unqualified function calls of a script."""
    found = re.findall(r"(?<![\w.$%])([a-z_]\w*)\s*\(", without_texts(script))
    aliases = re.findall(r"\bAS (\w+) \(", script)
    return set(found) - NO_CALLS - set(aliases)


def plant(connection: psycopg.Connection) -> None:
    """Create functions and operators in `public` for types that PostgreSQL would convert."""
    scripts = [
        migrate.upgrade_sql(),
        *map(read_sql, SENT_FILES),
    ]
    called = {name for script in scripts for name in re.findall(r"\b([a-z_]\w*)\(", script)}
    known = connection.execute(
        "SELECT DISTINCT proname, pronargs, provariadic <> 0 FROM pg_proc "
        "WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY (%s)",
        [sorted(called)],
    ).fetchall()
    signatures: list[tuple[str, ...]] = [*product(TYPES), *product(TYPES, TYPES)]
    signatures += [("text",) * 3, ("text",) * 4]
    functions = {
        (name, *signature): "bigint"
        for name, count, variadic in known
        for signature in signatures
        if len(signature) == count or (variadic and len(signature) >= count)
    }
    # Also copies of PostgreSQL's own, for arguments of plpgsql.
    for name, signature, returned in connection.execute(
        "SELECT proname, ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes) AS t), "
        "format_type(prorettype, NULL) FROM pg_proc "
        "WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND proname = ANY (%s)",
        [sorted(called)],
    ):
        if not INTERNAL & {*signature, returned}:
            functions[name, *signature] = returned
    exact = connection.execute(
        "SELECT oprname, format_type(oprleft, NULL), format_type(oprright, NULL) FROM pg_operator "
        "WHERE oprleft <> 0 AND 'record'::regtype NOT IN (oprleft, oprright)"
    ).fetchall()
    operators = {*product(OPERATORS, TYPES, TYPES), *exact}
    functions |= {("taken", *pair): "boolean" for _, *pair in operators}
    made = [
        f"CREATE FUNCTION public.{name}({', '.join(signature)}) RETURNS {returned} {BODY}"
        for (name, *signature), returned in functions.items()
    ]
    made += [
        f"CREATE OPERATOR public.{operator} "
        f"(FUNCTION = public.taken, LEFTARG = {left}, RIGHTARG = {right})"
        for operator, left, right in operators
    ]
    made += [f"CREATE TABLE public.{name} ()" for name in ("added", "removed", "masks", "pages")]
    made += [f"CREATE TABLE public.{name} ()" for name in ("c", "marks")]
    connection.execute(";\n".join(made))


@pytest.fixture(scope="module")
def second_role(server_dsn: str) -> Iterator[str]:
    """A role without rights."""
    with new_role(server_dsn) as name:
        yield name


@pytest.fixture(scope="module")
def planted(server_dsn: str, second_role: str) -> Iterator[str]:
    """The name of a database without the schema, in whose `public` the second role waits."""
    role = sql.Identifier(second_role)
    with fresh_database(server_dsn) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(role))
            connection.execute(sql.SQL("SET ROLE {}").format(role))
            plant(connection)
        yield str(conninfo.conninfo_to_dict(dsn)["dbname"])


@pytest.fixture
def hostile_dsn(server_dsn: str, planted: str) -> Iterator[str]:
    """The DSN of a copy of that database."""
    with fresh_database(server_dsn, planted) as dsn:
        yield dsn


def deploy_all(dsn: str) -> None:
    """Deploy the schema, and one for each other layout."""
    migrate.upgrade(dsn)
    for number, layout in enumerate(LAYOUTS):
        migrate.upgrade(dsn, schema=f"layout_{number}", layout=layout)


def test_unprotected_statements_call_the_planted_functions(hostile_dsn: str) -> None:
    with psycopg.connect(hostile_dsn, autocommit=True) as connection:
        for trap in (
            "SELECT format('%s', 'text'::text)",
            "SELECT unnest(ARRAY[1, 2])",
            "SELECT 1::bigint & 1",
            "SELECT nextval('name'::text)",
            "SELECT ARRAY['a'] || ARRAY['b']",
            "SELECT 'pg_class'::regclass = 1::oid",
        ):
            with pytest.raises(psycopg.errors.RaiseException, match="hijacked"):
                connection.execute(trap)


def test_a_superuser_runs_nothing_of_another_role_from_python(hostile_dsn: str) -> None:
    """Statements have the form of tests/sent_statements.py; this shows that it suffices."""
    path = "public,pg_catalog"
    hostile_dsn = conninfo.make_conninfo(hostile_dsn, options=f"-csearch_path={path}")
    migrate.upgrade(hostile_dsn)
    with psycopg.connect(hostile_dsn, autocommit=True) as connection:
        for where in (hostile_dsn, connection):
            with connect(where, keep_markdown=True) as store:
                store.ingest("https://a.example/1", page(paragraph(1), paragraph(2)))
                verdicts = list(
                    store.add_pages([("https://a.example/2", 5), ("https://b.example/", 7)])
                )
                assert [match.distance for match in store.find(5, 8)] == [0, 1]
                assert len(store.near_pages("https://a.example/2", 8)) == 1
                store.mark(verdicts[0].url, verdicts[1].url, same=False)
                assert store.status().pages == 3
                assert store.save_clusters(8) == 0
                assert list(store.check()) == []
                assert store.delete_host("a.example").deleted == 2
                assert store.delete_page("https://b.example/").deleted == 1
        assert connection.execute("SHOW search_path").fetchone() == (path,)


def test_nothing_deployed_depends_on_what_another_role_made(hostile_dsn: str) -> None:
    """Generated columns, defaults, constraints and SQL-standard functions of all layouts."""
    deploy_all(hostile_dsn)
    found = run_sql(
        hostile_dsn,
        "SELECT pg_describe_object(d.classid, d.objid, d.objsubid) "
        "FROM pg_depend AS d "
        "JOIN pg_proc AS p ON d.refclassid = 'pg_proc'::regclass::oid AND p.oid = d.refobjid "
        "WHERE p.pronamespace = 'public'::regnamespace::oid AND p.proname <> 'taken' "
        "AND NOT (d.classid = 'pg_operator'::regclass::oid) "
        "UNION ALL "
        "SELECT pg_describe_object(d.classid, d.objid, d.objsubid) "
        "FROM pg_depend AS d JOIN pg_operator AS o "
        "ON d.refclassid = 'pg_operator'::regclass::oid AND o.oid = d.refobjid "
        "WHERE o.oprnamespace = 'public'::regnamespace::oid",
    )
    assert found == []


def test_every_function_is_bound_or_pinned_or_names_what_it_calls(dsn: str) -> None:
    """A caller's search_path has no effect in the functions and triggers of any layout."""
    deploy_all(dsn)
    rows = run_sql(
        dsn,
        "SELECT p.oid::regprocedure::text, prosrc, proconfig, prosqlbody IS NOT NULL "
        "FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace "
        "WHERE n.nspname = 'pgsimhash' OR n.nspname LIKE 'layout_%'",
    )
    foreign = run_sql(
        dsn,
        "SELECT tgname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid "
        "JOIN pg_proc AS p ON p.oid = t.tgfoid "
        "WHERE c.relnamespace = 'pgsimhash'::regnamespace AND NOT t.tgisinternal "
        "AND p.pronamespace <> 'pgsimhash'::regnamespace",
    )
    assert len(rows) > 7 * len(LAYOUTS)
    assert foreign == []
    unpinned = {
        name: source
        for name, source, settings, bound in rows
        if not bound and PINNED not in (settings or [])
    }
    # Transactions end, and functions are inlined, only where no search_path is pinned.
    names = {re.sub(r".*\._?|_\d+$", "", name.partition("(")[0]) for name in unpinned}
    assert names == {"expire", "find", "find_many", "near_pages"}
    for body in unpinned.values():
        assert calls(body) == set()
        words = re.sub(r":=|SELECT \*", "", without_texts(body))
        assert re.findall(r"(?<!:)[=<>+*/%^|&~#!@?-]+", words) == []


class TestForeignSchemas:
    """A schema with the name, created by a role that must not get the deployer's rights."""

    @pytest.fixture
    def foreign_dsn(self, empty_dsn: str, second_role: str) -> Iterator[str]:
        database = conninfo.conninfo_to_dict(empty_dsn)["dbname"]
        run_sql(empty_dsn, f"GRANT CREATE ON DATABASE {database} TO {second_role}")
        for schema in ("pgsimhash", "crawl"):
            run_sql(empty_dsn, f"CREATE SCHEMA {schema} AUTHORIZATION {second_role}")
        yield empty_dsn
        run_sql(empty_dsn, f"DROP OWNED BY {second_role} CASCADE")

    def test_a_foreign_schema_is_refused_with_its_owner_and_the_fix(
        self, foreign_dsn: str, second_role: str
    ) -> None:
        for schema in ("pgsimhash", "crawl"):
            refused = f'schema {schema} belongs to role "{second_role}".*role='
            with pytest.raises(pgsimhash.SchemaError, match=refused):
                migrate.upgrade(foreign_dsn, schema=schema)
        with pytest.raises(psycopg.Error, check=sqlstate("PS040"), match=second_role):
            run_sql(foreign_dsn, migrate.upgrade_sql())

    @pytest.mark.one_server("rights to a database are granted on each node")
    def test_only_its_owner_can_deploy_it(self, foreign_dsn: str, second_role: str) -> None:
        for _ in range(2):
            migrate.upgrade(as_role(foreign_dsn, second_role))
        with pytest.raises(pgsimhash.SchemaError, match=second_role):
            migrate.upgrade(foreign_dsn)

    def test_a_foreign_table_in_it_is_refused_too(self, foreign_dsn: str, second_role: str) -> None:
        run_sql(
            as_role(foreign_dsn, second_role),
            "CREATE TABLE pgsimhash.alembic_version (version_num text)",
        )
        run_sql(foreign_dsn, "ALTER SCHEMA pgsimhash OWNER TO CURRENT_USER")
        with pytest.raises(pgsimhash.SchemaError, match=r"table pgsimhash\.alembic_version"):
            migrate.upgrade(foreign_dsn)

    @pytest.mark.parametrize("granted", [True, False])
    @pytest.mark.one_server("rights to a database are granted on each node")
    def test_a_role_that_was_granted_may_own_it(
        self, foreign_dsn: str, second_role: str, granted: bool
    ) -> None:
        with new_role(foreign_dsn, f"IN ROLE {second_role}" if granted else "") as member:
            run_sql(foreign_dsn, f"GRANT ALL ON SCHEMA pgsimhash TO {member}")
            refused = pytest.raises(pgsimhash.SchemaError, match="would run code")
            with nullcontext() if granted else refused:
                migrate.upgrade(as_role(foreign_dsn, member))

    @pytest.mark.one_server("rights to a database are granted on each node")
    def test_a_schema_of_an_administrator_is_trusted(self, empty_dsn: str) -> None:
        with new_role(empty_dsn) as role:
            run_sql(empty_dsn, f"CREATE SCHEMA pgsimhash; GRANT ALL ON SCHEMA pgsimhash TO {role}")
            migrate.upgrade(as_role(empty_dsn, role))
