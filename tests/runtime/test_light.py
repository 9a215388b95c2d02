"""Commands and imports load only what they use."""

from __future__ import annotations

import ast
import compileall
import inspect
import shutil
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from lxml import etree

import pgsimhash
from pgsimhash import Store
from pgsimhash.cli.commands import commands
from tests.cli.conftest import names_of
from tests.conftest import ROOT
from tests.programs import python

HEAVY = {
    "alembic", "bs4", "lxml", "mako", "markdown_it", "mmh3", "narwhals", "numpy", "pandas",
    "polars", "psycopg", "pyarrow", "pygments", "readability", "rich", "scrapy", "sqlalchemy",
    "twisted", "warcio",
}  # fmt: skip

COMMAND = "import sys; sys.argv = ['pgsimhash', *{}]; from pgsimhash.cli import main; main()"


def loaded(code: str) -> set[str]:
    """The heavy packages that a process loaded by running ``code``."""
    told = "import atexit, sys\natexit.register(lambda: print('', *{} & set(sys.modules)))\n{}"
    return {*python(told.format(HEAVY, code)).splitlines()[-1].split()}


def test_the_import_and_help_load_nothing_heavy() -> None:
    commands_help = [["--help"], ["policy", "--help"]]
    commands_help += [[*name.split(), "--help"] for name in names_of(commands)]
    python(f"""
import sys

def check(step):
    assert not {HEAVY} & set(sys.modules), step

import pgsimhash
from pgsimhash import PageError, PgsimhashError, StoreError
check("errors")
import pgsimhash.analysis, pgsimhash.html_reports
import pgsimhash.schemes, pgsimhash.store
check("rooms")
pgsimhash.hamming_distance, pgsimhash.connect
check("names")
from pgsimhash.cli.commands import commands
for words in {commands_help}:
    try:
        commands(words, prog_name="pgsimhash")
    except SystemExit as end:
        assert end.code == 0, words
    check(words)
""")


READER = {"numpy", "mmh3", "lxml"}


@pytest.mark.parametrize(("code", "needs"), [
    ("pgsimhash.find_pairs", {"numpy"}), ("pgsimhash.simhash", {"numpy", "mmh3"}),
    ("pgsimhash.fingerprint", READER), ("pgsimhash.Store", {"psycopg"}),
    ("import pgsimhash.batch.frames", {*READER, "narwhals"}),
    ("import pgsimhash.batch.parquet", {"numpy", "psycopg", "pyarrow"}),
    ("import pgsimhash.scrapy", {"lxml", "psycopg", "scrapy", "twisted"}),
])  # fmt: skip
def test_a_name_and_a_module_for_a_library_load_what_they_need(code: str, needs: set[str]) -> None:
    assert loaded(f"import pgsimhash; {code}") == needs


def test_a_lookup_and_your_own_tables_load_only_what_they_use(store: Store, dsn: str) -> None:
    store.add_page("https://example.com/a", 5)
    assert loaded(COMMAND.format(["find", "0", "--dsn", dsn])) == {"psycopg"}
    assert loaded("import pgsimhash.sqlalchemy") <= {"numpy", "sqlalchemy"}
    operations = "import pgsimhash.alembic as ours; ours.add_simhash, ours.drop_simhash"
    assert not loaded(operations) & {"lxml", "numpy", "psycopg"}


@pytest.mark.parametrize(("module", "package"), [
    ("batch.frames", "narwhals"), ("batch.parquet", "pyarrow"), ("scrapy", "scrapy"),
])  # fmt: skip
def test_a_module_whose_library_is_missing_names_the_extra(module: str, package: str) -> None:
    told = python(f"""
import sys
sys.modules[{package!r}] = None
from pgsimhash.errors import MissingPackageError
try:
    import pgsimhash.{module}
except MissingPackageError as error:
    print(error.reason, error)
""")
    assert told.startswith("not_installed ")
    assert f"clone of pgsimhash: pip install -e '.[{module.rpartition('.')[2]}]'" in told


def test_every_public_name_is_there_and_listed() -> None:
    public = vars(pgsimhash)["__all__"]
    assert len(public) <= 21
    assert public == sorted(public)
    for name in public:
        assert getattr(pgsimhash, name).__name__ == name
    assert set(public) <= set(dir(pgsimhash))
    with pytest.raises(AttributeError, match="'pgsimhash' has no attribute 'fingerprnt'"):
        pgsimhash.fingerprnt  # type: ignore[attr-defined]  # noqa: B018


def test_the_version_stands_in_one_place_and_its_use_alone_loads_the_metadata() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert pgsimhash.__version__ == project["version"]
    assert "__version__" in dir(pgsimhash)
    for option in ("--version", "-V"):
        version = python(COMMAND.format([option]))
        libxml2 = ".".join(map(str, etree.LIBXML_VERSION))
        parser = f"lxml {etree.__version__}, libxml2 {libxml2}"
        assert version == f"pgsimhash, version {project['version']} ({parser})\n"
    loads = "import sys, pgsimhash; print('importlib.metadata' in sys.modules)"
    assert python(loads) == "False\n"


LAZY = ["pgsimhash", *map("pgsimhash.{}".format, ("analysis", "schemes", "store"))]


@pytest.mark.parametrize("module", LAZY)
def test_lazy_names_are_those_that_type_checkers_see(module: str) -> None:
    there = import_module(module)
    blocks = (one for one in ast.parse(inspect.getsource(there)).body if isinstance(one, ast.If))
    (checked,) = (block for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING")
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    # Type checkers see a name that is imported as itself, and all names of "import *".
    as_itself = {alias.name for node in imports for alias in node.names if alias.asname}
    exported = {*vars(there)["__all__"]}
    assert as_itself in (exported | ({"__version__"} & as_itself), set())
    assert "*" not in seen
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
    assert python(code, folder=tmp_path).startswith(str(package))
