"""Errors end in one line with the fix, not in a traceback; and ``--help``."""

import os
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.programs import PGSIMHASH, run_program

NO_TEXT = os.fsdecode(b"\xff")
"""An argument that is not UTF-8, as Python represents it."""


def test_a_group_alone_shows_its_help_and_the_shell_can_complete_commands(run: Run) -> None:
    for command in ([], ["policy"]):
        done = run(*command)
        assert (done.code, done.stdout) == (2, "")
        assert done.stderr == run(*command, "--help").stdout
        assert "  policy  " in done.stderr or "  remove  " in done.stderr
    words: dict[str, Any] = {"COMP_WORDS": "pgsimhash col", "COMP_CWORD": "1"}
    program = Path(sys.executable).with_name("pgsimhash")
    completed = run_program(program, **words, _PGSIMHASH_COMPLETE="bash_complete")
    assert completed.stdout.split() == ["plain,collection"]


def test_an_argument_that_is_not_utf8_is_one_clear_line(run: Run) -> None:
    assert run("collection", "create", "default").code == 0
    for command in (
        "status --collection X", "collection create X", "collection rename default X",
        "delete --url X", "delete --host X", "policy set X --distance 3",
        "policy list https://a.example/X", "analyse history X", "mark X https://a.example/ --same",
    ):  # fmt: skip
        done = run(*command.replace("X", NO_TEXT).split())
        assert done.code in (1, 2, 3)
        *usage, line = done.stderr.splitlines()
        assert len(usage) in (0, 2, 3)
        assert "surrogates not allowed" in line or "a str in valid UTF-8" in line


def test_a_closed_stdin_is_one_clear_line_if_it_is_read(run: Run, folder: Path) -> None:
    run("collection", "create", "default")
    closed = partial(run_program, "sh", "-c", f'{shlex.join(PGSIMHASH)} "$@" <&-', "sh")
    for command in ("ingest -", "should-fetch -", "collection delete default"):
        done = closed(*command.split())
        assert (done.returncode, done.stdout) == (2, "")
        assert "Traceback" not in done.stderr
        assert "stdin" in done.stderr.splitlines()[-1] or "confirm with --yes" in done.stderr
    done = closed("ingest", folder / "wells.html")
    assert done.returncode == 0
    assert "first_seen" in done.stdout


def test_a_full_disk_under_stdout_is_one_clear_line(run: Run, folder: Path) -> None:
    run("collection", "create", "default")
    pairs = ["analyse", "pairs", "--csv"]
    for command in (["status"], ["ingest", str(folder)], pairs, ["--help"], ["status", "--help"]):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run([*PGSIMHASH, *command], stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 3
        (line,) = done.stderr.splitlines()
        assert b"No space left on device; free space" in line
    # Also the page whose verdict could not be printed has one now.
    assert len(run("ingest", folder).lines) == 4


def test_a_file_that_cannot_grow_is_no_wrong_option(run: Run, folder: Path) -> None:
    run("collection", "create", "default")
    # Python 3.11 would leave a cut file of byte code, and use it.
    limited = [
        "sh",
        "-c",
        f'ulimit -f 1; PYTHONDONTWRITEBYTECODE=1 {shlex.join(PGSIMHASH)} "$@"',
        "sh",
        "ingest",
        str(folder),
    ]
    done = run_program(*limited, "--parquet", folder / "verdicts.parquet")
    assert done.returncode == 3
    assert "File too large; free space" in done.stderr


@pytest.mark.parametrize("command", ["status", "ingest", "ingest --parquet verdicts.parquet"])
def test_a_closed_stdout_ends_with_its_own_code(run: Run, folder: Path, command: str) -> None:
    run("collection", "create", "default")
    arguments = [*command.split(), *([str(folder)] if "ingest" in command else [])]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PGSIMHASH, *arguments], stdout=writer, stderr=subprocess.PIPE, cwd=folder, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(("module", "command"), [
    ("click", ["status"]), ("pgsimhash.cli.options", ["status"]), ("psycopg", ["status"]),
    ("numpy", ["analyse", "pairs"]),
])  # fmt: skip
def test_ctrl_c_while_modules_are_loaded(run: Run, module: str, command: list[str]) -> None:
    run("collection", "create", "default")
    code = f"""
import sys

class Interruption:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interruption())
from pgsimhash.cli import main
main()
"""
    done = run_program(sys.executable, "-c", code, *command)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "Stopped. Committed work stays; run again to continue.\n"


def explain(folder: Path, target: Path | str) -> list[str]:
    pages = [str(folder / "wells.html"), str(folder / "looms.html")]
    return [*PGSIMHASH, "analyse", "explain", *pages, "-o", str(target)]


def test_a_page_replaces_a_file_as_a_whole_or_goes_to_a_pipe_or_device(folder: Path) -> None:
    target = folder / "why.html"
    target.write_text("the page before")
    before = set(folder.iterdir())
    explained = shlex.join(explain(folder, target))
    done = run_program("sh", "-c", f"ulimit -f 1; PYTHONDONTWRITEBYTECODE=1 {explained}")
    assert done.returncode == 3
    assert "File too large" in done.stderr
    assert target.read_text() == "the page before"
    assert set(folder.iterdir()) == before
    command = explain(folder, "/dev/stdout")
    assert "<!doctype html>" in run_program(*command).stdout
    with target.open("w") as file:
        subprocess.run(command, stdout=file, check=True)
    assert "<!doctype html>" in target.read_text()


