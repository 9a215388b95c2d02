"""The output of the demo and the table in the README are right; test_docs.py runs its code."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib import metadata

import psycopg

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
    done = run_program(*command, PGSIMHASH_DSN=dsn, COLUMNS="100")

    def but_for_the_speed(lines: list[str]) -> list[str]:
        return [line.rstrip() for line in lines if "pages a second" not in line]

    printed = but_for_the_speed(done.stderr.splitlines())
    begin, _, end = "\n".join(but_for_the_speed(shown("lighthouse-redesign.html"))).partition(
        "\n...\n"
    )
    # The rows in between are omitted.
    assert "\n".join(printed).startswith(f"{begin}\n")
    assert "\n".join(printed).endswith(f"\n{end}")


def test_the_columns_of_the_table(connection: psycopg.Connection) -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (boolean|integer|bigint) \|", text_of("sql.md"), re.MULTILINE
    )
    columns = connection.execute(
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute "
        "WHERE attrelid = 'pgsimhash.pages'::regclass AND attnum > 0 ORDER BY attnum"
    ).fetchall()
    assert rows == [
        (name, kind)
        for name, kind in columns
        if name in ("collection_id", "simhash", "indexed") or name.startswith("prefix_")
    ]
