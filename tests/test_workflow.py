"""The hosted workflow runs the tests with the oldest libraries too."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib

from tests.conftest import ROOT

LIBRARIES = {"alembic", "lxml", "psycopg", "sqlalchemy"}


def test_the_oldest_libraries_are_those_of_the_package() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    _, _, job = workflow.partition("\n  oldest:\n")
    assert "PIP_CONSTRAINT: oldest.txt" in job
    assert "run: ./run test" in job
    found = re.search(r"run: (sed .* pyproject\.toml) > oldest\.txt\n", job)
    assert found is not None
    printed = subprocess.check_output(shlex.split(found[1]), cwd=ROOT, text=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = dict(one.split(">=") for one in project["dependencies"] if one.count(">=") == 1)
    expected = [f"{name}=={bounds[name]}" for name in sorted(LIBRARIES)]
    assert printed.splitlines() == expected
