"""The sample pages come out as examples/expected.csv says."""

from __future__ import annotations

import contextlib
import csv
from itertools import combinations
from pathlib import Path

from pgsimhash import PageError, Store, fingerprint, hamming_distance
from pgsimhash.sources import read_pages
from tests.manual import run_commands

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_every_copy_is_found_and_nothing_else(store: Store) -> None:
    with (EXAMPLES / "expected.csv").open(encoding="utf-8", newline="") as file:
        expected = {
            row["page"]: "too short" if row["why"] == "too_short" else row["original"]
            for row in csv.DictReader(file)
        }
    found: dict[str, str] = {}
    for verdict in store.ingest_many(read_pages([EXAMPLES / "pages"])):
        page = verdict.url.rsplit("/", 1)[-1]
        nearest = (verdict.duplicate_of or "").rsplit("/", 1)[-1]
        # The nearest known page may be another copy, whose original was found before.
        original = found.get(nearest) or nearest
        found[page] = "too short" if verdict.verdict == "too_short" else original
    assert found == expected


def test_a_table_of_ones_own(empty_dsn: str, tmp_path: Path) -> None:
    """It finds the pairs within 8 bits, in a database with nothing of ours in it."""
    program = (EXAMPLES / "own_table.py").read_text(encoding="utf-8")
    (tmp_path / "own_table.py").write_text(program, encoding="utf-8")
    (tmp_path / "pages").symlink_to(EXAMPLES / "pages")
    lines = run_commands(["python own_table.py"], empty_dsn, tmp_path).splitlines()
    simhashes = {}
    for path in (EXAMPLES / "pages").glob("*.html"):
        with contextlib.suppress(PageError):
            simhashes[path.stem] = fingerprint(path.read_bytes()).simhash
    pairs = {
        f"{hamming_distance(simhashes[one], simhashes[other])} {one} {other}"
        for one, other in combinations(sorted(simhashes), 2)
        if hamming_distance(simhashes[one], simhashes[other]) <= 8
    }
    assert lines[0].startswith("not-found: ")
    assert len(lines) == len(set(lines))
    assert set(lines[1:]) == pairs


def test_an_ingest_job_in_asyncio(dsn: str, tmp_path: Path) -> None:
    """It decides about every page; later only what was not stored is due."""
    command = [f"python {EXAMPLES / 'async_ingest.py'}"]
    lines = run_commands(command, dsn, tmp_path).splitlines()
    assert {line.split()[1] for line in lines} == {
        path.as_uri() for path in (EXAMPLES / "pages").glob("*.html")
    }
    # Which page of several is the first depends on which arrives first.
    assert len([line for line in lines if line.startswith("new ")]) == 8
    assert len([line for line in lines if line.startswith("too_short ")]) == 1
    again = run_commands(command, dsn, tmp_path).splitlines()
    assert again == [line for line in lines if line.startswith("too_short ")]
