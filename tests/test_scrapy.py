"""Real crawls of a local site: pages are dropped or tagged, counted, and never lost."""

import asyncio
import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest
import scrapy
from psycopg import conninfo, sql
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem
from scrapy.statscollectors import MemoryStatsCollector

from pgsimhash import ArgumentError, PgsimhashError, connect
from pgsimhash.schemes import register_scheme
from pgsimhash.scrapy import PgsimhashPipeline
from tests.conftest import ROOT
from tests.crawl import PagesSpider
from tests.database import run_sql
from tests.forks import Run
from tests.reading.hanging import HANGING
from tests.reading.test_workers import readers
from tests.refusals import because
from tests.store.content import transactions

PAGES = {path.name: path.read_bytes() for path in (ROOT / "examples" / "pages").glob("*.html")}
MIRRORS = ("a", "b", "c")
LINKS = [f"/{mirror}/{name}" for mirror in MIRRORS for name in sorted(PAGES)]
COUNT = len(LINKS)
SHORT = len(MIRRORS)  # not-found.html says too little
FRONT = "".join(f'<a class="page" href="{link}"></a>' for link in ["/data.json", "/gone", *LINKS])
PIPELINE = {"ITEM_PIPELINES": {"pgsimhash.scrapy.PgsimhashPipeline": 300}}
ADDON = {"ADDONS": {"pgsimhash.scrapy.Addon": 500}}
AT_ONCE = {"PGSIMHASH_RETRY_SECONDS": 0}
MIDDLEWARE = {"SPIDER_MIDDLEWARES": {"pgsimhash.scrapy.PgsimhashSpiderMiddleware": 1000}}


