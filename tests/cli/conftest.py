"""The command line, run in this process over a fresh database."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from pgsimhash.cli.commands import commands
from tests.cli.harness import Result, Run


@pytest.fixture
def run(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``pgsimhash`` with arguments, over the test's database."""
    monkeypatch.setenv("PGSIMHASH_DSN", dsn)

    def run_command(*arguments: str | Path, stdin: str | bytes = b"") -> Result:
        done = CliRunner().invoke(commands, [str(argument) for argument in arguments], input=stdin)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Result(done.exit_code, done.stdout, done.stderr)

    return run_command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four pages: an article, its copy under another template, another article, a short one."""
    wells = "".join(
        f"<p>Well number {n} was dug in the {n * 7}th year by hand, and its water, which tastes of "
        f"iron and of {material}, still reaches the third ring of stones after the winter.</p>"
        for n, material in enumerate(["limestone", "clay", "basalt", "chalk", "slate"], start=1)
    )
    looms = "".join(
        f"<p>The {colour} loom stands by the window, because its weaver counts threads by "
        f"daylight, and a mistake in row {n} shows only when the cloth is off the frame.</p>"
        for n, colour in enumerate(["red", "green", "blue", "yellow", "white"], start=10)
    )
    pages = {
        "wells.html": f"<html><title>Wells</title><body><article>{wells}</article></body></html>",
        "wells-copy.html": "<html><title>Wells</title><body><nav><a href=/>Home</a></nav>"
        f"<main><div class=story>{wells}</div></main><footer>Printed today</footer></body></html>",
        "looms.html": f"<html><title>Looms</title><body><article>{looms}</article></body></html>",
        "short.html": "<html><title>Gone</title><body><p>Not found.</p></body></html>",
    }
    for name, html in pages.items():
        (tmp_path / name).write_text(html, encoding="utf-8")
    return tmp_path
