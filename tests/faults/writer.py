"""The work of processes that are killed.

Exit code 0: it was done; 3: the package raised one of its errors, which stderr names.
"""

import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from pgsimhash import PgsimhashError, connect, maintenance
from pgsimhash.pages.records import PageRecord

CENTRES = 200


def pages(number: int, count: int) -> Iterator[PageRecord]:
    """The same pages each time: near-duplicates of originals that all writers share."""
    originals = random.Random(0)
    centres = [originals.getrandbits(64) for _ in range(CENTRES)]
    rng = random.Random(number)
    for at in range(count):
        flipped = sum(1 << bit for bit in rng.sample(range(64), rng.randint(0, 3)))
        simhash = rng.choice(centres) ^ flipped if rng.random() < 0.8 else rng.getrandbits(64)
        title = f"Page {at} of {number} " + "x" * 200
        yield PageRecord(f"https://w{number}.example/{at}", simhash, title=title)


def write(
    dsn: str, number: int, count: int, batch: int, file: Path, retry_seconds: float | None
) -> None:
    """Write pages, and record each acknowledged one in a file."""
    opened = connect(dsn, retry_seconds=retry_seconds)
    with opened as store, file.open("ab", buffering=0) as acknowledged:
        for verdict in store.ingest_many(pages(number, count), batch_size=batch):
            assert verdict.verdict != "failed", verdict
            acknowledged.write(f"{verdict.url} {verdict.verdict}\n".encode())


def rebuild(dsn: str, into_schema: str | None) -> None:
    """Rebuild the collection, or copy it into another schema."""
    with connect(dsn, create=False) as store:
        maintenance.rebuild(store, into_schema=into_schema, replace=into_schema is None)


def run(work: Callable[..., None], errors: Path, *arguments: object) -> None:
    """Do the work of this process."""
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
    try:
        work(*arguments)
    except PgsimhashError as error:
        os.write(2, f"{error.reason}: {error}\n".encode())
        sys.exit(3)