class Site(ThreadingHTTPServer):
    """The front page, a JSON page, a missing page, and the sample pages three times."""

    daemon_threads = True
    met: Callable[[int], None] = staticmethod(lambda number: None)
    """Receives the number of requested pages before one is answered."""

    def __init__(self, folder: Path, run: Run) -> None:
        super().__init__(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        self.run = run
        for mirror in MIRRORS:
            shutil.copytree(ROOT / "examples" / "pages", folder / mirror)
        self.front = folder / "index.html"
        self.front.write_text(FRONT)
        (folder / "data.json").write_text("{}")
        self.asked = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(SimpleHTTPRequestHandler):
    server: Site
    protocol_version = "HTTP/1.1"
    error_message_format = "<p>"

    def do_GET(self) -> None:
        if self.path in LINKS:
            with self.server.lock:
                self.server.asked += 1
                self.server.met(self.server.asked)
        super().do_GET()

    def log_message(self, *parts: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path, crawls: Run) -> Iterator[Site]:
    with Site(tmp_path, crawls) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Crawl:
    """The result of a crawl: its counters without their prefix, its items, and its log."""

    def __init__(self, site: Site, dsn: str, settings: dict[str, Any]) -> None:
        settings = {"PGSIMHASH_DSN": dsn, "HTTPERROR_ALLOWED_CODES": [404], **settings}
        done = site.run("tests.crawl", site.url, json.dumps(settings))
        told = json.loads(done.stdout)
        self.log: str = done.stderr
        self.items: list[dict[str, Any]] = told["items"]
        self.all: dict[str, Any] = told["stats"]
        own = [name for name in self.all if name.startswith("pgsimhash/")]
        self.counted = Counter({name.partition("/")[2]: self.all[name] for name in own})


def stored(dsn: str) -> dict[str, str | None]:
    """The URL of each page in the store, and its original."""
    query = (
        "SELECT p.url, o.url FROM pgsimhash.pages AS p "
        "LEFT JOIN pgsimhash.pages AS o ON o.page_id = p.duplicate_of"
    )
    return dict(run_sql(dsn, query))


def verdicts(crawl: Crawl) -> int:
    beside = (
        "dropped",
        "no_page",
        "skipped",
        "unanswered",
        "unanswered_requests",
        "untagged",
        "unknown",
    )
    return sum(count for name, count in crawl.counted.items() if name not in beside)


def test_a_pipeline_drops_known_pages(site: Site, dsn: str) -> None:
    crawl = Crawl(site, dsn, PIPELINE)
    assert crawl.log == ""
    # The front page and the error pages have too little text.
    assert crawl.counted["too_short"] == SHORT + 2
    assert verdicts(crawl) == COUNT + 2
    assert crawl.counted["no_page"] == 1
    kept = stored(dsn)
    assert len(kept) == COUNT - SHORT
    assert crawl.counted["new"] == sum(original is None for original in kept.values()) == 8
    assert crawl.counted["dropped"] == crawl.all["item_dropped_count"] == COUNT - SHORT - 8
    assert len(crawl.items) == 8 + SHORT + 3
    new = {item["url"] for item in crawl.items} & {*kept}
    assert new == {url for url, original in kept.items() if original is None}
    # A second crawl drops all pages of the first.
    crawl = Crawl(site, dsn, PIPELINE)
    assert crawl.counted["unchanged"] == crawl.counted["dropped"] == COUNT - SHORT
    assert crawl.counted["new"] == 0
    assert len(crawl.items) == SHORT + 3
    with connect(dsn) as store:
        runs = [(run.label, run.unchanged) for run in store.runs()]
    assert runs == [("scrapy pages", COUNT - SHORT), ("scrapy pages", 0)]


def test_a_pipeline_tags_all_items(site: Site, dsn: str) -> None:
    crawl = Crawl(site, dsn, {**PIPELINE, "PGSIMHASH_ACTION": "tag", "PGSIMHASH_TAG": "said"})
    assert len(crawl.items) == COUNT + 3
    tags = {item["url"]: item["said"] for item in crawl.items if "said" in item}
    assert sum(tag["kind"] == "new" for tag in tags.values()) == crawl.counted["new"] == 8
    assert len(tags) == verdicts(crawl) == COUNT + 2
    assert crawl.counted["dropped"] == 0
    assert stored(dsn) == {url: tag["duplicate_of"] for url, tag in tags.items() if tag["simhash"]}


@pytest.mark.parametrize("setting", [{"LIST": True}, {"PGSIMHASH_ACTION": "tag"}])
def test_a_middleware_drops_or_tags(site: Site, dsn: str, setting: dict[str, Any]) -> None:
    crawl = Crawl(site, dsn, {**MIDDLEWARE, **setting})
    assert crawl.log == ""
    assert crawl.counted["new"] == 8
    known = 0 if "PGSIMHASH_ACTION" in setting else COUNT - SHORT - 8
    assert crawl.counted["dropped"] == known
    # JSON and missing pages are not pages.
    assert crawl.counted["no_page"] == 2
    assert len(crawl.items) == COUNT + 3 - known
    seen = Counter(item.get("seen") for item in crawl.items)
    if "LIST" not in setting:  # A list was made before the verdict.
        assert (seen["new"], seen["too_short"], seen[None]) == (8, SHORT + 1, 2)
    assert len(stored(dsn)) == COUNT - SHORT


def test_a_known_page_is_not_followed_without_the_setting(site: Site, dsn: str) -> None:
    site.front.write_text(f"<p>{' '.join(f'word{number}' for number in range(60))}</p>{FRONT}")
    assert Crawl(site, dsn, MIDDLEWARE).counted["new"] == 9
    again = Crawl(site, dsn, {**MIDDLEWARE, "PGSIMHASH_FOLLOW": False})
    assert (again.counted, again.items) == ({"unchanged": 1, "dropped": 1}, [])


def test_an_add_on_skips_requests_for_known_pages(site: Site, dsn: str) -> None:
    first = Crawl(site, dsn, ADDON)
    assert (first.log, first.counted["new"], first.counted["skipped"]) == ("", 8, 0)
    # The pages with too little text are not known.
    site.asked = 0
    again = Crawl(site, dsn, ADDON)
    assert again.counted["skipped"] == COUNT - SHORT
    assert (again.log, site.asked) == ("", SHORT)
    # One page is not asked about; all are due again.
    left = next(link for link in LINKS if "night-train.html" in link)
    one = Crawl(site, dsn, {**ADDON, "LEFT": left})
    assert one.counted["skipped"] == COUNT - SHORT - 1
    assert one.counted["no_page"] == again.counted["no_page"] + 1
    assert site.url + left[1:] in [item["url"] for item in one.items]
    with connect(dsn) as store:
        store.set_policy("*", refetch_after=timedelta(microseconds=1))
    assert Crawl(site, dsn, ADDON).counted["unchanged"] == COUNT - SHORT


def test_an_add_on_leaves_storing_to_the_pipeline_and_can_be_disabled(site: Site, dsn: str) -> None:
    assert Crawl(site, dsn, {**ADDON, **PIPELINE}).counted["dropped"] == COUNT - SHORT - 8
    assert Crawl(site, dsn, {**ADDON, **PIPELINE}).counted["skipped"] == COUNT - SHORT
    # Another class of the pipeline, and one that is disabled.
    for pipelines in (
        {"tests.test_scrapy.Own": 300},
        {next(iter(PIPELINE["ITEM_PIPELINES"])): None},
    ):
        run_sql(dsn, "DELETE FROM pgsimhash.pages")
        crawl = Crawl(site, dsn, {**ADDON, "ITEM_PIPELINES": pipelines})
        assert (crawl.log, crawl.counted["new"], crawl.counted["unchanged"]) == ("", 8, 0)
    for settings in (ADDON, PIPELINE, MIDDLEWARE):
        off = Crawl(site, dsn, {**settings, "PGSIMHASH_ENABLED": False})
        assert (off.log, off.counted, len(off.items)) == ("", {}, COUNT + 3)


def test_match_options_and_a_collection_are_settings(site: Site, dsn: str) -> None:
    settings = {"PGSIMHASH_COLLECTION": "crawl", "PGSIMHASH_MATCH": {"max_copies": 2}}
    crawl = Crawl(site, dsn, {**PIPELINE, **settings})
    known = stored(dsn)
    kept = [url for url in (item["url"] for item in crawl.items) if url in known]
    assert len(kept) > crawl.counted["new"] == 8
    with connect(dsn) as store:
        assert [one.name for one in store.collections() if one.pages] == ["crawl"]


@contextmanager
def database_lost(
    site: Site, server_dsn: str, dsn: str, moments: Container[int], *, comes_back: bool = False
) -> Iterator[None]:
    """Terminate all sessions at some requested pages, and refuse new ones unless it comes back."""
    name = str(conninfo.conninfo_to_dict(dsn)["dbname"])
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(server_dsn, autocommit=True) as connection:

        def lose(number: int) -> None:
            if number in moments:
                if not comes_back:
                    connection.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
                connection.execute(end, [name])

        site.met = lose
        yield
        connection.execute(allow.format(sql.Identifier(name), sql.SQL("true")))


@pytest.mark.parametrize("settings", [MIDDLEWARE, ADDON], ids=["middleware", "add-on"])
def test_a_lost_database(site: Site, server_dsn: str, dsn: str, settings: dict[str, Any]) -> None:
    with database_lost(site, server_dsn, dsn, [30]):
        crawl = Crawl(site, dsn, {**settings, **AT_ONCE})
    unanswered = crawl.counted["unanswered"]
    assert unanswered >= COUNT - 30 - SHORT
    assert verdicts(crawl) > 0
    assert crawl.log.count("no answer about http://127.0.0.1") == crawl.log.count("ERROR") == 1
    assert "Traceback" not in crawl.log
    assert site.asked == COUNT
    # Each page was decided about, or passed, and says so.
    assert verdicts(crawl) + unanswered + crawl.counted["no_page"] == COUNT + 3
    assert sum(item.get("seen") == "unanswered" for item in crawl.items) == unanswered
    assert (crawl.counted["unanswered_requests"] > 0) == (settings is ADDON)
    assert len(crawl.items) == COUNT + 3 - crawl.counted["dropped"]
    assert crawl.all["finish_reason"] == "finished"


@pytest.mark.parametrize("retries", [True, False])
def test_a_connection_lost_briefly(site: Site, server_dsn: str, dsn: str, retries: bool) -> None:
    """It costs no verdict, or, without retries, few until the store is asked again."""
    slow = {"CONCURRENT_REQUESTS": 2, "DOWNLOAD_DELAY": 0.03, "PAUSE_SECONDS": 0.6}
    settings = {} if retries else {**AT_ONCE, **slow}
    moments = range(5, COUNT, 10) if retries else [10]
    with database_lost(site, server_dsn, dsn, moments, comes_back=True):
        crawl = Crawl(site, dsn, {**PIPELINE, **settings})
    assert (crawl.counted["unanswered"] == 0) == retries
    assert crawl.counted["unanswered"] < COUNT - 10
    assert verdicts(crawl) + crawl.counted["unanswered"] == COUNT + 2
    tags = [item["pgsimhash"] for item in crawl.items if "pgsimhash" in item]
    assert len(tags) == crawl.counted["unanswered"]
    assert {tag["reason"] for tag in tags} <= {"connection_lost", "no_server"}
    with connect(dsn) as store:
        assert [run.label for run in store.runs()] == ["scrapy pages"]


def test_a_lost_database_may_end_the_crawl(site: Site, server_dsn: str, dsn: str) -> None:
    settings = {"PGSIMHASH_CLOSE_ON_ERROR": True, "CONCURRENT_REQUESTS": 2}
    with database_lost(site, server_dsn, dsn, [10]):
        crawl = Crawl(site, dsn, {**PIPELINE, **AT_ONCE, **settings})
    assert crawl.all["finish_reason"] == "pgsimhash_error"
    assert 10 <= site.asked < COUNT
    met = crawl.all["response_received_count"]
    assert len(crawl.items) == met - crawl.counted["dropped"]


@pytest.mark.parametrize(("settings", "told"), [
    ({"PGSIMHASH_DSN": "host=127.0.0.1 port=1"}, "port 1"),
    ({"PGSIMHASH_COLLECTION": "crawl", "PGSIMHASH_CREATE": False}, "'crawl' does not exist"),
    ({"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"}, "asyncio reactor"),
    # The downloader middleware has opened the store; the crawl must end all the same.
    ({**ADDON, "ITEM_PIPELINES": {"tests.test_scrapy.Unusable": 1}}, "no such pipeline"),
])  # fmt: skip
def test_invalid_crawl_settings(site: Site, dsn: str, settings: dict[str, Any], told: str) -> None:
    crawl = Crawl(site, dsn, {**PIPELINE, **settings})
    assert told in crawl.log
    assert crawl.items == []
    assert "response_received_count" not in crawl.all


class Unusable(PgsimhashPipeline):
    """A pipeline that cannot start."""

    def __init__(self, crawler: Crawler) -> None:
        raise ArgumentError("invalid_argument", "no such pipeline")


class Own(PgsimhashPipeline):
    """The pipeline of a project."""


def crawler_of(dsn: str, **settings: Any) -> Crawler:
    crawler = Crawler(PagesSpider, {"PGSIMHASH_DSN": dsn, **settings})
    crawler.stats = MemoryStatsCollector(crawler)
    return crawler


async def process(crawler: Crawler, items: list[Any]) -> list[Any]:
    """The results of a pipeline for concurrent items; None for a dropped one."""
    pipeline = PgsimhashPipeline.from_crawler(crawler)
    made = await asyncio.gather(*map(pipeline.process_item, items), return_exceptions=True)
    crawler.signals.send_catch_log(signals.spider_closed, spider=None, reason="")
    for one in made:
        if isinstance(one, BaseException) and not isinstance(one, DropItem):
            raise one
    return [None if isinstance(one, DropItem) else one for one in made]


@dataclass
class PageItem:
    url: str
    html: str | bytes
    pgsimhash: dict[str, Any] | None = None


class StrictItem(scrapy.Item):
    url = scrapy.Field()
    html = scrapy.Field()


def test_items_of_any_kind_are_looked_at(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    html, other = PAGES["tide-pools.html"], PAGES["night-train.html"]
    url = "https://example.com/"
    items: list[Any] = [
        PageItem(f"{url}a", html), {"url": f"{url}b", "html": html.decode()},
        StrictItem(url=f"{url}c", html=other), {"url": f"{url}d"}, {"url": f"{url}e", "html": None},
        {"url": "nowhere", "html": html}, {"url": 5, "html": html}, {"url": f"{url}f", "html": 5},
        object(),
    ]  # fmt: skip
    crawler = crawler_of(dsn, PGSIMHASH_ACTION="tag")
    made = asyncio.run(process(crawler, items))
    # No item is lost, even if it cannot have a tag or has no page.
    assert list(map(id, made)) == list(map(id, items))
    assert crawler.stats.get_stats() == {
        "pgsimhash/new": 2, "pgsimhash/duplicate": 1, "pgsimhash/failed": 3, "pgsimhash/no_page": 3,
        "pgsimhash/untagged": 1,
    }  # fmt: skip
    assert "StrictItem has no field 'pgsimhash'" in caplog.text
    assert items[0].pgsimhash["kind"] == "new"
    assert items[1]["pgsimhash"]["duplicate_of"] == f"{url}a"


def test_waiting_pages_are_stored_together(dsn: str) -> None:
    """One transaction for many items, not one for each."""
    html = PAGES["tide-pools.html"]
    pages = [{"url": f"https://example.com/{n}", "html": html} for n in range(99)]
    made = asyncio.run(process(crawler_of(dsn), pages))
    assert sum(one is not None for one in made) == 1
    assert 1 <= transactions(dsn) <= 9


def test_the_last_verdicts_are_remembered(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page has its verdict for its next item; a long crawl does not remember all pages."""
    monkeypatch.setattr("pgsimhash.scrapy.DECIDED_MAX", 1)
    one, other = (
        {"url": f"https://example.com/{name}", "html": PAGES[name]}
        for name in ("tide-pools.html", "night-train.html")
    )

    async def one_after_the_other() -> None:
        crawler = crawler_of(dsn)
        pipeline = PgsimhashPipeline.from_crawler(crawler)
        assert [await pipeline.process_item(item) for item in (one, one, other)] == [
            one,
            one,
            other,
        ]
        with pytest.raises(DropItem, match="unchanged"):
            await pipeline.process_item(one)
        crawler.signals.send_catch_log(signals.spider_closed, spider=None, reason="")

    asyncio.run(one_after_the_other())


def test_a_page_that_takes_too_long_passes(dsn: str) -> None:
    before = readers()
    text = "The harbour master keeps a ledger of every boat, its cargo and its temper. " * 3
    htmls = (text, "hang", text)
    pages = [{"url": f"https://example.com/{n}", "html": html} for n, html in enumerate(htmls)]
    crawler = crawler_of(dsn, PGSIMHASH_SCHEME=HANGING, PGSIMHASH_PAGE_SECONDS="0.5")
    made = asyncio.run(process(crawler, pages))
    assert made == [*pages[:2], None]
    assert crawler.stats is not None
    assert crawler.stats.get_value("pgsimhash/failed") == 1
    assert readers() == before


def test_a_scheme_that_no_process_can_use_is_refused(dsn: str) -> None:
    scheme = register_scheme(replace(HANGING, name="own-lambda", tokenize=lambda text: [text]))
    crawler = crawler_of(dsn, PGSIMHASH_SCHEME=scheme, PGSIMHASH_PAGE_SECONDS=9)
    with pytest.raises(ArgumentError, match="own-lambda"):
        asyncio.run(process(crawler, []))


INVALID: list[tuple[str, Any, str, str]] = [
    ("ACTION", "delete", "must be drop or tag, not 'delete'", "invalid_argument"),
    ("MATCH", {"distanse": 3}, "no option 'distanse'", "invalid_argument"),
    ("MATCH", {"distance": 40}, "from 0 to 12", "invalid_argument"),
    ("SCHEMA", "nowhere", "nowhere", "missing"), ("SCHEME", "mine-1", "mine-1", "unknown_scheme"),
    ("PAGE_SECONDS", 0, "from 0.001 to inf, not 0", "invalid_argument"),
    ("PAGE_MEMORY", "1 GB", "1 GB", "invalid_argument"),
]  # fmt: skip


def test_invalid_settings_are_refused(dsn: str) -> None:
    before = {*threading.enumerate()}
    for name, value, message, reason in INVALID:
        with pytest.raises(PgsimhashError, match=message, check=because(reason)):
            asyncio.run(process(crawler_of(dsn, **{f"PGSIMHASH_{name}": value}), []))
    assert {*threading.enumerate()} <= before
