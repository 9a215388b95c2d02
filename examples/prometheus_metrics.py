"""Metrics of a store for Prometheus: ``pip install prometheus-client``.

A service calls ``prometheus_client.start_http_server(8000)`` instead of printing them.
"""

import os
from pathlib import Path

from prometheus_client import Counter, Histogram, generate_latest

import pgsimhash
from pgsimhash.pages.records import Event
from pgsimhash.sources import read_pages

SECONDS = Histogram(
    "pgsimhash_seconds", "Time of a batch or a lookup.", ["collection", "name"], unit="seconds"
)
RESULTS = Counter(
    "pgsimhash_results", "Pages by verdict, and what was found.", ["collection", "name", "result"]
)
ERRORS = Counter("pgsimhash_errors", "Failed calls by reason.", ["collection", "name", "error"])


def count(event: Event) -> None:
    """Add an event to the metrics."""
    SECONDS.labels(event.collection, event.name).observe(event.seconds)
    for result, number in event.results.items():
        RESULTS.labels(event.collection, event.name, result).inc(number)
    if event.error is not None:
        ERRORS.labels(event.collection, event.name, event.error).inc()


def main() -> None:
    """Ingest the sample pages, look one up, and print the metrics."""
    pages = Path(__file__).parent / "pages"
    with pgsimhash.connect(os.environ["PGSIMHASH_DSN"], on_event=count) as store:
        verdicts = list(store.ingest_many(read_pages([pages])))
        store.find(next(v.simhash for v in verdicts if v.simhash is not None))
    print(generate_latest().decode())


if __name__ == "__main__":
    main()
