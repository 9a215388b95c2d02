"""The runs of a collection: which process added what, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import scalar_row

from pgsimhash.statements import query


@dataclass(frozen=True, slots=True)
class Run:
    """The run that a store's writes belong to."""

    run_id: int
    what: str


def draw_run(connection: psycopg.Connection[Any], what: str) -> Run:
    """Return a run with a number of its own; its row comes with the first batch."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        run_id = cursor.execute(query("draw_run", connection)).fetchone()
    return Run(int(run_id or 0), what)
