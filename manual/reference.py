"""Generate pages of the manual from docstrings, options, codes and the schema."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import psycopg

import pgsimhash
from pgsimhash import embedded, errors
from pgsimhash.errors import PgsimhashError
from pgsimhash.schema import migrate

ROOT: Final = Path(__file__).resolve().parent.parent

PYTHON: Final = {
    "store": [
        "pgsimhash",
        "pgsimhash.pages.records",
        "pgsimhash.sources",
    ],
    "store-functions": [
        "pgsimhash.analysis",
        "pgsimhash.maintenance",
        "pgsimhash.html_reports",
        "pgsimhash.pages.policies",
        "pgsimhash.pages.urls",
        "pgsimhash.embedded",
    ],
    "simhashes": [
        "pgsimhash.schemes",
        "pgsimhash.html",
        "pgsimhash.hashing.bits",
        "pgsimhash.hashing.tokens",
        "pgsimhash.hashing.signature",
    ],
    "own-tables": ["pgsimhash.sqlalchemy", "pgsimhash.alembic", "pgsimhash.schema.migrate"],
    "batches": [
        "pgsimhash.batch.frames",
        "pgsimhash.batch.parquet",
        "pgsimhash.batch.spark",
    ],
    "integrations": ["pgsimhash.scrapy", "pgsimhash.testing", "pgsimhash.compat"],
}
"""The pages about Python, and their modules."""

RESULTS: Final = {
    "pgsimhash.pages.records": (
        "CollectionStatus Deletion Mark Matches NearPage PageFields RunRecord StoredPage Violation"
    ),
    "pgsimhash.pages.policies": "Policy",
    "pgsimhash.search.clusters": "Cluster ClusterPage",
    "pgsimhash.search.pairs": "Pairs",
    "pgsimhash.analysis.changes": "Version",
    "pgsimhash.analysis.block_pairs": "Block BlockPair",
    "pgsimhash.analysis.comparison": "Comparison",
    "pgsimhash.analysis.evaluation": "Evaluation",
    "pgsimhash.analysis.addresses": "Parameter",
    "pgsimhash.analysis.pairs": "LabelledPair PagePair",
    "pgsimhash.analysis.reports": "Report",
    "pgsimhash.analysis.template": "SelectorEffect TemplatePart",
}
"""What calls return, by module: nobody imports these, but their fields and methods are public."""

REPORT: Final = """# A sample report

`pgsimhash analyse report -o report.html` wrote <a href="../report.html">this report</a> about
the pages of `examples/pages`, under web addresses, when the site was built.
"""

COMMAND_LINE: Final = """# Command line

```{eval-rst}
.. click:: pgsimhash.cli.commands:commands
   :prog: pgsimhash
   :nested: full
```
"""

PICTURE: Final = "![The first screen of the report](sample-report.png)\n"

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")

FUNCTIONS: Final = """
SELECT p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
    obj_description(p.oid, 'pg_proc')
FROM pg_proc AS p
WHERE p.pronamespace = 'pgsimhash'::regnamespace AND p.proname !~ '^_'
ORDER BY p.proname, p.pronargs
"""

COLUMNS: Final = """
SELECT c.relname, obj_description(c.oid, 'pg_class'), a.attname,
    format_type(a.atttypid, a.atttypmod), col_description(c.oid, a.attnum)
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE c.relnamespace = 'pgsimhash'::regnamespace AND c.relkind = 'r'
    AND a.attnum > 0 AND NOT a.attisdropped AND c.relname <> 'alembic_version'
