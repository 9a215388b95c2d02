"""The runs of a collection: which pages were added together, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from pgsimhash.db.statements import fetch
from pgsimhash.pages.records import Verdict
from pgsimhash.store.collection import Collection


@dataclass(slots=True)
class Run:
    """A run that a caller started, or one call of ``ingest_many`` or ``add_many``.

    Attributes:
        run_id: its id.
        label: its name.
        pages: the number of its pages, including the last batch.
    """

    run_id: int
    label: str
    pages: int = 0


def draw_run(connection: psycopg.Connection[Any], label: str) -> Run:
    """Return a new run; its row is inserted with the first batch."""
    ((run_id,),) = fetch(connection, "draw_run")
    return Run(run_id, label)


def is_stored(
    connection: psycopg.Connection[Any],
    collection: Collection,
    verdicts: Sequence[Verdict],
    run: Run | None,
) -> bool:
    """Return whether a batch was committed: its run has these pages, or its pages exist.

    Without a run, a batch that added no page counts as not committed: repeating it is harmless.
    """
    parameters = {
        "collection_id": collection.collection_id,
        "run_id": None if run is None else run.run_id,
        "run_pages": None if run is None else run.pages,
        "page_ids": [verdict.page_id for verdict in verdicts if verdict.verdict != "unchanged"],
        "urls": [verdict.url for verdict in verdicts],
    }
    return bool(fetch(connection, "batch_stored", parameters)[0][0])
