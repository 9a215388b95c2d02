"""Spans and a metric of a store for OpenTelemetry: ``pip install opentelemetry-sdk``.

The attributes are those of the stable semantic conventions for databases. A service configures its
exporter instead of the printing ones.
"""

import os
import time
from pathlib import Path

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

import pgsimhash
from pgsimhash.pages.records import Event
from pgsimhash.sources import read_pages

tracer = trace.get_tracer("pgsimhash")
results = metrics.get_meter("pgsimhash").create_counter(
    "pgsimhash.results", description="Pages by verdict, and what was found."
)


def record(event: Event) -> None:
    """Create a span for an event, below the current one, and count its results."""
    attributes = {
        "db.system.name": "postgresql",
        "db.operation.name": event.name,
        "pgsimhash.collection": event.collection,
    }
    end = time.time_ns()
    span = tracer.start_span(
        f"pgsimhash {event.name}",
        kind=SpanKind.CLIENT,
        start_time=end - int(event.seconds * 1e9),
        attributes={**attributes, "pgsimhash.count": event.count},
    )
    if event.run_id is not None:
        span.set_attribute("pgsimhash.run_id", event.run_id)
    if event.error is not None:
        span.set_attribute("error.type", event.error)
        span.set_status(Status(StatusCode.ERROR))
    span.end(end)
    for result, number in event.results.items():
        results.add(number, {**attributes, "pgsimhash.result": result})


def main() -> None:
    """Ingest the sample pages and look one up; print the spans and the metric."""
    spans = TracerProvider()
    spans.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
    trace.set_tracer_provider(spans)
    reader = PeriodicExportingMetricReader(ConsoleMetricExporter())
    meters = MeterProvider([reader])
    metrics.set_meter_provider(meters)
    pages = Path(__file__).parent / "pages"
    with (
        tracer.start_as_current_span("job"),
        pgsimhash.connect(os.environ["PGSIMHASH_DSN"], on_event=record) as store,
    ):
        verdicts = list(store.ingest_many(read_pages([pages])))
        store.find(next(v.simhash for v in verdicts if v.simhash is not None))
    meters.shutdown()


if __name__ == "__main__":
    main()
