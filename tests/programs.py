"""Code that runs in a Python process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT


def python(
    code: str, *arguments: str, stdin: str = "", folder: Path = ROOT, **variables: str
) -> str:
    """Run code, which must succeed and say nothing on stderr; return what it prints."""
    command, environment = [sys.executable, "-c", code, *arguments], {**os.environ, **variables}
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, cwd=folder, env=environment
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
