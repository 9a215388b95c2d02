"""Programs in processes of their own."""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import ROOT

PGSIMHASH = (sys.executable, "-m", "pgsimhash")
"""The program that runs the command line."""


def run_program(
    *command: str | Path, stdin: str = "", folder: Path = ROOT, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, cwd=folder, env=environment
    )


def python(
    code: str, *arguments: str | Path, stdin: str = "", folder: Path = ROOT, **variables: str
) -> str:
    """Run code, which must succeed and say nothing on stderr; return what it prints."""
    command = (sys.executable, "-c", code, *arguments)
    done = run_program(*command, stdin=stdin, folder=folder, **variables)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def wait_until(happened: Callable[[], bool]) -> None:
    for _ in range(12_000):
        if happened():
            return
        time.sleep(0.01)
    pytest.fail("it does not happen")


def free_port() -> int:
    """A port below those that the system gives to connections, also until a server uses it."""
    while True:
        # Not of random.random: Hypothesis seeds it alike in each process.
        port = 20_000 + secrets.randbelow(12_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
