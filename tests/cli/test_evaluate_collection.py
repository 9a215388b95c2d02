"""``pgsimhash analyse evaluate --sample N --collection NAME``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.harness import Run

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_a_sample_of_a_collection_needs_no_pages(run: Run, tmp_path: Path) -> None:
    run("ingest", EXAMPLES / "pages")
    pairs = tmp_path / "pairs.csv"
    done = run(
        "analyse", "evaluate", "--sample", "100", "--collection", "default", "--borderline", pairs
    )
    assert done.code == 0
    (line,) = [line for line in done.lines if line["distance"] == 0]
    assert line["pairs"] > 5
    assert pairs.read_text().startswith("a,b,label,kind,distance\n")
    assert run("analyse", "evaluate", "--sample", "100", "--collection", "typo").code == 2
    assert run("analyse", "evaluate", "--collection", "default").code == 2
    assert run("analyse", "evaluate").code == 2
