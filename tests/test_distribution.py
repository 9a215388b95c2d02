"""The sdist and the wheel are complete: the installed package works outside the repository."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.programs import run_program

pytestmark = pytest.mark.long

QUIET = ("--quiet", "--disable-pip-version-check")
LEFT_OUT = (".venv", ".git", "build", "dist", "*.egg-info", "*.so", "__pycache__", ".*_cache")


def newest_python() -> str:
    """The newest Python on the PATH that can create a virtual environment, or this one."""
    for minor in range(20, sys.version_info.minor, -1):
        found = shutil.which(f"python3.{minor}")
        if found and subprocess.run([found, "-c", "import ensurepip"], check=False).returncode == 0:
            return found
    return sys.executable


def run(command: Sequence[str | Path], folder: Path, **variables: str) -> str:
    done = run_program(*command, folder=folder, **{"PYTHONPATH": "", **variables})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    clone = tmp_path_factory.mktemp("distribution") / "clone"
    shutil.copytree(ROOT, clone, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    return clone


@pytest.fixture(scope="module")
def built(clone: Path) -> Path:
    """The folder with the sdist, and the wheel that is built from the sdist."""
    told = run([sys.executable, "-m", "build", "--outdir", clone / "dist"], clone)
    assert "Warning" not in told
    return clone / "dist"


def test_sdist_and_wheels_have_exactly_the_files_of_the_package(built: Path) -> None:
    from_clone = built / "from_clone"
    run([sys.executable, "-m", "build", "--wheel", "--outdir", from_clone], built.parent)
    (sdist,) = built.glob("*.tar.gz")
    shipped = {
        "pgsimhash/" + str(path.relative_to(ROOT)).removeprefix("pgsimhash/")
        for folder in ("pgsimhash", "migrations", "sql")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".so")
    }
    for wheel in built.rglob("*.whl"):
        with zipfile.ZipFile(wheel) as opened:
            inside = {name for name in opened.namelist() if ".dist-info/" not in name}
        assert inside - {"pgsimhash/_native.abi3.so"} == shipped
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    files = {
        str(path.relative_to(built.parent))
        for folder in (*built.parent.glob("[!.]*"), built.parent / ".github")
        for path in (folder, *folder.rglob("*"))
        if folder.suffix != ".egg-info" and folder.name not in ("build", "dist") and path.is_file()
    }
    assert "tests/test_distribution.py" in files
    assert files - names == set()


def test_pypi_and_packagers_accept_them(built: Path) -> None:
    programs = Path(sys.executable).parent
    files = sorted([*built.glob("*.tar.gz"), *built.glob("*.whl")])
    run([programs / "twine", "check", "--strict", *files], built)
    run([programs / "check-wheel-contents", *built.glob("*.whl")], built)


def test_the_tests_pass_from_the_sdist(built: Path, tmp_path: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--assert=plain"]
    assert "tests/test_docs.py::" in run([*pytest_, "--collect-only"], folder)
    some = ["tests/hashing", "tests/test_vectors.py", "tests/store/write/test_records.py"]
    run([*pytest_, *some], folder)


def test_a_copy_without_links_is_refused_and_can_be_repaired(clone: Path, tmp_path: Path) -> None:
    """Such as GitHub's ZIP archive, or a clone by git on Windows."""
    copy = tmp_path / "copy"
    shutil.copytree(clone, copy, symlinks=True, ignore=shutil.ignore_patterns("dist", "build"))
    for name in ("sql", "migrations"):
        link = copy / "pgsimhash" / name
        target = link.readlink()
        link.unlink()
        link.write_text(str(target))
    pip = [sys.executable, "-m", "pip", "install", *QUIET, "--no-deps", "--target", "installed"]
    refused = run_program(*pip, copy, folder=tmp_path, CC="false")
    assert refused.returncode != 0
    told = " ".join(refused.stderr.split())
    assert "pgsimhash/sql and pgsimhash/migrations must be links" in told
    repair = re.search("(rm pgsimhash/sql .*? cp -R sql migrations pgsimhash/)", told)
    assert repair
    run(["sh", "-c", repair[1]], copy)
    run([*pip, copy], tmp_path, CC="false")
    installed = tmp_path / "installed" / "pgsimhash"
    assert (installed / "sql" / "tables.sql").exists()
    assert (installed / "migrations" / "env.py").exists()


def test_the_sdist_installs_without_a_compiler(built: Path, tmp_path: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    target = tmp_path / "installed"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "install", *QUIET, "--no-deps"]
    run([*pip, "--target", target, sdist], tmp_path, CC="false")
    program = "import pgsimhash.html; print(pgsimhash.html.implementation())"
    shown = run([sys.executable, "-c", program], tmp_path, PYTHONPATH=str(target))
    assert shown.strip() == "Python"
    assert not list(target.rglob("*.so"))


@pytest.fixture(params=["this", "the newest"])
def python(request: pytest.FixtureRequest) -> str:
    python = sys.executable if request.param == "this" else newest_python()
    if request.param == "the newest" and python == sys.executable:
        pytest.skip("no newer Python is installed")
    return python


def test_the_wheel_is_complete(built: Path, python: str, empty_dsn: str, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    run([python, "-m", "venv", "clean"], tmp_path)
    programs = tmp_path / "clean" / "bin"
    run([programs / "python", "-m", "pip", "install", *QUIET, f"{wheel}[binary]"], tmp_path)
    shutil.copytree(ROOT / "examples" / "pages", tmp_path / "pages")

    def pgsimhash(*arguments: str) -> str:
        return run([programs / "pgsimhash", *arguments], tmp_path, PGSIMHASH_DSN=empty_dsn)

    assert re.match(r"pgsimhash.* \d+\.\d+", pgsimhash("--version"))
    pgsimhash("migrate")
    verdicts = [json.loads(line) for line in pgsimhash("ingest", "pages").splitlines()]
    assert sum(verdict["kind"] in ("duplicate", "near") for verdict in verdicts) == 15
    assert pgsimhash("find", "pages/tide-pools.html")
    pgsimhash("analyse", "report", "-o", "report.html")
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert not pgsimhash("check").strip()
    pgsimhash("migrate", "--downgrade", "base", "--yes")
    show = "import pgsimhash; print(pgsimhash.__file__)"
    where = run([programs / "python", "-c", show], tmp_path)
    assert where.startswith(str(tmp_path / "clean"))
    assert (Path(where.strip()).parent / "py.typed").exists()


def test_type_checkers_see_an_editable_install(clone: Path, tmp_path: Path) -> None:
    run([sys.executable, "-m", "venv", "clean"], tmp_path)
    python = tmp_path / "clean" / "bin" / "python"
    run([python, "-m", "pip", "install", *QUIET, "--no-deps", "-e", clone], tmp_path)
    (tmp_path / "right.py").write_text("import pgsimhash\n\npgsimhash.Store.find\n")
    (tmp_path / "wrong.py").write_text("import pgsimhash\n\npgsimhash.Store.fnid\n")
    programs = Path(sys.executable).parent
    checks: list[list[str | Path]] = [
        [programs / "mypy", "--python-executable", python],
        [programs / "basedpyright", "--level", "error", "--pythonpath", python],
    ]
    for check in checks:
        with pytest.raises(AssertionError, match="fnid") as wrong:
            run([*check, "right.py", "wrong.py"], tmp_path)
        assert {*re.findall(r"(\w+)\.py:\d+.* error", str(wrong.value))} == {"wrong"}
