"""All examples of the README and docs/ run: Python, SQL and commands; and their output is right."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from pgsimhash import connect, parse_simhash
from pgsimhash.schemes.registry import scheme_names
from pgsimhash.search.layout import LAYOUTS
from pgsimhash.sources import read_pages
from tests.batch.test_spark import needs_spark
from tests.conftest import ROOT
from tests.database import copy_simhashes, run_sql, wait_for_a_lock
from tests.faults.cluster import programs
from tests.manual import (
    LANGUAGES,
    PAGES,
    all_blocks,
    blocks,
    commands,
    pages_with,
    run_commands,
    run_python,
    text_of,
)
from tests.store.content import content, page_at

HAS_PSQL = shutil.which("psql") is not None


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with the sample pages, in which commands may leave files."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


@pytest.fixture
def filled(dsn: str) -> str:
    """A database with the sample pages, one of them in two versions."""
    pages = ROOT / "examples" / "pages"
    with connect(dsn) as store:
        list(store.ingest_many(read_pages([pages])))
        other = (pages / "night-train.html").read_bytes()
        store.ingest((pages / "tide-pools.html").as_uri(), other)
    return dsn


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_of_a_kind_that_is_run(page: str) -> None:
    found = all_blocks(page)
    assert len(re.findall("^ *(```|~~~)", text_of(page), re.MULTILINE)) == 2 * len(found)
    assert {language for language, _ in found} <= LANGUAGES
    # Only the README has plain-text blocks, which tests/test_examples.py checks.
    assert page == "README.md" or not blocks(page, "text")


PRINTED: list[tuple[str, str, list[str]]] = [
    ("README.md", "store.near_pages(", [r"https://example.com/tide-pools new True None",
        r"https://example.com/tide-pools-print duplicate False https://example.com/tide-pools",
        r"0 https://example.com/tide-pools-print .+", r"\d https://example.com/tide-pools .+"]),
    ("search.md", "store.near_pages(", [r"\d https://example.com/tide-pools-print .+",
        r"\d https://example.com/tide-pools-redesign .+"]),
    ("crawlers.md", "urlopen", [r"keep file://.+\.html"] * 8),
    ("from-the-blog.md", "store.ingest(", ["new content: https://example.com/a",
        "cache hit: https://example.com/b"]),
    ("frames.md", "pandas", [r"\['first_seen', 'within_distance', .+\]", "3"]),
    ("frames.md", "verdicts.parquet", ["8 clusters", r"\d+ simhashes", "8 8"]),
    ("texts.md", "titles = pd", [r"\[\['A1', .+, 'A1'\], .+",
        r"\[\['A1', 'A2'\], \['B1', 'B2'\], .+"]),
    ("maintain.md", "store.undo_run(", [r"1 \['https://example.com/wells'\]"]),
    ("install.md", 'schema="crawl"', ["1 1"]), ("sqlalchemy.md", "sought = pgsimhash", [r"1 \d"]),
    ("sqlalchemy.md", "find(notes", [r"\[\(1, 'https://example.com/a', 2\)\]"]),
    ("other-tools.md", "def embed", ["8 pages embedded"]),
    ("other-tools.md", "from crawl4ai", [
        r"(new|near|duplicate) file://.+\.html|too_short file://.+/not-found\.html"] * 24),
    ("other-tools.md", "import duckdb", [
        r"\[\('duplicate', \d+, \d+\), .+, \('new', 8, \d+\), \('too_short', 1, None\)\]"]),
    ("scale.md", "parquet.find_many(", ["1000000 simhashes", "1000 2"]),
    ("scale.md", "pyspark", [r"\d+ pairs", "8 clusters of pages", r"\d+ simhashes",
        r"\d+ matches"]),
    ("schemes.md", "my-news-1", [r"\d+"]),
    ("schemes.md", "scheme_for_texts", ["pgsimhash-short-1 True", "False"]),
    ("limits.md", "fingerprint(html)", ["needs_script", "too_short"]),
    ("errors.md", "distance=64", ["too_short too_short", "failed not_html", "invalid_argument",
        "a distance is an integer from 0 to 12, not 64"]),
    ("monitor.md", "def show", [r"ingest default None 1 \{'new': 1\}", r"[\d.e-]+ None",
        r"find default None 1 \{'found': 1\}", r"[\d.e-]+ None"]),
    ("simhash-py.md", "class Client", [r"12345 \[\[54321\], \[\]\]"]),
]  # fmt: skip
"""A page, a part of a block, and the pattern of each line that it prints."""


def test_a_part_names_one_block() -> None:
    for page, part, _ in PRINTED:
        assert sum(part in block for block in blocks(page, "python")) == 1, part


@pytest.mark.parametrize(("page", "code"), [
    pytest.param(page, code, id=f"{page}-{number}", marks=needs_spark if "pyspark" in code else ())
    for page in pages_with("python")
    for number, code in enumerate(blocks(page, "python"), 1)
])  # fmt: skip
def test_python(page: str, code: str, dsn: str, clone: Path) -> None:
    if "from crawl4ai" in code:
        shutil.copy(ROOT / "tests" / "crawl4ai_stand_in.py", clone / "crawl4ai.py")
    lines = run_python(code, dsn, clone)
    for printed in (known for at, part, known in PRINTED if at == page and part in code):
        assert len(lines) == len(printed)
        for line, pattern in zip(lines, printed, strict=True):
            assert re.fullmatch(pattern, line)


@pytest.mark.parametrize("page", [page for page in pages_with("sh") if page != "install.md"])
def test_commands(page: str, dsn: str, clone: Path) -> None:
    """The commands of a page in order, as typed by a reader who begins with that page."""
    lines = [line for line in commands(page) if HAS_PSQL or not line.startswith("psql ")]
    run_commands(lines, dsn, clone)
    for name, pattern in FILES[page].items():
        text = (clone / name).read_text(encoding="utf-8", errors="replace")
        assert re.match(pattern, text, re.DOTALL), name
    # Check the other output of commands, too.
    assert {path.name for path in clone.iterdir()} == {"examples", *FILES[page]}


HTML, PARQUET = "<!doctype html>", "PAR1"
VERDICTS = '(.*?"kind"){16}'
RECOMMENDED = '(?!(.*"recommended": true){2}).*"recommended": true'
LINE = r"[^\n]*\n"

FILES: dict[str, dict[str, str]] = {
    "README.md": {"verdicts.jsonl": VERDICTS, "why.html": HTML, "glance.html": HTML},
    "analyse.md": {
        "why.html": HTML, "glance.html": HTML, "curve.jsonl": RECOMMENDED,
        "known.jsonl": RECOMMENDED, "clusters.csv": "cluster,url,simhash,canonical,title,",
        "changes.jsonl": '(.*"moved".*\n)*.*"unchanged", "pages": 23', "pairs.csv": "a,b,distance,",
        "labelled.csv": "a,b,.*,label\n.*,duplicate\n",
    },
    "texts.md": {
        "texts.jsonl": rf"({LINE}){{2}}\Z", "clusters.csv": rf"({LINE}){{3}}\Z",
        "verdicts.jsonl": '(?!(.*"duplicate"){2}).*"duplicate"',
        "kept.jsonl": rf"{LINE}\Z", "copies.jsonl": rf"({LINE}){{2}}\Z",
    },
    "frames.md": {
        "verdicts.jsonl": VERDICTS, "files.parquet": PARQUET, "clusters.parquet": PARQUET,
    },
    "files.md": {"verdicts.jsonl": VERDICTS},
    "maintain.md": {"strict.jsonl": VERDICTS, "marks.csv": "a,b,label\n"},
    "search.md": {"clusters.csv": "cluster,url,simhash,canonical"},
    "upgrade.md": {"upgrade.sql": r"\Z"},
    "crawlers.md": {}, "layouts.md": {}, "operate.md": {}, "policies.md": {}, "scale.md": {},
}  # fmt: skip
"""The files that the commands of each page leave, and patterns of how they begin."""


def test_the_commands_that_deploy_the_schema(empty_dsn: str, tmp_path: Path) -> None:
    """In a clone, because Alembic's settings are there."""
    alembic, migrate, script = commands("install.md")
    assert alembic == "alembic upgrade head"
    named = ["pgsimhash migrate --downgrade base --yes", "pgsimhash migrate --schema crawl"]
    assert all(f"`{command}`" in text_of("install.md") for command in named)
    run_commands([alembic, migrate, *named, "alembic -x schema=b upgrade head"], empty_dsn, ROOT)
    run_commands([script], empty_dsn, tmp_path)
    assert "CREATE TABLE pgsimhash.pages" in (tmp_path / "pgsimhash.sql").read_text()


