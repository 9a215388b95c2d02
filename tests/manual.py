"""The README and the pages of docs/, and how their examples are run."""

import os
import re
import sys
from pathlib import Path

from tests.conftest import ROOT
from tests.programs import run_program

README = ROOT / "README.md"

PAGES = {path.name: path for path in [README, *sorted((ROOT / "docs").glob("*.md"))]}

STORIES = {"first-hour.md", "alembic.md", "reliability.md", "sql-only.md", "web-service.md"}
"""Pages whose blocks depend on each other; tests/test_examples.py, tests/alembic/test_page.py and
tests/faults/test_copies.py run them as a whole, tests/test_web_service.py runs the service.
"""

LANGUAGES = frozenset({"python", "sh", "sql", "text", "php"})

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

NOT_RUN = (
    "./run ", "docker ", "python3 -m venv ", "pip install ", "pgsimhash migrate --dsn ",
    "pgsimhash migrate --sql | psql ",
    "pgsimhash migrate --schema restored", 'psql "$PGSIMHASH_DSN" -c "DELETE ', "pg_dump ",
    "sed -E ", 'psql "$PGSIMHASH_DSN" --single-transaction ', "PGSIMHASH_SCHEMA=restored ",
)  # fmt: skip
"""The beginnings of commands that install packages, name an unreachable server, or need pg_dump."""


def text_of(page: str) -> str:
    return PAGES[page].read_text(encoding="utf-8")


def all_blocks(page: str) -> list[tuple[str, str]]:
    """Return the language and the content of each block of a page."""
    return [(found[1], found[2]) for found in _BLOCK.finditer(text_of(page))]


def blocks(page: str, language: str) -> list[str]:
    return [content for found, content in all_blocks(page) if found == language]


def pages_with(language: str) -> list[str]:
    """Return the pages whose blocks of a language can be run separately."""
    return [page for page in PAGES if page not in STORIES and blocks(page, language)]


def commands(page: str) -> list[str]:
    """Return the runnable lines of a page's shell blocks, without their comments."""
    lines = [
        line.split(" #")[0].strip() for block in blocks(page, "sh") for line in block.split("\n")
    ]
    return [line for line in lines if line and not line.startswith(NOT_RUN)]


def environment(dsn: str) -> dict[str, str]:
    """Return the environment of a shell with this Python's commands first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PGSIMHASH_DSN": dsn}


def run_python(code: str, dsn: str, folder: Path) -> list[str]:
    return _run((sys.executable, "-c", code), dsn, folder).splitlines()


def run_commands(lines: list[str], dsn: str, folder: Path) -> str:
    """Run lines in one shell, which stops at the first failure, and return the printed lines."""
    return _run(("sh", "-c", "\n".join(["set -eu", *lines])), dsn, folder)


def _run(command: tuple[str, ...], dsn: str, folder: Path) -> str:
    done = run_program(*command, folder=folder, **environment(dsn))
    assert done.returncode == 0, done.stderr
    return done.stdout
