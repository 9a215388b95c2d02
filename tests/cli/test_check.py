"""``pgsimhash check``: JSON lines and exit codes."""

from __future__ import annotations

from pathlib import Path

import psycopg

from tests.cli.harness import Run


def test_a_consistent_database_is_exit_code_0(run: Run, folder: Path) -> None:
    assert run("check").code == 0
    run("ingest", folder)
    checked = run("check")
    assert (checked.code, checked.stdout) == (0, "")
    assert "No violations were found" in checked.stderr


def test_each_violation_is_a_line_and_without_repair_exit_code_1(
    run: Run, folder: Path, dsn: str
) -> None:
    run("ingest", folder)
    with psycopg.connect(dsn) as hand:
        hand.execute("UPDATE pgsimhash.pages SET indexed = false WHERE url LIKE '%looms.html'")
        hand.execute("UPDATE pgsimhash.pages SET duplicate_of = page_id WHERE distance = 0")
    found = run("check", "--collection", "default")
    assert found.code == 1
    assert {line["reason"] for line in found.lines} == {"simhash_missing", "original_missing"}
    assert set(found.lines[0]) == {
        *("collection", "reason", "page_id", "url", "simhash", "repair", "repaired", "object"),
    }
    repaired = run("check", "--repair")
    assert {line["repaired"] for line in repaired.lines} == {True}
    assert repaired.code == 0
    assert "2 found, 2 of them repaired" in repaired.stderr
    assert run("check").lines == []


def test_a_grant_to_others_is_one_line_with_any_number_of_collections(
    run: Run, folder: Path, dsn: str
) -> None:
    with psycopg.connect(dsn) as hand:
        hand.execute("GRANT TRIGGER ON pgsimhash.pages TO PUBLIC")
    for arguments in ([], ["--create"], ["--create", "--collection", "second"]):
        if arguments:
            run("ingest", folder, *arguments)
        found = run("check", "--repair")
        assert (found.code, [line["reason"] for line in found.lines]) == (1, ["foreign_grant"])
        assert "1 found, 0 of them repaired" in found.stderr
