"""A job with its own rows: python -m tests.store.write.ingest_job DSN JOB POINT.

The rows use the caller's connection and transaction, as in docs/ingest.md.
"""

import os
import signal
import sys
from collections.abc import Iterator
from itertools import count, islice

import psycopg

from pgsimhash import connect
from pgsimhash.pages.records import Verdict
from tests.store.pages import page, paragraph

BATCH = 5


def pages(stories: int = 14) -> Iterator[tuple[str, str]]:
    """Stories: some have grown since an earlier crawl of fewer stories, and some are copied."""
    for number in range(stories):
        story = [paragraph(number), paragraph(number + 50)]
        if stories == 14 and number % 4 == 0:
            story.append(paragraph(number + 90, 60))
        yield f"https://a.example/{number}", page(*story)
        if number % 3 == 0:
            yield f"https://b.example/{number}", page(*story)
        if number % 5 == 0:
            yield f"https://a.example/empty/{number}", page()


def keep(connection: psycopg.Connection, verdict: Verdict) -> None:
    connection.execute(
        "INSERT INTO articles VALUES (%s, %s) "
        "ON CONFLICT (url) DO UPDATE SET page_id = excluded.page_id",
        [verdict.url, verdict.page_id],
    )


def page_by_page(connection: psycopg.Connection, tick: Iterator[int], stories: int) -> None:
    """Commit now and then, in the middle of everything."""
    store = connect(connection)
    next(tick)
    for number, verdict in enumerate(store.ingest_many(pages(stories)), 1):
        next(tick)
        if verdict.keep:
            keep(connection, verdict)
            next(tick)
        if number % BATCH == 0:
            connection.commit()
            next(tick)
    connection.commit()


def batch_by_batch(connection: psycopg.Connection, tick: Iterator[int], stories: int) -> None:
    """One transaction per batch; the connection may use autocommit."""
    connection.autocommit = True
    store = connect(connection)
    next(tick)
    source = pages(stories)
    while batch := list(islice(source, BATCH)):
        with connection.transaction():
            for verdict in store.ingest_many(batch, batch_size=BATCH):
                next(tick)
                if verdict.keep:
                    keep(connection, verdict)
                    next(tick)
        next(tick)


JOBS = {job.__name__: job for job in (page_by_page, batch_by_batch)}


def killed_at(point: int) -> Iterator[int]:
    """Count, and kill the process at the number ``point``."""
    for number in count(1):
        if number == point:
            os.kill(os.getpid(), signal.SIGKILL)
        yield number


def run(dsn: str, job: str, point: int = 0, stories: int = 14) -> None:
    with psycopg.connect(dsn) as connection:
        JOBS[job](connection, killed_at(point), stories)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]))
