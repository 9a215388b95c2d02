"""The sample pages come out as examples/expected.csv says."""

from __future__ import annotations

import csv
from pathlib import Path

from pgsimhash import Store
from pgsimhash.sources import read_pages

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
