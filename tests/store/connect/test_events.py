"""Events and log records: ``on_event`` takes one for each batch and each lookup."""

import asyncio
import logging
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from pgsimhash import ArgumentError, NotFoundError, Store, connect, connect_async
from pgsimhash.log import logger
from pgsimhash.pages.records import Event
from pgsimhash.store import batches


def test_each_batch_is_an_event(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_SIMHASHES", 20)
    events: list[Event] = []
    with connect(dsn, collection="news", create=True, on_event=events.append) as store:
        pairs = [(f"https://a.example/{n}", n * 0x1234567 % 2**64) for n in range(30)]
        pairs += [("https://b.example/", 0), ("none", 1)]
        verdicts = [verdict.kind for verdict in store.add_pages(pairs)]
        list(store.decide_many([("https://a.example/", "<p>Short.")]))
        (run,) = store.runs()
    first, second, decided = events
    assert (first.name, first.collection, first.count) == ("ingest", "news", 20)
    assert (second.name, second.count, second.run_id) == ("ingest", 12, run.run_id)
    assert first.run_id == run.run_id
    for name in set(verdicts):
        total = first.results.get(name, 0) + second.results.get(name, 0)
        assert total == verdicts.count(name)
    assert second.results["failed"] == 1
    assert (decided.name, decided.results, decided.run_id) == ("decide", {"too_short": 1}, None)
    assert all(event.seconds > 0 and event.error is None for event in events)


def test_each_lookup_is_an_event(dsn: str) -> None:
    events: list[Event] = []
    with connect(dsn, on_event=events.append) as store:
        store.add_page("https://a.example/", 7)
        events.clear()
        store.find(7)
        store.has_near(2**64 - 1)
        store.get("https://a.example/")
        store.should_fetch("https://a.example/")
        store.should_fetch("https://b.example/")
        store.should_fetch("https://a.example/", older_than=timedelta(0))
        assert store.request_headers("https://b.example/") == {}
        assert store.request_headers("https://a.example/") is None
        store.find_many(np.array([7, 6, ~7 % 2**64], dtype=np.uint64))
        store.find_many(distance=3, simhashes=[1, 2, 3])
        store.find_many(distance=3, simhashes=[])
        store.near_pages(7)
        store.near_pages(verify=False, page="https://a.example/")
        with pytest.raises(NotFoundError):
            store.near_pages("https://none.example/")
        with pytest.raises(ArgumentError):
            store.find(7, limit=0)
        # Neither a batch nor a lookup.
        store.add_redirects({"https://c.example/": "https://a.example/"})
        store.change_settings(keep_markdown=True)
        store.status()
    told = [(event.name, event.count, dict(event.results), event.error) for event in events]
    assert told == [
        ("find", 1, {"found": 1}, None),
        ("has_near", 1, {"found": 0}, None),
        ("get", 1, {"found": 1}, None),
        ("should_fetch", 1, {"found": 1}, None),
        ("should_fetch", 1, {"found": 0}, None),
        ("should_fetch", 1, {"found": 0}, None),
        ("request_headers", 1, {"found": 0}, None),
        ("request_headers", 1, {"found": 1}, None),
        ("find_many", 3, {"found": 2}, None),
        ("find_many", 3, {"found": 3}, None),
        ("find_many", 0, {"found": 0}, None),
        ("near_pages", 1, {"found": 1}, None),
        ("near_pages", 1, {"found": 0}, None),
        ("near_pages", 1, {}, "unknown_page"),
    ]


def test_each_lookup_of_several_tasks_is_an_event(dsn: str) -> None:
    events: list[Event] = []

    async def main() -> None:
        async with await connect_async(dsn, on_event=events.append) as store:
            await store.add_page("https://a.example/", 7)
            await asyncio.gather(*(store.find(7) for _ in range(20)))
            with pytest.raises(ArgumentError):
                await store.find(7, limit=0)

    asyncio.run(main())
    assert events[0].name == "ingest"
    finds = events[1:]
    assert {event.name for event in finds} == {"find"}
    assert [(event.count, event.results["found"]) for event in finds] == [(1, 1)] * 20


def test_lookups_of_files_are_not_events(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>Short.")
    events: list[Event] = []
    with connect(dsn, on_event=events.append) as store:
        list(store.ingest_files([tmp_path]))
    assert [event.name for event in events] == ["ingest"]


def test_an_exception_of_the_function_is_logged(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: Event) -> None:
        raise RuntimeError("no metrics today")

    with connect(dsn, collection="news", create=True, on_event=fail) as store:
        assert store.add_page("https://a.example/", 7).kind == "new"
    (logged,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "on_event" in logged.message
    assert "no metrics today" in caplog.text
    assert vars(logged)["collection"] == "news"


def test_a_log_record_of_each_batch_names_its_collection_and_run(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    run_id = store.start_run("test")
    with caplog.at_level(logging.DEBUG, logger="pgsimhash"):
        list(store.add_pages([("https://a.example/", 1), ("none", 2)]))
        list(store.decide_many([("https://a.example/", "<p>Short.")]))
        logger.warning("about no collection")
    fields = ("name", "levelname", "message", "collection", "run_id")
    assert [tuple(vars(one)[field] for field in fields) for one in caplog.records] == [
        ("pgsimhash", "DEBUG", f"{what} 'default', 1 without a simhash", "default", run)
        # A dry run belongs to no run.
        for what, run in (("1 pages stored in", run_id), ("0 pages compared with", None))
    ] + [("pgsimhash", "WARNING", "about no collection", None, None)]