MISTAKES = {
    "ingest . --max-age soon": "90d, 12h",
    "ingest . --window-size 0": "not in the range",
    "ingest . --scope planet": "is not one of",
    "ingest . --distance 13": "0<=x<=12",
    "ingest . --page-seconds nan": "nan",
    "ingest . --create --collection ''": "needs a name",
    "ingest . --parquet none/x.parquet": "cannot be written",
    "collection create ''": "needs a name",
    "collection create news --distance 13": "0<=x<=12",
    "collection set default": "give at least one of",
    "collection set typo --distance 5": "'typo' does not exist",
    "collection delete typo --yes": "(the nearest names: default); check the name",
    "expire --older-than 90": "90",
    "expire --older-than 0d": "an age must be above 0, such as 90 days",
    "find no-such-file.html": "'no-such-file.html' is neither a file nor a simhash: write 16",
    "find 1 --distance near": "'near' is not a valid bits|close|loose",
    "find 7777777777776": "can be a decimal or base32",
    "find 1 --limit 0": "x>=1",
    "analyse report --distance 13": "0<=x<=12",
    "analyse report -o /nowhere/report.html": "create it",
    "analyse explain wells 0": "'wells' is neither a file nor a simhash",
    "analyse explain - -": "stdin can be read only once",
    "analyse clusters --parquet x --save": "give one of",
    "analyse clusters --csv --save": "give one of",
    "ingest . missing.html": "'missing.html' does not exist",
    "delete": "give one of --url and --host",
    "delete --url x --host a.example": "give one of --url and --host",
    "delete --host https://b.example/": "give a name such as example.com",
    "mark wells looms": "give two URLs",
    "mark wells --same": "give two URLs",
    "mark --remove": "give two URLs",
    "mark wells looms --same --different": "one of --same",
    "mark wells looms --same --remove": "one of --same",
    "decide pages.jsonl": "only ingest reads it",
    "fingerprint crawl.warc.gz": "only ingest reads it",
    "find crawl.warc.gz": "only ingest reads it",
    "analyse explain pages.jsonl 0": "only ingest reads it",
    "mark --from x.csv wells looms --same": "give two URLs",
    "analyse clusters --canonical best": "is not one of",
    "collection rebuild": "Missing argument",
    "collection rebuild nowhere": "'nowhere' does not exist",
    "should-fetch": "Missing argument",
    "analyse evaluate": "Missing argument",
    "analyse template": "Missing argument",
    "analyse template . --ignore a:hover": "is not supported, at character 2",
    "analyse evaluate pairs.csv --scheme unheard-of": "'unheard-of' is not one of",
    "analyse evaluate pairs.csv another.csv": "unexpected extra argument",
    "analyse evaluate wrong.csv": "line 2: 'perhaps' is not a label",
    "analyse evaluate waiting.csv --collection default": "label some",
    "analyse evaluate --collection default": "Missing argument",
    "analyse evaluate pairs.csv --collection default --pages .": "give --pages or --collection",
    "analyse evaluate missing.csv": "'missing.csv' does not exist",
    "migrate --sql --roles": "create_roles() creates the roles",
    "migrate --sql --downgrade base": "--sql is only for upgrades",
    "migrate --downgrade base --roles": "are only for upgrades",
    "migrate --downgrade base --layout 32+32": "are only for upgrades",
    "migrate --no-transaction": "need --sql",
    "migrate --from 0001": "need --sql",
    "migrate --layout '7 choose 8'": "is not one of '22+21+21'",
    "analyse clusters --parquet none/x.parquet": "cannot be written",
    "policy set *": "setting",
    **{
        f"policy set a.example {option} {2**31}": "<=2147483647"
        for option in ("--window-size", "--max-copies", "--min-tokens")
    },
    "policy set https://a.example/ --distance 1": "pattern",
    "fingerprint wells.html gone.html": "'gone.html' does not exist",
    "decide . --url https://a.example/": "is a directory",
    **{
        f"{command} --collection typo": "'typo' does not exist (the nearest names: default); check"
        for command in (
            "decide wells.html", "find 1", "status", "check", "analyse report", "mark",
            "should-fetch https://a.example/", "analyse pairs", "delete --host a.example",
            "analyse evaluate pairs.csv",
        )
    },
}  # fmt: skip
"""Commands, and what their error contains."""


def test_mistakes_are_explained(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for name, label in (("pairs", "duplicate"), ("wrong", "perhaps"), ("waiting", "")):
        (folder / f"{name}.csv").write_text(f"a,b,label\nx,y,{label}\n")
    (folder / "pages.jsonl").touch()
    (folder / "crawl.warc.gz").touch()
    run("collection", "create", "default")
    for command, advice in MISTAKES.items():
        refused = run(*shlex.split(command))
        assert (refused.code, refused.stdout) == (2, ""), command
        assert advice in " ".join(refused.stderr.split()), command
