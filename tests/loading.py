"""Load simhashes as an importer does: as pages, by COPY."""

from __future__ import annotations

import numpy as np
import psycopg
from numpy.typing import NDArray


def copy_simhashes(dsn: str, simhashes: NDArray[np.uint64], collection: str = "default") -> None:
    """Add a page for each simhash to an existing collection."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT collection_id FROM pgsimhash.collections WHERE name = %s", [collection]
        ).fetchall()
        ((collection_id,),) = rows
        copied = "COPY pgsimhash.pages (collection_id, url, simhash) FROM STDIN"
        with connection.cursor().copy(copied) as copy:
            for number, simhash in enumerate(simhashes.view(np.int64).tolist()):
                copy.write_row((collection_id, f"https://copied.example/{number}", simhash))
