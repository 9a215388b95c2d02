"""What is not needed is not loaded: a user waits for what they ask for, and for nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib

import pytest

import pgsimhash
from tests.conftest import ROOT

HEAVY = {
    "alembic",
    "bs4",
    "lxml",
    "mako",
    "markdown_it",
    "mmh3",
    "narwhals",
    "numba",
    "numpy",
    "pandas",
    "polars",
    "psycopg",
    "pyarrow",
    "pygments",
    "readability",
    "rich",
    "scrapy",
    "sqlalchemy",
    "twisted",
    "warcio",
}

COMMAND = "import sys; sys.argv = ['pgsimhash', *{}]; from pgsimhash.cli import main; main()"


def loaded(code: str) -> set[str]:
    """Which of the heavy packages a process has loaded that ran ``code``."""
    told = f"""
import atexit, sys
atexit.register(lambda: print(sorted({HEAVY} & set(sys.modules)), file=sys.stderr))
{code}
"""
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    found: list[str] = ast.literal_eval(done.stderr)
    return set(found)


@pytest.mark.parametrize(
    "code",
    [
        "import pgsimhash",
        "from pgsimhash import PageError, PgsimhashError, StoreError",
        *(COMMAND.format(words) for words in (["--help"], ["--version"], ["policy", "--help"])),
    ],
)
def test_the_import_and_help_load_nothing_heavy(code: str) -> None:
    assert loaded(code) == set()


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("hamming_distance", set()),
        ("find_pairs", {"numpy"}),
        ("simhash", {"numpy", "mmh3"}),
        ("fingerprint", {"numpy", "mmh3", "lxml"}),
        ("connect", set()),
        ("Store", {"numpy", "mmh3", "lxml", "psycopg"}),
    ],
)
def test_a_name_loads_what_it_needs(name: str, needs: set[str]) -> None:
    assert loaded(f"import pgsimhash; pgsimhash.{name}") == needs


def test_tables_of_ones_own_load_neither_readers_nor_a_driver() -> None:
    assert loaded("import pgsimhash.sqlalchemy") <= {"mako", "numpy", "pygments", "sqlalchemy"}


@pytest.mark.parametrize(
    ("module", "needs"),
    [
        ("frames", {"numpy", "mmh3", "lxml", "narwhals"}),
        ("parquet", {"numpy", "mmh3", "lxml", "psycopg", "pyarrow"}),
        ("scrapy", {"numpy", "mmh3", "lxml", "psycopg", "scrapy", "twisted"}),
    ],
)
def test_a_module_for_a_library_loads_that_library(module: str, needs: set[str]) -> None:
    assert loaded(f"import pgsimhash.{module}") == needs


@pytest.mark.parametrize(
    ("module", "package"), [("frames", "narwhals"), ("parquet", "pyarrow"), ("scrapy", "scrapy")]
)
def test_a_module_whose_library_is_missing_names_the_extra(module: str, package: str) -> None:
    code = f"""
import sys
sys.modules[{package!r}] = None
from pgsimhash.errors import MissingPackageError
try:
    import pgsimhash.{module}
except MissingPackageError as error:
    print(error.reason, error)
"""
    told = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert told.startswith("not_installed ")
    assert f"pip install 'pgsimhash[{module}]'" in told


def test_every_public_name_is_there_and_listed() -> None:
    assert len(pgsimhash.__all__) <= 20
    assert pgsimhash.__all__ == sorted(pgsimhash.__all__)
    for name in pgsimhash.__all__:
        assert getattr(pgsimhash, name).__name__ == name
    assert set(pgsimhash.__all__) <= set(dir(pgsimhash))
    with pytest.raises(AttributeError, match="'pgsimhash' has no attribute 'fingerprnt'"):
        pgsimhash.fingerprnt  # noqa: B018


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert pgsimhash.__version__ == project["version"]
    assert "__version__" in dir(pgsimhash)
    arguments = [sys.executable, "-m", "pgsimhash", "--version"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout == f"pgsimhash, version {project['version']}\n"


def test_nothing_asks_for_the_version_but_who_wants_it() -> None:
    code = "import sys, pgsimhash; sys.exit('importlib.metadata' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_type_checkers_see_what_is_loaded_later() -> None:
    module = ast.parse((ROOT / "pgsimhash" / "__init__.py").read_text(encoding="utf-8"))
    (seen,) = (node for node in module.body if isinstance(node, ast.If))
    homes = {
        alias.name: str(node.module).removeprefix("pgsimhash.")
        for node in seen.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert homes == pgsimhash._HOMES
    assert sorted(homes) == pgsimhash.__all__
