"""PgBouncer, the real program, in front of the test server, in transaction mode."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo

from tests.programs import free_port

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
        _wait_for(pooled, process, folder / "log")
        yield pooled
    finally:
        process.terminate()
        process.wait()


def _as_another(host: str) -> list[str]:
    """Set its user, because PgBouncer refuses to run as root."""
    if os.getuid() != 0:
        return []
    return ["-u", Path(host).owner() if host.startswith("/") else "nobody"]


def _wait_for(dsn: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(100):
        try:
            psycopg.connect(dsn).close()
        except psycopg.OperationalError:
            if process.poll() is not None:
                break
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.1)
        else:
            return
    pytest.fail(log.read_text())
