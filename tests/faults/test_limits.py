"""The server refuses: no space, read-only, a timeout, a deadlock. Committed work stays."""

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from pgsimhash import connect
from pgsimhash.cli.commands import commands
from tests.conftest import ROOT
from tests.database import run_sql
from tests.faults.cluster import Cluster, own
from tests.faults.conftest import a_cluster
from tests.faults.writing import Writers, pages
from tests.programs import wait_until


@pytest.fixture
def small() -> Iterator[Cluster]:
    """A cluster on a small file system, if one can be mounted."""
    with ExitStack() as stack:
        cluster = stack.enter_context(a_cluster())
        mount = ["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", str(cluster.folder)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("no file system can be mounted")
        stack.callback(subprocess.check_call, ["umount", "-l", str(cluster.folder)])
        own(cluster.folder)
        cluster.make()
        cluster.start()
        stack.callback(cluster.stop)
        yield cluster


def test_a_full_disk_loses_no_page(small: Cluster, writers_of: Callable[..., Writers]) -> None:
    writers = writers_of(small.database("crawl"), pages=1500)
    writers.start()
    writers.wait_until(50)
    ballast = small.folder / "ballast"
    fill(ballast)
    writers.wait()
    assert set(writers.refusals) <= {"gave_up", "connection_lost", "no_server"}
    assert writers.refusals
    ballast.unlink()
    if small.process is None or small.process.poll() is not None:
        small.start()
    writers.assert_sound()
    writers.finish()


def fill(ballast: Path) -> None:
    """Fill the file system."""
    with ballast.open("wb", buffering=0) as file:
        while (free := shutil.disk_usage(ballast.parent).free) > 0:
            try:
                file.write(bytes(min(free, 1 << 20)))
            except OSError:
                return


def test_a_server_that_turns_read_only_loses_no_page(
    cluster: Cluster, writers: Writers, chance: random.Random
) -> None:
    (moment,) = writers.moments(chance, 1)
    writers.start()
    writers.wait_until(moment)
    cluster.setting("default_transaction_read_only", "on")
    writers.wait()
    assert set(writers.refusals) <= {"read_only"}
    writers.assert_sound()
    cluster.setting("default_transaction_read_only", "off")
    writers.finish()


def test_a_statement_timeout_loses_no_page(cluster: Cluster, writers: Writers) -> None:
    for milliseconds in (1, 8):
        cluster.setting("statement_timeout", f"{milliseconds}ms")
        writers.start()
        writers.wait()
        assert set(writers.refusals) <= {"gave_up"}
        cluster.setting("statement_timeout", "0")
        writers.assert_sound()
    writers.finish()


def test_deadlocks_lose_no_page(cluster: Cluster, where: str, writers: Writers) -> None:
    """A row of last_seen before the collection's lock takes locks in the wrong order."""
    connect(where).close()
    # Deadlock detection runs once per wait; by then the other session must wait too.
    cluster.setting("deadlock_timeout", "2s")
    writers.rerun()
    (page,) = list(pages(1, 21))[20:]
    with psycopg.connect(where) as hand:
        hand.execute("SET deadlock_timeout = '60s'")
        seen = "SELECT collection_id, page_id, now() FROM pgsimhash.pages WHERE url = %s"
        columns = "pgsimhash.last_seen (collection_id, page_id, seen_at)"
        hand.execute(f"INSERT INTO {columns} {seen}", [page.url])
        writers.start()
        # A writer waits for the row that this transaction inserted.
        waiting = "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
        wait_until(lambda: bool(run_sql(where, waiting)))
        hand.execute("SELECT pgsimhash.lock_collection('default')")
        hand.commit()
    writers.wait()
    assert set(writers.refusals) <= {"gave_up"}
    writers.assert_sound()
    writers.finish()


def test_cancelled_statements_cause_no_traceback(
    cluster: Cluster, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PGSIMHASH_DSN", where)
    assert CliRunner().invoke(commands, ["ingest", "examples/pages"]).exit_code == 0
    name = psycopg.conninfo.conninfo_to_dict(where)["dbname"]
    for milliseconds in (1, 5, 20):
        cluster.execute(f"ALTER DATABASE {name} SET statement_timeout = '{milliseconds}ms'")
        for command in (
            "decide examples/pages/tide-pools.html --url https://a.example/",
            *("ingest examples/pages", "status", "check", "check --repair --collection default"),
            *("expire --older-than 1s", "analyse clusters"),
            *("collection rebuild default --replace", "migrate", "collection delete default --yes"),
        ):
            done = CliRunner().invoke(commands, command.split())
            assert done.exception is None or isinstance(done.exception, SystemExit), command
            assert done.exit_code in (0, 1, 2, 3)
    cluster.execute(f"ALTER DATABASE {name} RESET statement_timeout")
    checked = CliRunner().invoke(commands, ["check"])
    assert (checked.exit_code, checked.stdout) == (0, "")