@pytest.mark.skipif(not HAS_PSQL, reason="psql is not installed")
def test_the_script_that_deploys_the_schema(empty_dsn: str) -> None:
    lines = "".join(blocks("install.md", "sh")).splitlines()
    (piped,) = [line.split(" #")[0].strip() for line in lines if "| psql" in line]
    run_commands([piped.replace("| psql", "| psql -q -v ON_ERROR_STOP=1")], empty_dsn, ROOT)
    (collection,) = blocks("install.md", "sql")
    added = "SELECT kind FROM pgsimhash.add_page('https://example.com/', 5)"
    with psycopg.connect(empty_dsn) as connection:
        connection.execute(collection)
        assert connection.execute(added).fetchone() == ("new",)
    with connect(empty_dsn, create=False) as store:
        assert store.has_near(5)


@pytest.mark.one_server("its programs are those of the embedded server")
@pytest.mark.parametrize("layout", ["22+21+21", "16+16+16+16"])
def test_the_copy_of_a_schema_under_another_name(
    filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    monkeypatch.setenv("PATH", f"{programs()}{os.pathsep}{os.environ['PATH']}")
    writer = re.search(r"\d+", run_commands(["pg_dump --version"], filled, tmp_path))
    with psycopg.connect(filled) as connection:
        if writer is None or int(writer[0]) > connection.info.server_version // 10000:
            pytest.skip("pg_dump is newer than the server, which does not know all its settings")
    (block,) = [block for block in blocks("operate.md", "sh") if "restored.sql" in block]
    migrate = "pgsimhash migrate --schema restored"
    lines = [line.split("  #")[0] for line in block.splitlines()]
    assert lines[0] == migrate
    run_commands([f"{migrate} --layout {layout}", *lines[1:]], filled, tmp_path)
    rows = content(filled, "default", numbered=True)
    assert content(filled, "default", numbered=True, schema="restored") == rows
    with connect(filled) as old, connect(filled, schema="restored") as new:
        last, page = (store.add_page("https://example.com/last", 5).page_id for store in (old, new))
        assert last == page


@pytest.mark.parametrize("page", pages_with("sql"))
def test_sql(page: str, filled: str) -> None:
    with connect(filled) as store:
        for name in ("tide-pools", "a"):
            store.add_page(f"https://example.com/{name}", 5)
    with psycopg.connect(filled, autocommit=True) as connection:
        for block in blocks(page, "sql"):
            connection.execute(block)


def rows_of(connection: psycopg.Connection, page: str, part: str) -> list[tuple[object, ...]]:
    (block,) = [block for block in blocks(page, "sql") if part in block]
    return connection.execute(block).fetchall()


def test_a_hand_written_query_is_exact(filled: str) -> None:
    with connect(filled) as store:
        known = page_at(store, (ROOT / "examples" / "pages" / "tide-pools.html").as_uri())
        # All within 2 bits, so that every block is the equal one, and others at each distance.
        flips = {1 << one | 1 << other for one in range(64) for other in range(64)}
        drawn = np.random.default_rng(1)
        for bits in [*range(3, 11)] * 200:
            flips.add(sum(1 << int(bit) for bit in drawn.choice(64, bits, replace=False)))
    copy_simhashes(filled, np.array([known.simhash ^ flip for flip in flips], np.uint64))
    with psycopg.connect(filled, autocommit=True) as connection:
        exact = connection.execute(
            "SELECT m.* FROM pgsimhash.pages AS q, pgsimhash.find(q.simhash, 8) AS m "
            "WHERE q.url LIKE '%/tide-pools.html'"
        ).fetchall()
        assert sorted(rows_of(connection, "sql.md", "WITH q")) == sorted(exact)
        assert {bits for _, bits in exact} == {*range(9)}
        assert len(exact) >= len([flip for flip in flips if flip.bit_count() <= 8])


def test_the_results_of_the_sql_blocks(filled: str) -> None:
    with psycopg.connect(filled, autocommit=True) as connection:
        near = rows_of(connection, "sql.md", "find(q.simhash, 8)")
        assert near[0][1] == 0
        assert any(str(url).endswith("tide-pools-print.html") for url, _ in near)
        (loaded,) = [
            block for block in blocks("sql-write.md", "sql") if "example.com/loaded" in block
        ]
        connection.execute(loaded)
        with connect(filled) as store:
            (match,) = store.find(1234567890, distance=0)
        assert match.url == "https://example.com/loaded"
        moved = [row[2] for row in rows_of(connection, "sql.md", "lag(") if row[2] is not None]
        assert len(moved) == 1
        (policies,) = [block for block in blocks("sql-write.md", "sql") if "set_policy" in block]
        connection.execute(policies)
        assert connection.execute("SELECT host FROM pgsimhash.policies").fetchall() == [("*",)]


def test_the_recipe_for_a_table_of_visits(dsn: str) -> None:
    """Pages with texts that an earlier page has are copies of it."""
    (recipe,) = [block for block in blocks("sql-write.md", "sql") if "visits" in block]
    run_sql(dsn, recipe)
    urls = [f"https://example.com/{n}" for n in range(2001)]
    assert run_sql(dsn, "SELECT url, distance, duplicate_of FROM verdicts ORDER BY page_id") == [
        (urls[n], 0, urls[n - 1]) if n % 2 and n > 1 else (urls[n], None, None)
        for n in range(1, 2001)
    ]
    stored = "SELECT url, text_digest, fetched_at FROM pgsimhash.pages ORDER BY page_id"
    loaded = (
        "SELECT url, ('x' || left(text_md5, 16))::bit(64)::bigint, visited_at FROM visits "
        "ORDER BY visited_at"
    )
    assert run_sql(dsn, stored) == run_sql(dsn, loaded)


def test_the_queries_of_the_dashboard(filled: str) -> None:
    with psycopg.connect(filled, autocommit=True) as connection:
        fresh, sessions, tables, indexes, slots = (
            connection.execute(block).fetchall() for block in blocks("monitor.md", "sql")
        )
        assert [(name, pages) for name, pages, *_ in fresh] == [("default", 24)]
        assert (sessions, slots) == ([], [])
        assert {"pages", "last_seen", "runs"} < {table for table, *_ in tables}
        assert {f"pages_prefix_{n}_idx" for n in (1, 2, 3)} < {index for index, *_ in indexes}

        holder = psycopg.connect(filled)
        holder.execute("SELECT pgsimhash.lock_collection('default')")
        later = "SELECT FROM pgsimhash.add_page('https://example.com/later', 5)"
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(run_sql, filled, later)
            wait_for_a_lock(filled)
            seen = rows_of(connection, "monitor.md", "pg_blocking_pids")
            pid = holder.info.backend_pid
            holder.close()
            waiting.result(timeout=60)
        assert [(waits_for, query) for *_, waits_for, query in seen] == [([pid], later)]


def test_the_client_for_users_of_simhash_db_py(
    dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers and lists, near-duplicates, random hashes, and deleting, twice."""
    monkeypatch.setenv("PGSIMHASH_DSN", dsn)
    (code,) = [block for block in blocks("simhash-py.md", "python") if "class Client" in block]
    names: dict[str, Any] = {}
    exec(code, names)
    assert capsys.readouterr().out
    names["client"].store.close()
    client = names["Client"]("redis", "tested", 6, 3)
    client.insert(1)
    assert [client.find_one(1), client.find_one(31)] == [1, None]
    assert client.find_one([1, 31]) == [1, None]
    near = {1, 2, 4, 8, 16, 32}
    client.insert([*near])
    assert {*client.find_all(1)} == near
    assert [{*found} for found in client.find_all([1])] == [near]
    samples = np.random.default_rng(1).integers(0, 2**64, 100, dtype=np.uint64).tolist()
    client.insert(samples)
    flipped = [sample ^ 1 << n % 64 for n, sample in enumerate(samples)]
    assert client.find_one(flipped) == samples
    client.delete()
    client.delete()
    assert client.find_one([1, *samples]) == [None] * 101
    client.store.close()


def leads_somewhere(here: Path, link: str) -> bool:
    place, _, heading = link.partition("#")
    if not (here / place).exists():
        return False
    found = re.findall(r"^#+ (.*)$", (here / place).read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in found}
    return not heading or heading in anchors


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    here = PAGES[page].parent
    links = re.findall(r"\]\(([^)]+)\)", text_of(page))
    assert [link for link in links if "://" not in link and not leads_somewhere(here, link)] == []


def test_the_tables_and_links_have_every_layout_scheme_form_and_page() -> None:
    row = r"^\| `([^`]+)`[^|]*\|([^|]+)\|[^|]+\|([^|]+)\|([^|]+)\|"
    rows = re.findall(row, text_of("layouts.md"), re.MULTILINE)
    assert sorted([cell.strip() for cell in cells] for cells in rows) == sorted(
        [one.name, str(len(one.permutations)), f"0-{one.distances[-1]}", str(one.probes(3))]
        for one in LAYOUTS.values()
    )
    shipped = [name for name in scheme_names() if name.startswith("pgsimhash-")]
    schemes = text_of("schemes.md")
    table = schemes[: schemes.index("The distance is the default")]
    assert re.findall(r"^\| `(pgsimhash-[^`]+)`", table, re.MULTILINE) == shipped
    forms = re.findall(r"^\| (?:hex|decimal|base32) \| `([^`]+)`", schemes, re.MULTILINE)
    assert len(forms) == 3
    assert {parse_simhash(form) for form in forms} == {0xF09F8DDE00000001}
    links = re.findall(r"\]\(docs/([^)]+\.md)\)", text_of("README.md"))
    assert {*links} == {*PAGES} - {"README.md"}


def test_every_environment_variable_is_a_setting() -> None:
    package = [path.read_text("utf-8") for path in (ROOT / "pgsimhash").rglob("*.py")]
    names = re.compile(r'(?:= |environ.get\()"(PGSIMHASH_[A-Z_]+)"')
    used = {name for code in package for name in names.findall(code)}
    assert used == {*re.findall(r"^\| `(PGSIMHASH_\w+)`", text_of("settings.md"), re.MULTILINE)}


def test_the_release_has_absolute_links(tmp_path: Path) -> None:
    shutil.copy(ROOT / "README.md", tmp_path)
    script = ROOT / ".github" / "absolute_links.sh"
    where = {"GITHUB_REPOSITORY": "owner/name", "GITHUB_REF_NAME": "v1.2.3"}
    subprocess.run(["sh", script], cwd=tmp_path, env=os.environ | where, check=True)
    targets = re.findall(r"\]\(([^)]+)\)", (tmp_path / "README.md").read_text("utf-8"))
    assert "https://raw.githubusercontent.com/owner/name/v1.2.3/docs/seen.svg" in targets
    assert "https://github.com/owner/name/blob/v1.2.3/docs/files.md" in targets
    assert [target for target in targets if not target.startswith("https://")] == []


def test_actions_of_the_hosted_workflow_are_named_by_their_commit() -> None:
    files = [path.read_text("utf-8") for path in (ROOT / ".github" / "workflows").iterdir()]
    used = re.findall(r"uses:\s*(\S+)", "".join(files))
    assert used
    others = [name for name in used if not name.startswith("$/")]
    assert [name for name in others if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []
