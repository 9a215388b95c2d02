"""What tests do to their database without the package."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numpy as np
import psycopg
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import ExecStatus

from pgsimhash import Store
from tests.conftest import ON_CITUS
from tests.programs import wait_until

T = TypeVar("T")


def with_setting(dsn: str, setting: str) -> str:
    """A DSN whose connections have a setting of PostgreSQL, such as ``lock_timeout=9s``."""
    return make_conninfo(dsn, options=f"-c {setting}")


def run_sql(
    dsn: str, statement: str | sql.Composed, values: Sequence[Any] | Mapping[str, Any] | None = None
) -> list[Any]:
    """Execute a statement on a connection of its own, commit, and return its rows."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        query = statement.encode() if isinstance(statement, str) else statement
        cursor = connection.execute(query, values)
        result = cursor.pgresult
        return cursor.fetchall() if result and result.status == ExecStatus.TUPLES_OK else []


def let(dsn: str, settings_: Mapping[str, str]) -> None:
    """Let every session on the database begin with these settings."""
    database = sql.Identifier(str(conninfo_to_dict(dsn)["dbname"]))
    for name, value in settings_.items():
        statement = sql.SQL("ALTER DATABASE {} SET {} TO {}")
        run_sql(dsn, statement.format(database, sql.Identifier(name), value))


def end_others(dsn: str, but: Sequence[int] = ()) -> None:
    """Terminate all connections to the database, or all but some, like a stopping server."""
    statement = (
        "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> ALL (%s)"
    )
    pids = [pid for pid, _ in run_sql(dsn, statement, [list(but)])]
    # With a timeout, pg_terminate_backend() waits 100 ms for each.
    left = "SELECT pid FROM pg_stat_activity WHERE pid = ANY (%s)"
    wait_until(lambda: not run_sql(dsn, left, [pids]))


_WAITING = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
if ON_CITUS:
    _WAITING = f"SELECT max(result::integer) FROM run_command_on_all_nodes($${_WAITING}$$)"


def some_session_waits(connection: psycopg.Connection, sessions: int = 1) -> bool:
    ((waiting,),) = connection.execute(_WAITING.encode())
    return bool(waiting >= sessions)


def wait_for_a_lock(dsn: str, sessions: int = 1) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        wait_until(lambda: some_session_waits(connection, sessions))


def after_a_wait(holder: psycopg.Connection, work: Callable[[], T]) -> T:
    """Return the result of work that waits until ``holder`` commits."""
    info = holder.info
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(work)
        wait_for_a_lock(make_conninfo(info.dsn, password=info.password))
        holder.commit()
        return late.result(timeout=60)


def database_examples(count: int) -> settings:
    shared = [HealthCheck.function_scoped_fixture]
    return settings(max_examples=count, suppress_health_check=shared)


def copy_simhashes(dsn: str, simhashes: NDArray[np.uint64], collection: str = "default") -> None:
    """Add a page for each simhash to an existing collection by COPY, as an importer does."""
    known = "SELECT collection_id FROM pgsimhash.collections WHERE name = %s"
    ((collection_id,),) = run_sql(dsn, known, [collection])
    with psycopg.connect(dsn) as connection:
        copied = "COPY pgsimhash.pages (collection_id, url, simhash) FROM STDIN"
        with connection.cursor().copy(copied) as copy:
            for number, simhash in enumerate(simhashes.view(np.int64).tolist()):
                copy.write_row((collection_id, f"https://copied.example/{number}", simhash))


def simhashes_in(store: Store) -> NDArray[np.uint64]:
    """The distinct simhashes of a collection, in no order."""
    with store._session.calls_to_read() as calls:
        return calls.simhashes()


def insert_page(
    where: str | psycopg.Connection, url: str, simhash: int, collection: str = "default"
) -> None:
    """Insert a page without the package; on a connection, nothing is committed."""
    statement = (
        "INSERT INTO pgsimhash.pages (collection_id, url, simhash) "
        "SELECT collection_id, %s, %s FROM pgsimhash.collections WHERE name = %s"
    )
    values = [url, simhash, collection]
    if isinstance(where, str):
        run_sql(where, statement, values)
    else:
        where.execute(statement, values)


def explained(connection: psycopg.Connection, **settings_: str) -> list[str]:
    """Return a list that collects the plans of all statements, including those within functions."""
    connection.execute("LOAD 'auto_explain'")
    always = {"log_min_duration": "0", "log_nested_statements": "on"}
    for name, value in {**always, **settings_}.items():
        connection.execute(f"SET auto_explain.{name} = {value}".encode())
    connection.execute("SET client_min_messages = log")
    plans: list[str] = []
    connection.add_notice_handler(lambda notice: plans.append(notice.message_primary or ""))
    return plans


@contextmanager
def new_role(dsn: str, options: str = "") -> Iterator[str]:
    """Create a role, and drop it after the block: roles outlive the test's database."""
    name = f"pgsimhash_test_{uuid.uuid4().hex[:12]}"
    run_sql(dsn, f"CREATE ROLE {name} {options}")
    with dropped_afterwards(dsn, [name]):
        yield name


@contextmanager
def dropped_afterwards(dsn: str, names: list[str]) -> Iterator[None]:
    """Drop roles after the block; they would outlive the database."""
    try:
        yield
    finally:
        for name in names:
            role = sql.Identifier(name)
            run_sql(dsn, sql.SQL("DROP OWNED BY {} CASCADE").format(role))
            run_sql(dsn, sql.SQL("DROP ROLE {}").format(role))


def as_role(dsn: str, name: str) -> str:
    if ON_CITUS:
        # It connects to the other nodes as this role. Meanwhile a new database of another test may
        # copy all roles to these nodes: "tuple concurrently updated".
        for _ in range(10):
            with suppress(psycopg.errors.InternalError_):
                run_sql(dsn, sql.SQL("ALTER ROLE {} LOGIN").format(sql.Identifier(name)))
                break
    escaped = name.replace(" ", "\\ ")
    return make_conninfo(dsn, options=f"-c role={escaped}")
