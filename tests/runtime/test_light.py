"""Commands and imports load only what they use."""

from __future__ import annotations

import ast
import compileall
import inspect
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import pgsimhash
from pgsimhash import Store
from pgsimhash.cli.commands import commands
from tests.cli.harness import names_of
from tests.conftest import ROOT

HEAVY = {
    "alembic", "bs4", "lxml", "mako", "markdown_it", "mmh3", "narwhals", "numpy", "pandas",
    "polars", "psycopg", "pyarrow", "pygments", "readability", "rich", "scrapy", "sqlalchemy",
    "twisted", "warcio",
}  # fmt: skip

COMMAND = "import sys; sys.argv = ['pgsimhash', *{}]; from pgsimhash.cli import main; main()"


def loaded(code: str) -> set[str]:
    """The heavy packages that a process loaded by running ``code``."""
    told = f"""
import atexit, sys
atexit.register(lambda: print(sorted({HEAVY} & set(sys.modules)), file=sys.stderr))
{code}
"""
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    found: list[str] = ast.literal_eval(done.stderr)
    return set(found)


@pytest.mark.parametrize("code", [
    "import pgsimhash", "from pgsimhash import PageError, PgsimhashError, StoreError",
    *(f"import pgsimhash.{name}" for name in ("analysis", "html_reports", "maintenance")),
    "import pgsimhash.schemes, pgsimhash.store",
    *(COMMAND.format(words) for words in (["--help"], ["--version"], ["policy", "--help"])),
    *(COMMAND.format([*name.split(), "--help"]) for name in names_of(commands)),
])  # fmt: skip
def test_the_import_and_help_load_nothing_heavy(code: str) -> None:
    assert loaded(code) == set()


@pytest.mark.parametrize(("name", "needs"), [
    ("hamming_distance", set()), ("find_pairs", {"numpy"}), ("simhash", {"numpy", "mmh3"}),
    ("fingerprint", {"numpy", "mmh3", "lxml"}), ("connect", set()), ("Store", {"psycopg"}),
])  # fmt: skip
def test_a_name_loads_what_it_needs(name: str, needs: set[str]) -> None:
    assert loaded(f"import pgsimhash; pgsimhash.{name}") == needs


def test_a_lookup_loads_only_what_it_uses(store: Store, dsn: str) -> None:
    store.add("https://example.com/a", 5)
    assert loaded(COMMAND.format(["find", "0", "--dsn", dsn])) == {"psycopg"}


def test_your_own_tables_load_neither_readers_nor_a_driver() -> None:
    assert loaded("import pgsimhash.sqlalchemy") <= {"numpy", "sqlalchemy"}


@pytest.mark.parametrize(("module", "needs"), [
    ("batch.frames", {"numpy", "mmh3", "lxml", "narwhals"}),
    ("batch.parquet", {"numpy", "psycopg", "pyarrow"}),
    ("scrapy", {"numpy", "mmh3", "lxml", "psycopg", "scrapy", "twisted"}),
])  # fmt: skip
def test_a_module_for_a_library_loads_that_library(module: str, needs: set[str]) -> None:
    assert loaded(f"import pgsimhash.{module}") == needs


@pytest.mark.parametrize(
    ("module", "package"),
    [("batch.frames", "narwhals"), ("batch.parquet", "pyarrow"), ("scrapy", "scrapy")],
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
    assert f"clone of pgsimhash: pip install -e '.[{module.rpartition('.')[2]}]'" in told


def test_every_public_name_is_there_and_listed() -> None:
    assert len(pgsimhash.__all__) <= 21
    assert pgsimhash.__all__ == sorted(pgsimhash.__all__)
    for name in pgsimhash.__all__:
        assert getattr(pgsimhash, name).__name__ == name
    assert set(pgsimhash.__all__) <= set(dir(pgsimhash))
    with pytest.raises(AttributeError, match="'pgsimhash' has no attribute 'fingerprnt'"):
        pgsimhash.fingerprnt  # type: ignore[attr-defined]  # noqa: B018


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert pgsimhash.__version__ == project["version"]
    assert "__version__" in dir(pgsimhash)
    arguments = [sys.executable, "-m", "pgsimhash", "--version"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout == f"pgsimhash, version {project['version']}\n"


def test_only_a_use_of_the_version_loads_the_metadata() -> None:
    code = "import sys, pgsimhash; sys.exit('importlib.metadata' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


LAZY = [
    "pgsimhash",
    *("pgsimhash." + name for name in ("analysis", "maintenance", "schemes")),
    *("pgsimhash." + name for name in ("store", "cli.database", "cli.drawn")),
]


@pytest.mark.parametrize("module", LAZY)
def test_lazy_names_are_those_that_type_checkers_see(module: str) -> None:
    there = import_module(module)
    (checked,) = (
        block
        for block in ast.parse(inspect.getsource(there)).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
    )
    seen = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    exported = {*getattr(there, "__all__", seen)}
    assert exported <= {*dir(there)}
    for name in exported | ({*dir(there)} & {*seen}):
        assert getattr(there, name) is not None
        # Importing a submodule would replace the name by the module.
        assert not hasattr(there, "__path__") or find_spec(f"{module}.{name}") is None
        if name in seen:
            assert getattr(there, name) is getattr(import_module(str(seen[name])), name)


def test_an_installation_without_sources_works(tmp_path: Path) -> None:
    package = tmp_path / "pgsimhash"
    shutil.copytree(ROOT / "pgsimhash", package)
    compileall.compile_dir(package, quiet=2, legacy=True)
    for source in package.rglob("*.py"):
        source.unlink()
    code = "import pgsimhash; print(pgsimhash.__file__, pgsimhash.simhash({'a': 1}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(str(package))
