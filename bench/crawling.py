"""Measure how much a store slows down a Scrapy crawl of local pages.

    python bench/crawling.py [FOLDER] [--dsn DSN] [--pages N] [--rounds N]

The pages are those of FOLDER, or examples/pages with every tenth word replaced. A server in another
process serves them on loopback. The same crawl alternates between three ways, each in a separate
process: alone; with the pipeline of pgsimhash.scrapy over a store that only reads pages; and with a
real store. No item is dropped. The results are medians of the wall time and of the CPU time of the
crawling process. Without --dsn an embedded server is started in a temporary folder.
"""

from __future__ import annotations

import json
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response

from pgsimhash import scrapy as ours
from pgsimhash.pages.records import PageFailure, PageRecord, Verdict
from pgsimhash.schemes import DEFAULT_SCHEME

if TYPE_CHECKING:
    from bench.workload import database
else:  # A script finds its neighbours under their own names.
    from workload import database

EXAMPLES = Path(__file__).parent.parent / "examples" / "pages"

WAYS = ("alone", "extraction", "store")

_WORD = re.compile(rb"(?<=[ >])[a-z]{4,}(?=[ ,.<])")


def bodies(folder: Path | None, count: int) -> list[bytes]:
    """The pages of a folder, or as many generated ones."""
    pages = [path.read_bytes() for path in sorted((folder or EXAMPLES).glob("**/*.html"))]
    if folder is not None:
        return pages[:count]
    rng = random.Random(7)

    def other(found: re.Match[bytes]) -> bytes:
        return b"%x" % rng.getrandbits(32) if rng.random() < 0.1 else found[0]

    return [_WORD.sub(other, pages[number % len(pages)]) for number in range(count)]


def serve(pages: Sequence[bytes], told: Connection) -> None:
    """Serve pages by number, and report the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = pages[int(self.path[1:])]
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *parts: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        told.send(server.server_port)
        server.serve_forever()


@contextmanager
def served(pages: Sequence[bytes]) -> Iterator[int]:
    """The port of a server in another process."""
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=serve, args=(pages, there))
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


class Spider(scrapy.Spider):
    """Fetches pages by their numbers."""

    name = "bench"
    port: int
    pages: int

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for number in range(self.pages):
            yield scrapy.Request(f"http://127.0.0.1:{self.port}/{number}")

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        yield {"url": response.url, "html": response.body}


class Extraction:
    """A store that knows nothing, without a database."""

    scheme = DEFAULT_SCHEME.name
    opened = SimpleNamespace(keep_markdown=False)

    def ingest_many(self, records: list[PageRecord | PageFailure]) -> Iterator[Verdict]:
        for record in records:
            simhash = record.simhash if isinstance(record, PageRecord) else None
            yield Verdict(record.url, "new", "first_seen", simhash, keep=True)

    def start_run(self, label: str) -> None:
        pass

    def close(self) -> None:
        pass


def crawl(way: str, dsn: str, port: int, pages: int) -> None:
    """Crawl in one of the ways, and print the seconds and counters."""
    if way == "extraction":
        setattr(ours, "connect", lambda *args, **kwargs: Extraction())  # noqa: B010
    pipelines = {} if way == "alone" else {ours.PgsimhashPipeline: 300}
    process = CrawlerProcess(
        {
            "ITEM_PIPELINES": pipelines,
            "PGSIMHASH_ACTION": "tag",
            "PGSIMHASH_DSN": dsn,
            "PGSIMHASH_COLLECTION": f"bench-{time.time_ns()}",
            "LOG_LEVEL": "ERROR",
            "TELNETCONSOLE_ENABLED": False,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
            "DOWNLOAD_DELAY": 0,
        }
    )
    crawler = process.create_crawler(Spider)
    process.crawl(crawler, port=port, pages=pages)
    process.start()
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = {**crawler.stats.get_stats(), "cpu": used.ru_utime + used.ru_stime}
    print(json.dumps(told, default=str))


@click.command()
@click.argument(
    "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--dsn")
@click.option("--pages", default=2000, show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--way", type=click.Choice(WAYS), hidden=True)
@click.option("--port", type=int, hidden=True)
def main(
    folder: Path | None, dsn: str | None, pages: int, rounds: int, way: str | None, port: int | None
) -> None:
    """Measure three crawls."""
    if way and dsn and port:
        crawl(way, dsn, port, pages)
        return
    made = bodies(folder, pages)
    size = sum(map(len, made)) / len(made) / 1e3
    print(f"{len(made):,} pages of {size:.0f} kB on average")
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    cpu: dict[str, list[float]] = {name: [] for name in WAYS}
    with database(dsn) as where, served(made) as at:
        for _ in range(rounds):
            for name in WAYS:
                command = [sys.executable, __file__, "--way", name, "--port", str(at)]
                command += ["--dsn", where, "--pages", str(len(made))]
                told = json.loads(subprocess.run(command, check=True, stdout=-1).stdout)
                seconds[name].append(told["elapsed_time_seconds"])
                cpu[name].append(told["cpu"])
                counters = {
                    counter.removeprefix("pgsimhash/"): count
                    for counter, count in told.items()
                    if counter.startswith("pgsimhash/")
                }
                rate = len(made) / told["elapsed_time_seconds"]
                busy = f"{told['cpu']:5.1f} s of processor"
                print(f"{name:>10}: {rate:6.1f} pages/s, {busy}  {counters or ''}", flush=True)
    print("extraction apart, the store takes")
    for what, figures in (("of the speed", seconds), ("of the processor's time", cpu)):
        print(f"  {1 - median(figures['extraction']) / median(figures['store']):.1%} {what}")


if __name__ == "__main__":
    main()
