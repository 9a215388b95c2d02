"""No control character in names, addresses and pages is printed raw."""

import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from pgsimhash import connect
from pgsimhash.cli import show
from pgsimhash.cli.commands import commands
from tests.cli.conftest import names_of
from tests.programs import run_program
from tests.public import compare

# Sets a title, resets (also as C1), deletes, forges a line, reverses text.
EVIL = (
    "\x1b]0;OWNED\x07\x1bc\x9d0;OWNED\x9c\x7f\x08\r\nFORGED\x85\u2028\u202eOWNED\u2066\u200f\t\x01"
)
CONTROLS = [chr(code) for code in (*range(1, 32), *range(127, 160)) if chr(code) != "\n"]
STEERING = [*CONTROLS, *"\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e"]
STEERING += list("\u2066\u2067\u2068\u2069")

URL = f"https://a.example/{EVIL}"
PERCENT = "https://a.example/%1b%5d0;OWNED%07%0aFORGED%c2%9d"
OTHER = "https://b.example/other"
# Rich's own output to a terminal: colours, and the moves of a redrawn bar.
OWN = re.compile(r"\r?\x1b\[[0-9;]*m|\r?\x1b\[\?25[lh]|\r?\x1b\[[0-9]*[AK]|\r(?=\x1b|$)")


