"""The sample pages give the results in examples/expected.csv."""

import contextlib
import csv
import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped, unused-ignore]

from pgsimhash import PageError, Store, connect, fingerprint, hamming_distance
from pgsimhash.sources import read_pages
from tests.manual import blocks, run_commands

EXAMPLES = Path(__file__).parent.parent / "examples"


def documents(text: str) -> Iterator[Any]:
    """The JSON objects in a text, one after the other."""
    decoder, end = json.JSONDecoder(), 0
    while (start := text.find("{", end)) >= 0:
        value, end = decoder.raw_decode(text, start)
        yield value


def test_every_copy_is_found_and_nothing_else(store: Store) -> None:
    with (EXAMPLES / "expected.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["page"], row["why"], row["original"]) for row in csv.DictReader(file)]
    found: dict[str, str] = {}
    for verdict in store.ingest_many(read_pages([EXAMPLES / "pages"])):
        page = verdict.url.rsplit("/", 1)[-1]
        nearest = (verdict.duplicate_of or "").rsplit("/", 1)[-1]
        # The nearest known page may be another copy, whose original was found before.
        original = found.get(nearest) or nearest
        found[page] = "too short" if verdict.verdict == "too_short" else original
    assert found == {
        page: "too short" if why == "too_short" else original for page, why, original in rows
    }
    # Pages in legacy charsets are not UTF-8.
    for name in ("seilfaehre-windows-1252", "morning-market-ja-shift-jis"):
        with pytest.raises(UnicodeDecodeError):
            (EXAMPLES / "pages" / f"{name}.html").read_text("utf-8")


def test_your_own_table(empty_dsn: str, tmp_path: Path) -> None:
    """It finds the pairs within 8 bits, in a database without the package's schema."""
    program = (EXAMPLES / "own_table.py").read_text(encoding="utf-8")
    (tmp_path / "own_table.py").write_text(program, encoding="utf-8")
    (tmp_path / "pages").symlink_to(EXAMPLES / "pages")
    lines = run_commands(["python own_table.py"], empty_dsn, tmp_path).splitlines()
    simhashes = {}
    for path in (EXAMPLES / "pages").glob("*.html"):
        with contextlib.suppress(PageError):
            simhashes[path.stem] = fingerprint(path.read_bytes()).simhash
    pairs = {
        f"{hamming_distance(simhashes[one], simhashes[other])} {one} {other}"
        for one, other in combinations(sorted(simhashes), 2)
        if hamming_distance(simhashes[one], simhashes[other]) <= 8
    }
    assert lines[0].startswith("not-found: ")
    assert len(lines) == len(set(lines))
    assert set(lines[1:]) == pairs


def test_an_ingest_job_in_asyncio(dsn: str, tmp_path: Path) -> None:
    """It decides about every page; later only pages that were not stored are due."""
    command = [f"python {EXAMPLES / 'async_ingest.py'}"]
    lines = run_commands(command, dsn, tmp_path).splitlines()
    assert {line.split()[1] for line in lines} == {
        path.as_uri() for path in (EXAMPLES / "pages").glob("*.html")
    }
    # Which of several pages is the first depends on their arrival.
    assert len([line for line in lines if line.startswith("new ")]) == 8
    assert len([line for line in lines if line.startswith("too_short ")]) == 1
    again = run_commands(command, dsn, tmp_path).splitlines()
    assert again == [line for line in lines if line.startswith("too_short ")]


def test_metrics_for_prometheus(dsn: str, tmp_path: Path) -> None:
    shown = run_commands([f"python {EXAMPLES / 'prometheus_metrics.py'}"], dsn, tmp_path)
    labels = 'collection="default",name="ingest"'
    assert f'pgsimhash_results_total{{{labels},result="new"}} 8.0' in shown
    assert f'pgsimhash_results_total{{{labels},result="too_short"}} 1.0' in shown
    assert f"pgsimhash_seconds_count{{{labels}}} 1.0" in shown
    assert 'pgsimhash_results_total{collection="default",name="find",result="found"}' in shown


def test_traces_for_opentelemetry(dsn: str, tmp_path: Path) -> None:
    shown = run_commands([f"python {EXAMPLES / 'opentelemetry_traces.py'}"], dsn, tmp_path)
    spans = {value["name"]: value for value in documents(shown) if "name" in value}
    assert set(spans) == {"pgsimhash ingest", "pgsimhash find", "job"}
    ingest = spans["pgsimhash ingest"]
    assert ingest["parent_id"] == spans["job"]["context"]["span_id"]
    assert ingest["kind"] == "SpanKind.CLIENT"
    assert ingest["attributes"] == {
        "db.system.name": "postgresql", "db.operation.name": "ingest",
        "pgsimhash.collection": "default", "pgsimhash.count": 24, "pgsimhash.run_id": 1,
    }  # fmt: skip
    assert '"pgsimhash.result": "new"' in shown


def test_the_containers(empty_dsn: str, tmp_path: Path) -> None:
    """Docker itself is not needed: the file is read, and the job's command runs here."""
    services = yaml.safe_load((EXAMPLES / "compose.yaml").read_text(encoding="utf-8"))["services"]
    job, server = services["job"], services["postgres"]
    assert job["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert job["environment"]["PGSIMHASH_DSN"].endswith("@postgres/postgres")
    assert job["volumes"] == ["${PAGES:-./pages}:/pages:ro"]
    assert server["healthcheck"]["test"].startswith("pg_isready ")
    root = (EXAMPLES / job["build"]["context"]).resolve()
    copied = re.findall("^COPY (.*) [^ ]+$", job["build"]["dockerfile_inline"], re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert names > {"pyproject.toml", "pgsimhash", "sql", "migrations", "native"}
    assert [name for name in names if not (root / name).exists()] == []
    (command,) = re.fullmatch('sh -c "(.*)"', job["command"]).groups()  # type: ignore[union-attr]
    run_commands([command.replace("/pages", str(EXAMPLES / "pages"))], empty_dsn, tmp_path)
    with connect(empty_dsn, create=False) as store:
        assert store.get((EXAMPLES / "pages" / "lighthouse.html").as_uri()) is not None
    assert any("examples/compose.yaml up" in block for block in blocks("operate.md", "sh"))
