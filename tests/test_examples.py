"""The sample pages, the examples, the README, and pages that are typed from their first line on."""

import contextlib
import csv
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from itertools import combinations
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml  # type: ignore[import-untyped, unused-ignore]

from manual.growth import growth
from manual.picture import picture
from pgsimhash import PageError, Store, connect, fingerprint, hamming_distance
from pgsimhash.sources import read_pages
from tests.cli.conftest import on_a_terminal
from tests.conftest import ROOT
from tests.database import run_sql
from tests.manual import NOT_RUN, all_blocks, blocks, commands, run_commands, text_of
from tests.programs import free_port

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
        found[page] = "too short" if verdict.kind == "too_short" else original
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
    # A slow machine decides several batches.
    assert re.search(rf"pgsimhash_seconds_count{{{labels}}} [1-9]", shown)
    assert 'pgsimhash_results_total{collection="default",name="find",result="found"}' in shown


def test_traces_for_opentelemetry(dsn: str, tmp_path: Path) -> None:
    shown = run_commands([f"python {EXAMPLES / 'opentelemetry_traces.py'}"], dsn, tmp_path)
    found = [value for value in documents(shown) if "name" in value]
    spans = {value["name"]: value for value in found}
    assert set(spans) == {"pgsimhash ingest", "pgsimhash find", "job"}
    ingest = spans["pgsimhash ingest"]
    assert ingest["parent_id"] == spans["job"]["context"]["span_id"]
    assert ingest["kind"] == "SpanKind.CLIENT"
    # A slow machine decides several batches.
    batches = [value["attributes"] for value in found if value["name"] == ingest["name"]]
    assert sum(batch.pop("pgsimhash.count") for batch in batches) == 24
    for batch in batches:
        assert batch == {
            "db.system.name": "postgresql", "db.operation.name": "ingest",
            "pgsimhash.collection": "default", "pgsimhash.run_id": 1,
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
    dockerfile = job["build"]["dockerfile_inline"]
    assert re.findall("^FROM [^ ]+-slim", dockerfile, re.MULTILINE) == ["FROM python:3.13-slim"] * 2
    assert "gcc" not in dockerfile.rpartition("FROM ")[2]
    copied = re.findall("^COPY ([^-].*) [^ ]+$", dockerfile, re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert names > {"pyproject.toml", "setup.py", "pgsimhash", "sql", "migrations", "native"}
    assert [name for name in names if not (root / name).exists()] == []
    (command,) = re.fullmatch('sh -c "(.*)"', job["command"]).groups()  # type: ignore[union-attr]
    run_commands([command.replace("/pages", str(EXAMPLES / "pages"))], empty_dsn, tmp_path)
    with connect(empty_dsn, create=False) as store:
        assert store.get((EXAMPLES / "pages" / "lighthouse.html").as_uri()) is not None
    assert any("examples/compose.yaml up" in block for block in blocks("operate.md", "sh"))


def shown(part: str) -> list[str]:
    (found,) = [block for block in blocks("README.md", "text") if part in block]
    return found.splitlines()


def test_the_licence_section_names_each_dependency_under_the_gpl_or_lgpl() -> None:
    installed, waiting = set(), {"pgsimhash"}
    while waiting:
        name = waiting.pop()
        installed.add(name)
        for required in metadata.requires(name) or []:
            other = re.match(r"[\w.-]+", required)
            if other and "extra ==" not in required and other[0].lower() not in installed:
                with suppress(metadata.PackageNotFoundError):
                    metadata.distribution(other[0])
                    waiting.add(other[0].lower())
    assert {"psycopg", "lxml", "alembic"} <= installed
    _, _, section = text_of("install.md").partition("## Licences")
    for name in installed:
        about = metadata.metadata(name)
        fields = ("License", "License-Expression", "Classifier")
        said = " ".join(value for field in fields for value in about.get_all(field, []))
        if re.search(r"\bL?GPL|General Public License", said):
            assert name in section


def test_the_output_of_the_demo(dsn: str) -> None:
    """The text in the README is that of the command, except for the speed."""
    shown_there = on_a_terminal("ingest", "examples/pages", "--dsn", dsn, whole=True, NO_COLOR="1")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown_there.stderr).replace("\r\n", "\n")
    printed = [line.rpartition("\r")[2].rstrip() for line in text.split("\n")]
    told = shown("24 pages")
    (first,) = (at for at, line in enumerate(printed) if line.startswith("24 pages"))
    assert [line.partition(" in ")[0] for line in told] == [
        line.partition(" in ")[0] for line in printed[first : first + len(told)]
    ]


def test_the_columns_of_the_table(connection: psycopg.Connection) -> None:
    row = r"^\| `(\w+)` \| (boolean|integer|bigint) \|"
    columns = connection.execute(
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute "
        "WHERE attrelid = 'pgsimhash.pages'::regclass AND attnum > 0 ORDER BY attnum"
    ).fetchall()
    told = re.compile("collection_id|simhash|indexed|prefix_.*")
    assert re.findall(row, text_of("sql.md"), re.MULTILINE) == [
        (name, kind) for name, kind in columns if told.fullmatch(name)
    ]


_ROW = r"^\| ([^|]+) \| ([^|]*\d[^|]*) \| \[[^]]+\]\(([^)#]+)[^)]*\) \|$"
FIGURES = re.findall(_ROW, text_of("README.md"), re.MULTILINE)


@pytest.mark.parametrize(("what", "figures", "page"), FIGURES)
def test_the_figures_are_those_of_the_measurements(what: str, figures: str, page: str) -> None:
    source = (ROOT / page).read_text(encoding="utf-8")
    for number, percent in re.findall(r"(\d[\d,.]*)(%?)", figures):
        share = f"{float(number) / 100:.3f}".lstrip("0") if percent else number
        assert re.search(rf"(?<![\d.,]){re.escape(share.rstrip(','))}(?![\d.])", source), what


def test_the_picture_shows_the_sample_pages() -> None:
    assert (ROOT / "docs" / "seen.svg").read_text(encoding="utf-8") == picture()


def test_the_picture_of_growth_shows_the_measured_table() -> None:
    assert (ROOT / "docs" / "growth.svg").read_text(encoding="utf-8") == growth()


@pytest.fixture
def empty(empty_dsn: str) -> Iterator[str]:
    """A database without the schema; the role that the page creates belongs to the server."""
    yield empty_dsn
    run_sql(empty_dsn, "DROP OWNED BY crawler")
    run_sql(empty_dsn, "DROP ROLE crawler")


def test_the_first_hour(empty: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    port = str(free_port())
    answers: list[tuple[object, ...]] = []
    for language, block in all_blocks("first-hour.md"):
        content = block.replace("8123", port)
        named = re.match(r"(?:#|--) (\w+\.\w+)\n", content)
        if named:
            (tmp_path / named[1]).write_text(content, encoding="utf-8")
        elif language == "sql":
            answers = run_sql(empty, content)
        else:
            assert language == "sh"
            skipped = (*NOT_RUN, "cp -r ", "export ")
            lines = [line for line in content.splitlines() if not line.startswith(skipped)]
            run_commands(lines, empty, tmp_path)
    verdicts = [line.split()[0] for line in (tmp_path / "crawl.txt").read_text().splitlines()]
    assert len(verdicts) == 25
    assert verdicts.count("new") == 9
    assert verdicts.count("too_short") == 1
    assert {"new", "too_short", "duplicate", "near"} == set(verdicts)
    assert len(answers) > 8
    assert (tmp_path / "glance.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert run_sql(empty, "SELECT count(*) FROM articles") == [(9,)]


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_sql_only(empty_dsn: str, tmp_path: Path) -> None:
    run_commands(commands("sql-only.md"), empty_dsn, tmp_path)
    for number, content in enumerate(blocks("sql-only.md", "sql")):
        (tmp_path / f"{number}.sql").write_text(content, encoding="utf-8")
    files = [f"-f {number}.sql" for number in range(len(blocks("sql-only.md", "sql")))]
    psql = 'psql "$PGSIMHASH_DSN" -X -q -A -t -v ON_ERROR_STOP=1'
    run = run_commands([f"{psql} {' '.join(files)}"], empty_dsn, tmp_path)
    collection_id, *printed = run.splitlines()
    assert (collection_id, printed[0]) == ("1", "new|||t")
    assert re.fullmatch(r"(duplicate|near)\|\d\|https://example.com/tides\|f", printed[1])
    assert re.fullmatch(r"https://mirror.example/tides\|\d", printed[2])
    assert printed[3] == "20|60"
    clusters = [line.split("|") for line in printed[4:]]
    assert [int(pages) for _, pages, _ in clusters] == [3] * 20 + [2]
    with connect(empty_dsn, collection="articles", create=False) as store:
        expected = {frozenset(page.url for page in cluster.pages) for cluster in store.clusters()}
    assert {frozenset(urls[1:-1].split(",")) for _, _, urls in clusters} == expected
    _run_the_statements_of_programs(empty_dsn)


def statements(language: str) -> list[str]:
    """The SQL in the program of a language, with PostgreSQL's placeholders."""
    (program,) = blocks("sql-only.md", language)
    found = re.findall(r'"(SELECT [^"]+)"', program)
    found = [" ".join(one.split()) for one in found]
    return [one.replace("?", "$1", 1).replace("?", "$2", 1) for one in found]


def _run_the_statements_of_programs(dsn: str) -> None:
    add, find = statements("php")
    text = " ".join(f"word{n}" for n in range(50))
    with psycopg.connect(dsn, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        values = ["https://example.com/mine", text]
        assert connection.execute(add, values).fetchall() == [("new", None, True)]
        assert connection.execute(find, [text]).fetchall() == [("https://example.com/mine", 0)]
