"""The code has the public names, signatures, options, codes and settings of the lists."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click
import psycopg
import pytest

from pgsimhash import errors
from pgsimhash.cli.commands import commands
from tests.cli.conftest import names_of
from tests.conftest import ROOT
from tests.public import compare
from tests.public.code import MODULES, exported, names_at_the_top, python_names

PACKAGE = ROOT / "pgsimhash"


def test_python_names() -> None:
    compare("python.txt", python_names())


def test_sql_names(connection: psycopg.Connection) -> None:
    compare("sql.txt", [line for query in SQL for (line,) in connection.execute(query)])


SQL = (
    # Functions, with their results.
    "SELECT p.proname || '(' || pg_get_function_arguments(p.oid) || ')'"
    " || coalesce(' RETURNS ' || pg_get_function_result(p.oid), '')"
    " FROM pg_proc AS p"
    " WHERE p.pronamespace = 'pgsimhash'::regnamespace AND p.proname !~ '^_'",
    # The columns of tables, views and types.
    "SELECT CASE c.relkind WHEN 'r' THEN 'table ' WHEN 'v' THEN 'view ' ELSE 'type ' END"
    " || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)"
    " || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END"
    " FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid"
    " WHERE c.relnamespace = 'pgsimhash'::regnamespace AND c.relkind IN ('r', 'v', 'c', 'p')"
    " AND c.relname !~ '^_' AND a.attname !~ '^_' AND c.relname <> 'alembic_version'"
    " AND a.attnum > 0 AND NOT a.attisdropped",
)


def test_command_line() -> None:
    compare("command-line.txt", _options(commands, "pgsimhash"))


def _options(command: click.Command, name: str) -> Iterator[str]:
    for parameter in command.params:
        kind = parameter.make_metavar(click.Context(command)) if parameter.nargs else ""
        flags = ", ".join([*parameter.opts, *parameter.secondary_opts])
        if isinstance(parameter, click.Argument):
            yield f"{name} {kind}"
        else:
            is_flag = isinstance(parameter, click.Option) and parameter.is_flag
            yield f"{name} {flags}" + (f" {kind}" if not is_flag else "")
    if isinstance(command, click.Group):
        for sub, each in command.commands.items():
            yield from _options(each, f"{name} {sub}")
    else:
        yield name


def test_error_codes() -> None:
    python = [
        f"{name} {code}"
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.PgsimhashError)
        for code in kind.reasons
    ]
    sql = "\n".join(path.read_text() for path in (ROOT / "sql").glob("*.sql"))
    states = [f"SQLSTATE {state}" for state in re.findall(r"\bPS\d{3}\b", sql)]
    (said,) = re.findall(r"Exit codes: (.*)", " ".join((commands.help or "").split()))
    exits = [f"exit code {code.rstrip('.')}" for code in said.split("; ")]
    compare("codes.txt", [*python, *states, *exits])


def test_the_docs_list_all_sql_functions() -> None:
    functions = re.findall(
        r"^(?!table|type)(\w+)\(", (Path(__file__).parent / "sql.txt").read_text(), re.MULTILINE
    )
    said = (ROOT / "docs" / "sql.md").read_text()
    assert [name for name in functions if f"`{name}`" not in said] == []


def test_settings() -> None:
    sources = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    compare("settings.txt", re.findall(r"\bPGSIMHASH_[A-Z_]*[A-Z]\b|\bDATABASE_URL\b", sources))


@pytest.mark.parametrize("module", ["pgsimhash.store", *MODULES])
def test_what_a_module_lists_it_has(module: str) -> None:
    if module == "pgsimhash.batch.spark" and find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed")
    loaded = import_module(module)
    assert {*exported(module)} - {"__version__"} == {*loaded.__all__}
    for name in loaded.__all__:
        assert hasattr(loaded, name), name
        assert name in dir(loaded), name


@pytest.mark.long
def test_a_type_checker_sees_no_other_imports(tmp_path: Path) -> None:
    """Of the names that a public module imports, mypy accepts only public ones."""
    lines = {
        f"{module}.{name}": name in exported(module)
        for module in ["pgsimhash.store", *MODULES]
        for name, nodes in names_at_the_top(module).items()
        if isinstance(nodes[0], ast.Import | ast.ImportFrom) and name != "annotations"
    }
    probe = tmp_path / "probe.py"
    imports = "".join(f"import {name.rpartition('.')[0]}\n" for name in lines)
    probe.write_text(imports + "\n".join(lines))
    options = [
        "--strict",
        "--no-site-packages",
        "--follow-imports=silent",
        "--config-file=",
        f"--cache-dir={tmp_path}",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(probe)],
        env={"MYPYPATH": str(ROOT)}, cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    refused = {
        f"{module}.{name}"
        for module, name in re.findall(
            r'Module "(.*)" does not explicitly export attribute "(.*)"', done.stdout
        )
    }
    assert len(lines) > 100, done.stdout + done.stderr
    assert {name for name, is_public in lines.items() if not is_public} == refused


def test_every_command_has_a_line() -> None:
    listed = (Path(__file__).parent / "command-line.txt").read_text().splitlines()
    assert {f"pgsimhash {name}" for name in names_of(commands)} <= set(listed)
