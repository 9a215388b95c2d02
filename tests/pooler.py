"""PgBouncer, the real program, in front of the test server, in transaction mode."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg import conninfo

from tests.programs import free_port, wait_until

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
REQUIRED = os.environ.get("PGSIMHASH_TEST_POOLER") == "required"

CONFIGURATION = """\
[databases]
pooled = {database}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {size}
"""


@contextmanager
def pooler(dsn: str, folder: Path, size: int) -> Iterator[str]:
    """Lend the DSN of a pooler with this many server connections, stopped after the block."""
    assert PROGRAM is not None, "pgbouncer is not installed"
    with psycopg.connect(dsn) as connection:
        info = connection.info
        target = {"host": info.host, "port": str(info.port), "dbname": info.dbname}
        target |= {"user": info.user, "password": info.password}
    user = _as_another(str(target["host"]))
    port = free_port()
    database = " ".join(f"{name}='{value}'" for name, value in target.items() if value)
    file = folder / "pgbouncer.ini"
    file.write_text(CONFIGURATION.format(database=database, port=port, size=size))
    command = [PROGRAM, *user, str(file)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        pooled = conninfo.make_conninfo(
            host="127.0.0.1", port=port, dbname="pooled", user=target["user"], sslmode="disable"
        )

        def answers() -> bool:
            assert process.poll() is None, (folder / "log").read_text()
            with suppress(psycopg.OperationalError):
                psycopg.connect(pooled).close()
                return True
            return False

        wait_until(answers)
        yield pooled
    finally:
        process.terminate()
        process.wait()


def _as_another(host: str) -> list[str]:
    """Set its user, because PgBouncer refuses to run as root."""
    if os.getuid() != 0:
        return []
    return ["-u", Path(host).owner() if host.startswith("/") else "nobody"]
