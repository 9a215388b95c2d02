"""Everything the README shows is run: its Python, its SQL, its commands, its printed tables."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from pgsimhash import connect, planner
from pgsimhash.layout import LAYOUTS, Layout
from pgsimhash.sources import read_pages

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert found, f"the README shows no {language}"
    return found


def commands(*starts: str) -> list[str]:
    """The README's shell lines that begin with one of the words, without their comments."""
    lines = [line.split(" #")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if line.startswith(starts)]


def environment(dsn: str) -> dict[str, str]:
    """A shell in which this Python's commands are found first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PGSIMHASH_DSN": dsn}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with the sample pages, where a command may leave files."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


@pytest.mark.parametrize("code", blocks("python"))
def test_python(code: str, dsn: str, clone: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=clone,
        env=environment(dsn),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_first_python_finds_the_copy(dsn: str, clone: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", blocks("python")[0]],
        check=True,
        cwd=clone,
        env=environment(dsn),
        capture_output=True,
        text=True,
    )
    first, second = done.stdout.splitlines()
    assert first.split()[1] == "new"
    assert second.split()[1] in ("identical", "near")
    assert second.split()[3] == first.split()[0]


@pytest.mark.parametrize(
    ("part", "printed"),
    [
        (
            "store.should_store(",
            ["not known, or due", "worth keeping", "new first_seen", "same_bytes"],
        ),
        ("store.rejudge(", [f"https://example.com/{n} new" for n in "abab"]),
    ],
)
def test_what_the_python_prints(part: str, printed: list[str], dsn: str, clone: Path) -> None:
    (code,) = [block for block in blocks("python") if part in block and "undo" not in block]
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=clone,
        env=environment(dsn),
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(printed)
    for line, pattern in zip(lines, printed, strict=True):
        assert re.fullmatch(pattern, line)


def test_sql(dsn: str) -> None:
    with connect(dsn) as store:
        for _ in store.ingest_many(read_pages([ROOT / "examples" / "pages"])):
            pass
        other = (ROOT / "examples" / "pages" / "night-train.html").read_bytes()
        store.ingest((ROOT / "examples" / "pages" / "tide-pools.html").as_uri(), other)
    near, by_hand, insert, history, rename, policies, expire = blocks("sql")
    with psycopg.connect(dsn, autocommit=True) as connection:
        rows = connection.execute(near).fetchall()
        assert len(rows) > 2
        assert rows[0][1] == 0
        assert any(url.endswith("tide-pools-print.html") for url, _ in rows)
        exact = connection.execute(
            "SELECT m.* FROM pgsimhash.pages AS q "
            "CROSS JOIN pgsimhash.near_duplicates(q.simhash, 2) AS m "
            "WHERE q.url LIKE '%/tide-pools.html'"
        ).fetchall()
        assert sorted(connection.execute(by_hand).fetchall()) == sorted(exact)
        assert exact
        assert connection.execute(insert).rowcount == 1
        moved = [row[2:] for row in connection.execute(history).fetchall() if row[2] is not None]
        assert len(moved) == 1
        assert moved[0][0] > 8
        connection.execute(rename)
        connection.execute("SELECT pgsimhash.rename_collection('news', 'default')")
        connection.execute(policies)
        assert connection.execute("SELECT host FROM pgsimhash.policies").fetchall() == [("*",)]
        connection.execute(expire)


def test_commands(dsn: str, clone: Path) -> None:
    """The commands in their order, in one shell that stops at the first failure."""
    shown = commands("pgsimhash collection create")
    shown += commands("pgsimhash ingest", "pgsimhash find", "pgsimhash fingerprint")
    shown += commands(
        "pgsimhash should-fetch",
        "pgsimhash decide",
        "pgsimhash policy",
        "pgsimhash expire",
        "pgsimhash run list",
    )
    shown += commands("pgsimhash pairs", "pgsimhash clusters", "pgsimhash compare")
    shown += commands("pgsimhash status", "pgsimhash migrate --sql >", "pgsimhash collection plan")
    shown += commands("pgsimhash collection relayout", "pgsimhash evaluate")
    shown += commands("pgsimhash explain", "pgsimhash history", "pgsimhash report")
    shown += commands("pgsimhash delete", "pgsimhash run undo", "pgsimhash mark list")
    shown += commands("pgsimhash collection refingerprint", "pgsimhash collection rename")
    shown += commands("pgsimhash collection rejudge", "pgsimhash collection list")
    shown += commands("pgsimhash collection delete")
    shown = [line for line in shown if "VERSION" not in line]
    assert len(shown) == 36
    script = "\n".join(["set -eu", *shown])
    done = subprocess.run(["sh", "-c", script], cwd=clone, env=environment(dsn), check=False)
    assert done.returncode == 0
    assert (clone / "verdicts.jsonl").read_text().count("\n") > 15
    assert (clone / "strict.jsonl").read_text().count("\n") > 15
    assert (clone / "schema.sql").read_text().startswith("BEGIN;")
    assert (clone / "curve.jsonl").read_text().count('"recommended": true') == 1
    assert (clone / "report.html").read_text().startswith("<!doctype html>")
    for page in ("why", "timeline", "glance"):
        assert (clone / f"{page}.html").read_text().startswith("<!doctype html>")
    assert (clone / "borderline.csv").read_text().startswith("a,b,label")


def test_the_table_of_layouts_is_what_plan_says() -> None:
    rows = re.findall(
        r"^\| `([^`]+)`[^|]*\|([^|]+)\|([^|]+)\|([^|]+)\|([^|]+)\|([^|]+)\|$", README, re.M
    )
    shown = {name: [cell.strip() for cell in cells] for name, *cells in rows if name in LAYOUTS}

    def latency(layout: Layout, distance: int) -> str:
        if distance not in layout.distances:
            return "-"
        milliseconds = planner.plan(layout, 10**8, distance).memory_milliseconds
        return f"{milliseconds:.2g} ms" if milliseconds < 100 else f"{milliseconds:.0f} ms"

    assert shown == {
        layout.name: [
            str(len(layout.permutations)),
            str(planner.plan(layout, 10**8, 3).bytes_a_row),
            f"0-{layout.distances[-1]}",
            latency(layout, 3),
            latency(layout, 8),
        ]
        for layout in LAYOUTS.values()
    }


def test_the_commands_that_deploy_the_schema(empty_dsn: str) -> None:
    (deploying,) = [block for block in blocks("sh") if block.startswith("alembic upgrade")]
    alembic, migrate, piped = [line.split(" #")[0].strip() for line in deploying.splitlines()]
    assert piped == 'pgsimhash migrate --sql | psql "$PGSIMHASH_DSN"'
    back = "pgsimhash migrate --downgrade base"
    assert f"`{back}`" in README
    for command in (alembic, migrate, back):
        subprocess.run(["sh", "-c", command], check=True, cwd=ROOT, env=environment(empty_dsn))


def test_the_output_of_the_demo(dsn: str) -> None:
    """The tables in the README are what the command prints, but for the speed."""
    done = subprocess.run(
        [sys.executable, "-m", "pgsimhash", "ingest", "examples/pages", "--summary"],
        check=True,
        cwd=ROOT,
        env={**environment(dsn), "COLUMNS": "100"},
        capture_output=True,
        text=True,
    )

    def lines(text: str) -> list[str]:
        return [line.rstrip() for line in text.splitlines() if "pages a second" not in line]

    assert lines(done.stderr) == lines(blocks("text")[0])
