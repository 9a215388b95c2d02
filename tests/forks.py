"""Programs in forks of a process that imported their modules once, which takes most of a start."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.conftest import ROOT

Run = Callable[..., subprocess.CompletedProcess[str]]

_SERVER = """
import gc, importlib, json, os, runpy, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
# Otherwise a fork copies all objects, once it collects garbage or ends.
gc.collect()
gc.freeze()
for line in sys.stdin:
    if (child := os.fork()) == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
module, *sys.argv[1:] = json.loads(line)["command"]
vars().update(json.loads(line))
for number, file in enumerate([os.devnull, *files]):
    os.dup2(os.open(file, os.O_RDWR | os.O_CREAT), number)
os.chdir(folder)
os.environ.clear()
os.environ.update(environment)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


@contextmanager
def forking(*modules: str, **variables: str) -> Iterator[Run]:
    """Lend a function that runs ``python -m`` like ``run_program``, one program at a time.

    ``terminals`` are the names of those that are stderr, or stdout and stderr.
    """
    command = (sys.executable, "-c", _SERVER, *modules)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, **variables},
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        stdin, stdout = server.stdin, server.stdout

        def run(
            *command: str | Path, folder: Path = ROOT, terminals: Sequence[str] = (), **more: str
        ) -> subprocess.CompletedProcess[str]:
            with TemporaryDirectory() as name:
                files = [Path(name) / "stdout", Path(name) / "stderr"]
                opened = [*map(str, files)][: 2 - len(terminals)]
                request = {
                    "command": [*map(str, command)], "files": [*opened, *terminals],
                    "folder": str(folder), "environment": {**os.environ, **variables, **more},
                }  # fmt: skip
                print(json.dumps(request), file=stdin, flush=True)
                code = int(stdout.readline())
                said = (Path(file).read_text(encoding="utf-8") for file in opened)
                return subprocess.CompletedProcess(command, code, *said)

        yield run


@pytest.fixture(scope="session")
def crawls() -> Iterator[Run]:
    """Runs crawls of ``tests.crawl``."""
    with forking(
        "scrapy.crawler", "pgsimhash.scrapy", "pgsimhash.reading.workers", "pgsimhash.store.store",
        "scrapy.core.downloader.handlers.http11", "scrapy.downloadermiddlewares.cookies",
        "scrapy.extensions.feedexport", "scrapy.extensions.remote_control",
    ) as run:  # fmt: skip
        yield run


@pytest.fixture(scope="session")
def with_alembic() -> Iterator[Run]:
    """Runs Alembic."""
    variables = {"PGSIMHASH_DSN": "host=nowhere.invalid", "PYTHONWARNINGS": "error"}
    modules = ("alembic.config", "sqlalchemy.orm", "psycopg", "pgsimhash.schema.migrate")
    with forking(*modules, **variables) as run:
        yield run
