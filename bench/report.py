"""Generate a collection and measure the report on it: time, size, memory.

    python bench/report.py [--dsn DSN] [--pages N] --output report.html

Without --dsn an embedded server is started in a temporary folder. A fifth of the pages are
near-duplicates of others, in clusters of very different sizes; some URLs have many versions; the
Markdown of all pages is stored. `pgsimhash analyse report` runs in its own process, whose time and
peak memory are printed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgsimhash import connect
from pgsimhash.pages.match_settings import MatchSettings
from pgsimhash.pages.records import PageRecord
from pgsimhash.store.runs import draw_run
from pgsimhash.store.writer import write_batch

if TYPE_CHECKING:
    from bench.workload import database
else:  # A script finds its neighbours under their own names.
    from workload import database

_WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "lmnrst"]
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def paragraphs(rng: random.Random, count: int) -> list[str]:
    return [" ".join(rng.choices(_WORDS, k=60)).capitalize() + "." for _ in range(count)]


def records(pages: int, rng: random.Random) -> Iterator[PageRecord]:
    """Records like those of `ingest`, with random simhashes and texts."""
    originals: list[tuple[int, list[str]]] = []
    watched = [f"https://www{number}.example/" for number in range(500)]
    for number in range(pages):
        copied = bool(originals) and rng.random() < 0.2
        if copied:
            # The power gives some originals far more copies than others.
            simhash, text = originals[int(rng.random() ** 4 * len(originals))]
            for bit in rng.sample(range(64), rng.randint(0, 3)):
                simhash ^= 1 << bit
            text = [*text[:-1], *paragraphs(rng, 1)]
        else:
            simhash, text = rng.getrandbits(64), paragraphs(rng, 12)
            originals.append((simhash, text))
        url = f"https://www{int(rng.random() ** 3 * 900)}.example/stories/{number}"
        yield PageRecord(
            url if rng.random() < 0.95 else watched[int(rng.random() ** 3 * len(watched))],
            simhash,
            _BEGIN + timedelta(minutes=number),
            title=" ".join(text[0].split()[:8]),
            features=700,
            html_bytes=rng.randint(20_000, 90_000),
            structure=rng.getrandbits(64),
            markdown="\n\n".join(text),
        )


@click.command()
@click.option("--dsn")
@click.option("--pages", default=100_000, show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), required=True)
def main(dsn: str | None, pages: int, output: Path) -> None:
    """Measure a report over many pages."""
    with database(dsn) as where:
        name = f"bench-{time.time_ns()}"
        # In a separate process, so that its memory does not count for the report.
        loader = get_context("spawn").Process(target=load, args=(where, name, pages))
        started = time.perf_counter()
        loader.start()
        loader.join()
        print(f"{pages:,} pages generated and stored in {time.perf_counter() - started:.1f} s")
        started = time.perf_counter()
        command = ["-m", "pgsimhash", "analyse", "report", "--dsn", where, "--collection", name]
        with subprocess.Popen(
            [sys.executable, *command, "-o", str(output)], stdout=subprocess.PIPE
        ) as done:
            assert done.stdout is not None
            printed = done.stdout.read()
            _, status, used = os.wait4(done.pid, 0)
            done.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(done.returncode)
    figures = json.loads(printed)["report"]
    # ru_maxrss: kilobytes, on macOS bytes.
    megabytes = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    print(f"{seconds:.1f} s, {output.stat().st_size / 1e6:.2f} MB, peak memory {megabytes:.0f} MB")
    print(
        f"{figures['all_clusters']:,} clusters of {figures['clustered_pages']:,} pages, the "
        f"biggest of {figures['clusters'][0]['pages']:,}; {figures['all_changed']:,} pages with "
        f"versions; {figures['all_hosts']:,} hosts"
    )


def load(dsn: str, name: str, pages: int) -> None:
    """Store the records with the decisions of `ingest`, in batches of a thousand."""
    found = records(pages, random.Random(11))
    with connect(dsn, collection=name, keep_markdown=True) as store:
        with store.session.read() as connection:
            run = draw_run(connection, "bench")
        while batch := list(islice(found, 1000)):
            with store.session.transaction() as connection:
                write_batch(
                    connection,
                    store.opened,
                    batch,
                    [MatchSettings(8)] * len(batch),
                    run,
                    by_policies=False,
                )


if __name__ == "__main__":
    main()
