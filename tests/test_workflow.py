"""The hosted workflows test with the oldest libraries, and release only complete packages."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT

WORKFLOWS = ROOT / ".github" / "workflows"

LIBRARIES = {"alembic", "lxml", "psycopg", "sqlalchemy"}


def test_the_oldest_libraries_are_those_of_the_package() -> None:
    workflow = (WORKFLOWS / "ci.yml").read_text(encoding="utf-8")
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


@pytest.mark.parametrize(
    ("tag", "heading", "urls", "is_released"),
    [
        ("v0.2.0", "## 0.2.0 (2026-12-01)", "[project.urls]", True),
        ("v0.2.1", "## 0.2.0 (2026-12-01)", "[project.urls]", False),
        ("0.2.0", "## 0.2.0 (2026-12-01)", "[project.urls]", False),
        ("v0.2.0", "## 0.2.0 (unreleased)", "[project.urls]", False),
        ("v0.2.0", "## 0.2.0 (2026-12-01)", "", False),
    ],
)
def test_a_release_has_its_version_a_date_and_urls(
    tmp_path: Path, tag: str, heading: str, urls: str, is_released: bool
) -> None:
    workflow = (WORKFLOWS / "release.yml").read_text(encoding="utf-8")
    _, _, step = workflow.partition("Check that the tag is the version")
    script, _, _ = step.partition("        run: |\n")[2].partition("      - run:")
    (tmp_path / "pyproject.toml").write_text(f'[project]\nversion = "0.2.0"\n{urls}\n')
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n")
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env={"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"},
        check=False,
        capture_output=True,
    )
    assert (done.returncode == 0) == is_released


def test_only_the_job_that_publishes_may_ask_for_a_token_and_it_runs_no_code() -> None:
    workflow = (WORKFLOWS / "release.yml").read_text(encoding="utf-8")
    before, _, publish = workflow.partition("\n  publish:\n")
    assert "needs: [build, test]" in publish
    assert "id-token: write" in publish
    assert "id-token" not in before
    assert "run:" not in publish
    assert "checkout" not in publish
