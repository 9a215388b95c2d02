"""The lists of what is public, one name a line, and their comparison with the code."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

WRITE = "PGSIMHASH_TEST_PUBLIC"
"""Set to ``write``, the tests write the lists."""


def compare(name: str, lines: Iterable[str]) -> None:
    """Compare lines with a list of this folder, or write it."""
    path, present = Path(__file__).parent / name, sorted(set(lines))
    if os.environ.get(WRITE) == "write":
        path.write_text("".join(f"{line}\n" for line in present), encoding="utf-8")
    listed = path.read_text(encoding="utf-8").splitlines()
    gone = [f"- {line}" for line in listed if line not in present]
    come = [f"+ {line}" for line in present if line not in listed]
    if gone or come or listed != present:
        command = f"{WRITE}=write ./run test tests/public tests/cli/test_printing.py"
        changes = "\n".join([*gone, *come]) or "the order"
        pytest.fail(
            f"the code and tests/public/{name} differ:\n{changes}\nIf that is meant: {command}",
            pytrace=False,
        )
