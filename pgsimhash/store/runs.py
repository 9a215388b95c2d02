"""The runs of a collection: which process added label, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import scalar_row

from pgsimhash.db.statements import query


@dataclass(slots=True)
class Run:
    """The run that a store's writes belong to.

    Attributes:
        run_id: its number.
        label: what adds to it.
        pages: how many it has, those of the batch included that was written last.
    """

    run_id: int
    label: str
    pages: int = 0


def draw_run(connection: psycopg.Connection[Any], label: str) -> Run:
    """Return a run with a number of its own; its row comes with the first batch."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        run_id = cursor.execute(query("draw_run", connection)).fetchone()
    return Run(int(run_id or 0), label)


def run_pages(connection: psycopg.Connection[Any], run: Run) -> int:
    """Return how many pages a run has in the database."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        found = cursor.execute(query("run_pages", connection), {"run_id": run.run_id}).fetchone()
    return int(found or 0)
