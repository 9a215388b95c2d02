"""The runs of a collection: which pages were added together, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import scalar_row

from pgsimhash.db.statements import query
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
    with connection.cursor(row_factory=scalar_row) as cursor:
        run_id = cursor.execute(query("draw_run", connection)).fetchone()
    return Run(int(run_id or 0), label)


def is_stored(
    connection: psycopg.Connection[Any],
    collection: Collection,
    verdicts: Sequence[Verdict],
    run: Run | None,
) -> bool:
    """Return whether a batch was committed: its run has these pages, or its pages exist.

    Without a run, a batch that added no page counts as not committed: repeating it is harmless.
    """
    page_ids = [verdict.page_id for verdict in verdicts if verdict.verdict != "unchanged"]
    parameters = {
        "collection_id": collection.collection_id,
        "run_id": None if run is None else run.run_id,
        "run_pages": None if run is None else run.pages,
        "page_ids": page_ids,
        "urls": [verdict.url for verdict in verdicts],
    }
    with connection.cursor(row_factory=scalar_row) as cursor:
        return bool(cursor.execute(query("batch_stored", connection), parameters).fetchone())