ORDER BY c.relname, a.attnum
"""


def pages() -> dict[str, str]:
    """Return the generated files of the site by their paths."""
    with _database() as dsn:
        with psycopg.connect(dsn) as connection:
            sql = _sql(connection)
        report = _report(dsn)
    return {
        **{f"reference/{name}.md": _python(name, modules) for name, modules in PYTHON.items()},
        "reference/results.md": _results(),
        "reference/command-line.md": COMMAND_LINE,
        "reference/sql.md": sql,
        "reference/error-codes.md": error_codes(),
        "reference/sample-report.md": REPORT,
        "report.html": report,
    }


@contextmanager
def _database() -> Iterator[str]:
    """Yield the DSN of a temporary embedded server with the schema."""
    folder = Path(tempfile.mkdtemp(prefix="pgsimhash-site-"))
    try:
        dsn = embedded.start(folder)
        migrate.upgrade(dsn)
        yield dsn
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def screenshot(page: Path, picture: Path) -> bool:
    """Let a browser draw the top of a page, and return whether there is a browser."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        return False
    options = ["--headless=new", "--hide-scrollbars", "--disable-dev-shm-usage"]
    # Root has no sandbox.
    options += ["--no-sandbox", "--window-size=1000,1300", f"--screenshot={picture}"]
    subprocess.run([browser, *options, page.as_uri()], check=True, capture_output=True, timeout=120)
    return True


def _python(page: str, modules: list[str]) -> str:
    title = f"Python: {page.replace('-', ' ')}"
    lines = [f"# {title}", "", "Other names than these are internal.", ""]
    for name in modules:
        lines += [f"## {name}", "", "```{eval-rst}", f".. automodule:: {name}"]
        # PySpark is not installed for the site.
        names = None if name.endswith(".spark") else _exported(name)
        lines.append(f"   :members: {', '.join(names or ())}".rstrip())
        if name == "pgsimhash":
            lines.append("   :inherited-members: Exception, ValueError")
        lines += ["```", ""]
    return "\n".join(lines)


def _results() -> str:
    lines = ["# Python: results", "", "Calls return these, and nobody imports them.", ""]
    for module, names in RESULTS.items():
        for name in names.split():
            lines += ["```{eval-rst}", f".. autoclass:: {module}.{name}", "   :members:", "```", ""]
    return "\n".join(lines)


def _exported(name: str) -> list[str] | None:
    return getattr(importlib.import_module(name), "__all__", None)


def error_codes() -> str:
    """Return every code of every class of errors, in tables."""
    lines = ["# Error codes", "", "[Errors](../errors.md) says what each class is for.", ""]
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, PgsimhashError) and kind.reasons:
            rows = [f"| `{code}` | {meaning} |" for code, meaning in kind.reasons.items()]
            lines += [f"## {name}", "", "| reason | meaning |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _sql(connection: psycopg.Connection[Any]) -> str:
    """Return the page of functions and tables."""
    lines = ["# SQL", "", "## Functions", ""]
    for name, arguments, result, comment in connection.execute(FUNCTIONS):
        returns = f"\nRETURNS {result}" if result else ""
        if len(arguments) > 60:
            arguments = "\n    " + arguments.replace(", ", ",\n    ") + "\n"
        lines += [f"### {name}", "", "```sql", f"pgsimhash.{name}({arguments}){returns}", "```"]
        lines += ["", comment or "", ""]
    lines += ["## Tables", ""]
    columns = connection.execute(COLUMNS).fetchall()
    for (table, comment), rows in groupby(columns, key=itemgetter(0, 1)):
        lines += [f"### Table {table}", "", comment or "", "", "| column | type | meaning |"]
        lines += ["|---|---|---|", *(f"| `{row[2]}` | {row[3]} | {row[4] or ''} |" for row in rows)]
        lines.append("")
    return "\n".join(lines)


def _report(dsn: str) -> str:
    """Return the output of `analyse report` on the sample pages."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "report.html"
        samples = (ROOT / "examples" / "pages").glob("*.html")
        named = {f"https://news.example/{path.stem}": path.read_bytes() for path in samples}
        with pgsimhash.connect(dsn, collection="news", create=True, keep_markdown=True) as store:
            list(store.ingest_many(sorted(named.items())))
        command = ["-m", "pgsimhash", "analyse", "report", "--collection", "news", "--dsn", dsn]
        subprocess.run(
            [sys.executable, *command, "-o", str(output)], check=True, stdout=subprocess.DEVNULL
        )
        return output.read_text(encoding="utf-8")