@pytest.fixture
def dsn_with_evil(dsn: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with hostile names in every possible place."""
    text = "".join(f"<p>Line {n} {EVIL} of <b>many</b> words and more.</p>" for n in range(30))
    html = f"<title>{EVIL}</title><article>{text}</article>"
    lines = [{"url": URL, "html": html}, {"url": PERCENT, "html": html}, {"url": EVIL}, EVIL]
    many = [
        {
            "url": f"{OTHER}{n}",
            "html": f"<title>{EVIL}</title><div class='{EVIL}'>{EVIL} a</div>" + f"word{n} " * 20,
        }
        for n in range(3)
    ]
    head, queries = "a,b,label", [{"simhash": "0" * 16, "url": URL}, {"simhash": EVIL}]
    for name, content in {
        f"{EVIL}.html": html, f"{EVIL}copy.html": f"{html}<p>and a word",
        f"{EVIL}short.html": "<p>x", f"{EVIL}.jsonl": "\n".join(map(json.dumps, lines)),
        f"{EVIL}.txt": json.dumps(html),
        "pairs.csv": f'{head},kind\n"{EVIL}.html","{EVIL}copy.html",1,"{EVIL}"\n"{EVIL}",b,1,x\n',
        "known.csv": f'{head}\n"{EVIL}","{EVIL}x",distinct\n{OTHER},{OTHER}2,duplicate\n',
        "bad.csv": f'{head}\nx,y,"{EVIL}"\n', "queries.jsonl": "\n".join(map(json.dumps, queries)),
        "parts.jsonl": "\n".join(map(json.dumps, many)),
    }.items():  # fmt: skip
        (folder / name).write_text(content, newline="")
    with connect(dsn, collection=EVIL, create=True, keep_markdown=True) as store:
        store.set_policy("c.example", distance=1)
        store.ingest(OTHER, html)
        store.start_run(EVIL)
        store.ingest(f"{OTHER}2", html)
        for simhash in (0, 1):
            store.add_page(OTHER, simhash)
    with psycopg.connect(dsn) as connection:
        # By SQL, because other programs may write these tables.
        for number, url in enumerate((URL, PERCENT, URL, f"{URL}?{EVIL}OWNED")):
            connection.execute(
                "INSERT INTO pgsimhash.pages (collection_id, url, simhash, title, markdown,"
                " html_bytes, distance, duplicate_of) SELECT collection_id, %s, %s, %s, %s, 9, 0,"
                " min(page_id) FROM pgsimhash.pages GROUP BY 1",
                [url, number, EVIL, f"{EVIL}\n\n{EVIL} {number} " + "words of it " * 20],
            )
    monkeypatch.setenv("PGSIMHASH_DSN", dsn)
    monkeypatch.chdir(folder)
    return dsn


CASES = [
    "ingest . -c", "ingest EVIL.jsonl", "ingest . --parquet EVIL/EVIL.parquet",
    "ingest missingEVIL", "ingest x --EVIL", "should-fetch URL OTHER -c",
    "decide EVIL.html --url URL -c", "find 0000000000000000 -c", "find EVIL -c",
    "find-many queries.jsonl -c", "find-many missingEVIL -c",
    "find EVIL.html -c", "find URL -c", "find URLunknown -c", "analyse pairs -c",
    "analyse clusters -c", "analyse clusters -c --save",
    "analyse clusters -c --parquet EVIL.parquet",
    "fingerprint EVIL.html missingEVIL", "fingerprint EVIL.txt",
    "fingerprint --markdown EVIL.html", "dedup EVIL.jsonl -o /dev/null --text url",
    "dedup missingEVIL -o /dev/null", "dedup parts.jsonl -o /dev/null --text url",
    "analyse explain URL PERCENT -c -o EVILout.html",
    "analyse explain EVIL.html EVILcopy.html", "analyse explain URLunknown URL -c",
    "analyse explain EVIL 0 -o EVIL/EVIL", "analyse history URL -c",
    "analyse history URL -c -o EVILout.html", "analyse crawls -c", "analyse crawls 1 EVIL -c",
    "analyse history URLunknown -c", "analyse history URL -c --seen-at EVIL",
    "analyse report -c -o EVILout.html", "analyse parameters -c",
    "analyse template EVIL.html EVIL.jsonl", "analyse template parts.jsonl --content .x",
    "analyse template EVIL.html --content EVIL", "analyse template parts.jsonl",
    "analyse evaluate pairs.csv",
    "analyse evaluate bad.csv", "analyse evaluate missingEVIL.csv",
    "analyse evaluate known.csv -c", "status", "status --collection EVIL2", "migrate",
    "migrate --sql", "migrate --dsn postgresql://EVIL", "migrate --downgrade EVIL",
    "migrate --downgrade EVIL --yes", "migrate --layout EVIL", "check", "check --repair",
    "check --collection EVIL2", "collection create EVIL2", "collection create EVIL3 --scheme EVIL",
    "policy set d.example/EVIL --distance 2 -c", "policy set EVIL --distance 2 -c",
    "policy set d.example --max-age EVIL", "policy EVIL", "policy list -c", "policy list URL -c",
    "policy remove d.example/EVIL -c", "collection list", "run list -c",
    "mark URL PERCENT --same -c", "mark URLunknown URL --same -c", "mark -c",
    "mark URL PERCENT --remove -c", "run undo -c", "run undo --collection EVIL2",
    "run undo 77 -c", "collection rebuild EVIL --into-schema EVIL", "collection rebuild EVIL2",
    "collection rebuild EVIL --into EVIL3 --scheme pgsimhash-blog-words-1 --verdicts",
    "collection rebuild EVIL --into EVIL4 --verdicts", "collection rebuild EVIL --into EVIL3",
    "collection set EVIL --distance 3", "collection set missingEVIL --distance 3",
    "collection rename EVIL EVIL2", "collection rename EVIL4 EVIL", "expire --older-than 1s -c",
    "expire --older-than EVIL", "delete --url URL -c --urls", "delete --host EVIL -c",
    "collection delete EVIL", "collection delete EVIL2 --yes", "collection delete EVIL --yes",
]  # fmt: skip
"""Commands with the names of hostile texts; ``-c`` is the hostile collection."""


def words(case: str) -> list[str]:
    names = {"EVIL": EVIL, "URL": URL, "PERCENT": PERCENT, "OTHER": OTHER}
    pattern = re.compile("|".join(names))
    case = re.sub(r" -c\b", " --collection EVIL", case)
    return [pattern.sub(lambda match: names[match[0]], word) for word in case.split()]


@pytest.mark.parametrize("terminal", [False, True], ids=["piped", "on a terminal"])
def test_no_command_prints_control_characters(
    dsn_with_evil: str, terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
    printed = dict.fromkeys(names_of(commands), "")
    keys: set[str] = set()
    for case in CASES:
        stdout, stderr = _checked_output(words(case), terminal)
        for command in printed:
            if f"{case} ".startswith(f"{command} "):
                printed[command] += stdout + stderr
                # These two print texts.
                is_text = "--markdown" in case or "--sql" in case
                lines = [] if is_text else map(json.loads, stdout.splitlines())
                keys |= {f"{command} {key}" for line in lines for key in _keys(line)}
    # A host is shown in lower case.
    assert [command for command, text in printed.items() if "OWNED" not in text.upper()] == []
    compare("json.txt", keys)


def _checked_output(arguments: list[str], terminal: bool) -> tuple[str, str]:
    """Run a command, and return what it printed, without Rich's own sequences."""
    done = CliRunner().invoke(commands, arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    stdout, stderr = done.stdout_bytes.decode(), done.stderr_bytes.decode()
    if terminal:
        stderr = OWN.sub("", stderr)
    for output in (stdout, stderr):
        assert [sign for sign in STEERING if sign in output] == [], (arguments, output)
        assert not re.search(r"^\s*FORGED", output, re.MULTILINE), arguments
    return stdout, stderr


def _keys(value: Any, place: str = "") -> Iterator[str]:
    """The keys of a value and of those in it, with dots; ``*`` is a value of the data."""
    if isinstance(value, list):
        for each in value:
            yield from _keys(each, f"{place}[]")
    if isinstance(value, dict):
        for key, each in value.items():
            path = f"{place}.{key if key.isidentifier() else '*'}"
            yield path.removeprefix(".")
            yield from _keys(each, path)


def test_escaped_json_and_names_are_readable(capsys: pytest.CaptureFixture[str]) -> None:
    text = EVIL + "".join(STEERING) + "é\U0001f6a2"
    show.json_line({"url": text})
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line) == {"url": text}
    assert "é\U0001f6a2" in line
    assert show.printable("a\x1b[31m\x9b\u202eé\n") == "a\\x1b[31m\\x9b\\u202eé\\x0a"
    show.text("a\n\tb\x1b\n")
    assert capsys.readouterr().out == "a\n    b\\x1b\n\n"


def test_markup_in_names_is_text(dsn_with_evil: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    command = ["analyse", "clusters", "--collection", EVIL, "--parquet", "[link=evil]:bug:"]
    assert "clusters in [link=evil]:bug:" in CliRunner().invoke(commands, command).stderr


def test_log_records_of_libraries_and_uncaught_errors_are_escaped() -> None:
    script = (
        "import logging; from pgsimhash.cli import show; show.escape_other_output();"
        f"evil = {EVIL!r};"
        "\ntry: raise ValueError(evil)"
        "\nexcept ValueError: logging.getLogger('a').exception('said %s', evil)"
        "\nraise KeyError(evil) from ValueError(evil)"
    )
    done = run_program(sys.executable, "-c", script)
    told = done.stderr
    assert done.returncode == 1
    assert told.count("OWNED") >= 9
    assert [sign for sign in STEERING if sign in told] == []
    assert "said \\x1b]0;OWNED" in told
    assert logging.lastResort is not None
