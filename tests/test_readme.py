"""The output of the demo and the table in the README are right; test_docs.py runs its code."""

import re
from contextlib import suppress
from importlib import metadata

import psycopg
import pytest

from pgsimhash import Store, analysis
from pgsimhash.html_reports import report_page
from pgsimhash.sources import read_pages
from tests.conftest import ROOT
from tests.manual import blocks, text_of
from tests.programs import PGSIMHASH, run_program


def shown(part: str) -> list[str]:
    """The lines of the plain-text block that contains ``part``."""
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
    """The tables in the README are those of the command, except for the speed."""
    command = (*PGSIMHASH, "ingest", "examples/pages", "--summary")
    done = run_program(*command, PGSIMHASH_DSN=dsn, COLUMNS="80")

    def but_for_the_speed(lines: list[str]) -> list[str]:
        return [line.rstrip() for line in lines if "pages a second" not in line]

    printed = but_for_the_speed(done.stderr.splitlines())
    table = "\n".join(but_for_the_speed(shown("lighthouse-redesign.html")))
    begin, _, end = table.partition("\n...\n")
    # The rows in between are omitted.
    assert "\n".join(printed).startswith(f"{begin}\n")
    assert "\n".join(printed).endswith(f"\n{end}")


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


def test_the_picture_shows_the_report_of_the_sample_pages(store: Store) -> None:
    list(store.ingest_many(read_pages([ROOT / "examples" / "pages"])))
    report = analysis.report(store)
    page = report_page(report)
    picture = (ROOT / "docs" / "report.svg").read_text(encoding="utf-8")

    def texts(kind: str) -> list[str]:
        return re.findall(rf'<text class="{kind}[^"]*"[^>]*>([^<]+)<', picture)

    for label, value in zip(texts("label"), texts("value"), strict=True):
        assert f"<dt>{label}</dt><dd>{value}</dd>" in page
    assert [int(count) for count in texts("count")] == list(report.distances.values())
    for copy, bits in zip(texts("copy"), texts("bits"), strict=True):
        assert re.search(rf"/{copy}</bdi>\s*<span class=\"quiet small\">{bits}<", page)
    assert texts("h2") == [heading for heading in texts("h2") if f"<h2>{heading}</h2>" in page]
    assert all(title in page for title in texts("page"))
    assert f"and {report.all_clusters - len(texts('page'))} more clusters" in picture
