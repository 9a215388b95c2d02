"""Which requests of a crawl are made: Scrapy's fingerprint says what is the same request."""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import DropItem, IgnoreRequest
from scrapy.http import Response
from scrapy.utils.request import RequestFingerprinter

from pgsimhash import connect
from pgsimhash.pages.records import StoredPage
from pgsimhash.scrapy import _InFlight
from tests.database import run_sql
from tests.forks import Run

ADDON = {"ADDONS": {"pgsimhash.scrapy.Addon": 500}}
PIPELINE = {"ITEM_PIPELINES": {"pgsimhash.scrapy.PgsimhashPipeline": 300}}


class SiteFingerprinter(RequestFingerprinter):
    """Ignores the session in a URL; the language, which a header says, is another page."""

    def fingerprint(self, request: Request) -> bytes:
        plain = request.replace(url=request.url.partition("?session=")[0])
        return super().fingerprint(plain) + (request.headers.get("X-Language") or b"")


FINGERPRINTER = {"REQUEST_FINGERPRINTER_CLASS": "tests.test_scrapy_requests.SiteFingerprinter"}


def story(seed: str) -> str:
    words = " ".join(f"{seed}{number} says{number * 7 % 31}" for number in range(60))
    return f"<html><body><main><p>{words}</p></main></body></html>"


Answer = Callable[[int, Message], tuple[int, dict[str, str], str]]
"""Of the number of requests so far and the headers: status, headers and body."""


class Site(ThreadingHTTPServer):
    """Answers by ``answers``, or with the story of a path; ``asked`` has the requests."""

    daemon_threads = True

    def __init__(self, run: Run) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.run = run
        self.asked: list[str] = []
        self.answers: dict[str, Answer] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def moved(self, path: str, target: str, status: int = 301) -> None:
        self.answers[path] = lambda *_: (status, {"Location": target}, "")

    def crawl(self, dsn: str, *requests: str | dict[str, Any], **settings: Any) -> "Crawl":
        self.asked.clear()
        made = [{"url": one} if isinstance(one, str) else one for one in requests]
        settings = {"PGSIMHASH_DSN": dsn, "REQUESTS": json.dumps(made), **ADDON, **settings}
        return Crawl(self, settings)


class Handler(BaseHTTPRequestHandler):
    server: Site
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        name = " ".join(filter(None, ["" if self.command == "GET" else self.command, self.path]))
        self.server.asked.append(f"{name} {form}".strip())
        answer = self.server.answers.get(self.path)
        times = sum(one.endswith(self.path) for one in self.server.asked)
        content = (
            (200, {}, story(self.path + form)) if answer is None else answer(times, self.headers)
        )
        status, headers, body = content
        self.send_response(status)
        for header, value in {"Content-Type": "text/html", **headers}.items():
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status != 304:
            self.wfile.write(body.encode())

    do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815

    def log_message(self, *parts: object) -> None:
        pass


class Crawl:
    """A crawl: what the site was asked for after the start page, the items and the counters."""

    def __init__(self, site: Site, settings: dict[str, Any]) -> None:
        done = site.run("tests.crawl", f"{site.url}/", json.dumps(settings))
        told = json.loads(done.stdout)
        self.asked = sorted(one for one in site.asked if one != "/")
        self.items: list[dict[str, Any]] = told["items"]
        self.paths = sorted(item["url"].removeprefix(site.url) for item in self.items)
        self.counted = {
            name.removeprefix("pgsimhash/"): count
            for name, count in told["stats"].items()
            if name.startswith("pgsimhash/")
        }
        self.log = done.stderr


@pytest.fixture
def site(crawls: Run) -> Iterator[Site]:
    with Site(crawls) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def form(page: int) -> dict[str, Any]:
    return {"url": "/search", "method": "POST", "body": f"page={page}"}


def test_a_request_that_is_not_for_the_page_at_its_url_is_made(site: Site, dsn: str) -> None:
    others = [
        *map(form, range(3)), {"url": "/search", "method": "PUT", "body": "x"},
        {"url": "/search", "method": "HEAD"}, {"url": "/search", "body": "a query"},
    ]  # fmt: skip
    for crawl in range(2):
        made = site.crawl(dsn, "/search", *others)
        expected = ["HEAD /search", *(f"POST /search page={n}" for n in range(3)), "PUT /search x"]
        expected += ["/search a query", *([] if crawl else ["/search"])]
        assert made.asked == sorted(expected)
        assert made.counted.get("skipped", 0) == crawl
        # Their answers are not versions of the page, and all their items pass.
        assert made.paths == ["/search"] * len(made.asked)
    assert run_sql(dsn, "SELECT count(*) FROM pgsimhash.pages WHERE url LIKE '%search'") == [(1,)]
    assert "HEAD /search" in site.crawl(dsn, {"url": "/search", "method": "HEAD"}).asked


def test_headers_and_fragments_are_not_part_of_a_page(site: Site, dsn: str) -> None:
    page = {"url": "/a?x=1&y=2#top", "headers": {"X-Language": "de"}, "cookies": {"c": "1"}}
    assert site.crawl(dsn, page, "/b#comments").asked == ["/a?x=1&y=2", "/b"]
    # Nor is the order of parameters.
    again = ["/a?y=2&x=1", "/a?x=1&y=2#end", "/b", "/b#other"]
    assert site.crawl(dsn, *again).asked == []
    with connect(dsn) as store:
        assert not store.should_fetch(f"{site.url}/b")
    assert site.crawl(dsn, "/a?y=3&x=1").asked == ["/a?y=3&x=1"]
    assert site.crawl(dsn, "/a?x=1&y=3", "/c?z=1&a=2").asked == ["/c?z=1&a=2"]


def test_the_fingerprinter_of_a_project_decides(site: Site, dsn: str) -> None:
    german = {"url": "/a", "headers": {"X-Language": "de"}}
    made = site.crawl(dsn, "/a?session=1", "/a?session=2", german, **FINGERPRINTER)
    assert (len(made.asked), "/a" in made.asked) == (2, True)
    again = site.crawl(dsn, "/a?session=3", "/a", german, **FINGERPRINTER)
    assert (again.asked, again.counted["skipped"]) == (["/a"], 1)


def test_what_this_crawl_requested_it_requests_again(site: Site, dsn: str) -> None:
    site.answers["/half"] = lambda times, _: (200, {}, story("incomplete" if times == 1 else "all"))
    site.answers["/busy"] = lambda times, _: (503 if times == 1 else 200, {}, story("busy"))
    twice = {"url": "/twice", "dont_filter": True}
    made = site.crawl(dsn, "/half", "/busy", twice, twice, "/half", "/busy")
    assert made.asked == ["/busy", "/busy", "/half", "/half", "/twice", "/twice"]
    # The same page gets the same verdict twice.
    assert made.paths == ["/busy", "/half", "/twice", "/twice"]
    assert site.crawl(dsn, "/half", "/busy", twice, twice).asked == []


def test_a_retry_of_the_same_page_has_its_verdict(site: Site, dsn: str) -> None:
    body = story("incomplete and all")
    site.answers["/same"] = lambda times, _: (
        200,
        {},
        body.replace("incomplete", "") if times > 1 else f"<!-- incomplete -->{story(' and all')}",
    )
    made = site.crawl(dsn, "/same")
    assert (made.asked, made.paths) == (["/same", "/same"], ["/same"])


@pytest.mark.parametrize("status", [301, 302])
def test_a_url_that_redirects_is_known_as_its_page(site: Site, dsn: str, status: int) -> None:
    site.moved("/old", "/older", status)
    site.moved("/older", "/new#top", status)
    site.moved("/late", "/new", status)
    assert site.crawl(dsn, "/old").asked == ["/new", "/old", "/older"]
    assert site.crawl(dsn, "/old", "/older", "/new").asked == []
    # Also one whose page is known, and not fetched, when it redirects first.
    assert site.crawl(dsn, "/late", "/old").asked == ["/late"]
    assert site.crawl(dsn, "/late", "/old").asked == []
    urls = [url for (url,) in run_sql(dsn, "SELECT url FROM pgsimhash.pages")]
    assert sorted(urls) == [f"{site.url}/", f"{site.url}/new"]
    with connect(dsn) as store:
        assert not store.should_fetch(f"{site.url}/old")
        store.delete_page(f"{site.url}/new")
        assert store.should_fetch(f"{site.url}/old")


def test_a_redirect_to_a_page_of_the_same_crawl_is_known(site: Site, dsn: str) -> None:
    site.moved("/old", "/a#top")
    assert site.crawl(dsn, "/a", "/old").asked == ["/a", "/old"]
    assert site.crawl(dsn, "/a", "/old").asked == []


def test_where_a_form_leads_is_requested_in_each_crawl(site: Site, dsn: str) -> None:
    site.moved("/search", "/found", 303)
    site.moved("/found", "/home", 302)
    for _ in range(2):
        assert site.crawl(dsn, form(1)).asked == ["/found", "/home", "POST /search page=1"]
    assert site.crawl(dsn, "/home").asked == []


def test_a_link_with_the_meta_of_the_start_page_is_no_start_request(site: Site, dsn: str) -> None:
    link = {"url": "/a", "meta": {"is_start_request": True}}
    assert [site.crawl(dsn, link).asked for _ in range(2)] == [["/a"], []]


def test_only_a_redirect_of_the_page_itself_counts(site: Site, dsn: str) -> None:
    site.answers["/search"] = lambda times, _: (303, {"Location": "/results"}, "")
    site.moved("/circle", "/circle")
    copied = {"url": "/other", "meta": {"redirect_urls": [f"{site.url}/gone", f"{site.url}/a"]}}
    made = site.crawl(dsn, form(1), "/circle", "/a", copied)
    assert {"/results", "/other", "/a"} <= {*made.paths}
    with connect(dsn) as store:
        for path in ("/search", "/circle", "/gone"):
            assert store.should_fetch(site.url + path)
    assert run_sql(dsn, "SELECT count(*) FROM pgsimhash.redirects") == [(0,)]


def test_each_item_of_a_kept_page_passes(site: Site, dsn: str) -> None:
    for action in ("drop", "tag"):
        settings = {**PIPELINE, "LATER": 1, "PGSIMHASH_ACTION": action}
        settings["PGSIMHASH_COLLECTION"] = action
        site.answers["/copy"] = lambda *_: (200, {}, story("/a"))
        made = site.crawl(dsn, "/a", "/b", **settings)
        assert made.paths == ["/a", "/a", "/b", "/b"]
        left = site.crawl(dsn, "/copy", {"url": "/b", "meta": {"pgsimhash": False}}, **settings)
        if action == "drop":
            assert (left.items, left.counted["dropped"]) == ([], 4)
        else:
            tags = [(item["pgsimhash"]["kind"], item["pgsimhash"]["url"]) for item in left.items]
            assert sorted(tags) == [
                *[("duplicate", f"{site.url}/copy")] * 2, *[("unchanged", f"{site.url}/b")] * 2,
            ]  # fmt: skip
            assert {item["pgsimhash"]["kind"] for item in made.items} == {"new"}


def test_files_and_robots_are_not_pages(site: Site, dsn: str) -> None:
    site.moved("/robots.txt", "/a")
    for _ in range(2):
        made = site.crawl(dsn, "/a", ROBOTSTXT_OBEY=True)
        assert "/robots.txt" in made.asked
    assert run_sql(dsn, "SELECT count(*) FROM pgsimhash.redirects") == [(0,)]


def make_due(dsn: str) -> datetime:
    """All known pages are fetched again; return the present time."""
    with connect(dsn) as store:
        store.set_policy("*", refetch_after=timedelta(microseconds=1))
    return datetime.now(UTC)


def stored(dsn: str, url: str) -> StoredPage:
    with connect(dsn) as store:
        page = store.get(url)
    assert page is not None
    return page


def etagged(site: Site, path: str, etag: str) -> None:
    """Answer 304 to those who know the version, and 503 to the first who asks so."""
    refused: list[int] = []
    own = {"ETag": etag, "X-Robots-Tag": "noindex"}

    def answer(times: int, headers: Message) -> tuple[int, dict[str, str], str]:
        sent = headers["If-None-Match"]
        site.asked[-1] += f" {sent}" if sent else ""
        if sent == etag and not refused:
            refused.append(1)
            return 503, {}, ""
        return (304, {}, "") if sent == etag else (200, own, story(path + etag))

    site.answers[path] = answer


CONDITIONAL = {"PGSIMHASH_CONDITIONAL": True, "CONCURRENT_REQUESTS": 1}


def test_conditional_requests_are_made_for_due_pages(site: Site, dsn: str, tmp_path: Path) -> None:
    etagged(site, "/a", '"1"')
    site.moved("/old", "/b")
    # Nothing is sent without the setting, nor with Scrapy's cache, which sends its own.
    cache = {**CONDITIONAL, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    for settings in (CONDITIONAL, {}, cache):
        begun = make_due(dsn)
        assert site.crawl(dsn, "/a", **settings).asked == ["/a"]
    made = site.crawl(dsn, "/a", "/old", **CONDITIONAL)
    assert made.asked == ['/a "1"', '/a "1"', "/b", "/old"]
    assert (made.paths, made.counted["unchanged"]) == (["/b"], 2)  # the start page too
    assert stored(dsn, f"{site.url}/a").seen_at > begun
    assert stored(dsn, f"{site.url}/a").noindex
    # A changed page comes whole; the headers of a caller are left alone.
    etagged(site, "/a", '"2"')
    made = site.crawl(dsn, "/a", **CONDITIONAL)
    assert (made.asked, made.paths) == (['/a "1"'], ["/a"])
    own = {"url": "/a", "headers": {"If-None-Match": '"2"'}}
    begun = make_due(dsn)
    made = site.crawl(dsn, own, HTTPERROR_ALLOWED_CODES=[304])
    assert (made.asked, made.paths) == (['/a "2"'] * 2, ["/a"])
    assert stored(dsn, f"{site.url}/a").seen_at > begun


def test_pages_that_are_gone_are_marked(site: Site, dsn: str) -> None:
    site.crawl(dsn, "/a", "/b", "/c")
    for path, status in (("/a", 404), ("/b", 410), ("/c", 500)):
        site.answers[path] = lambda *_, status=status: (status, {}, "")
    make_due(dsn)
    made = site.crawl(dsn, "/a", "/b", "/c", "/d", "/robots.txt", form(1), RETRY_ENABLED=False)
    assert made.counted["gone"] == 2
    are_gone = [stored(dsn, site.url + path).gone_at is not None for path in ("/a", "/b", "/c")]
    assert are_gone == [True, True, False]
    site.answers.clear()
    assert site.crawl(dsn, "/a").asked == ["/a"]
    assert stored(dsn, f"{site.url}/a").gone_at is None


def test_selectors_of_policies_settings_and_requests_cut_pages(site: Site, dsn: str) -> None:
    def missing(crawl: Crawl) -> dict[str, bool]:
        tags = {item["url"].removeprefix(site.url): item["tag"] for item in crawl.items}
        return {path: tag["content_missing"] for path, tag in tags.items()}

    with connect(dsn) as store:
        store.set_policy("127.0.0.1", content="#none")
    chosen = {"url": "/2", "meta": {"pgsimhash_content": "p"}}
    assert missing(site.crawl(dsn, "/1", chosen)) == {"/1": True, "/2": False}
    set_by = {"PGSIMHASH_MATCH": {"content": "p"}}
    assert missing(site.crawl(dsn, "/3", chosen | {"url": "/4"}, **set_by)) == {
        "/3": False, "/4": False
    }  # fmt: skip


def ignore_sid(dsn: str, every: int = 2**31 - 1) -> None:
    with connect(dsn) as store:
        store.set_policy("127.0.0.1", ignore_parameters="sid", sample_every=every)


@pytest.mark.parametrize("pipeline", [False, True])
def test_many_urls_of_one_address_are_one_request(site: Site, dsn: str, pipeline: bool) -> None:
    ignore_sid(dsn)
    urls = [f"/story?sid={n}" for n in range(12)]
    for url in urls:
        site.answers[url] = lambda *_: (200, {}, story("one"))
    settings: dict[str, Any] = PIPELINE if pipeline else {}
    made = site.crawl(dsn, *urls, "/story?id=2&sid=1", **settings)
    assert len(made.asked) == 2
    assert "/story?id=2&sid=1" in made.asked
    assert made.counted["skipped"] == 11
    assert site.crawl(dsn, *urls, **settings).asked == []
    ignore_sid(dsn, every=1)
    site.answers[urls[0]] = site.answers[urls[1]] = lambda *_: (200, {}, story("other"))
    again = site.crawl(dsn, *urls, **settings)
    assert len(again.asked) == 11
    assert again.counted["address_known"] == 1


@pytest.mark.parametrize("status", [404, 500, 200])
@pytest.mark.parametrize("requests", [1, 8])
def test_another_url_is_requested_after_a_failure(
    site: Site, dsn: str, status: int, requests: int
) -> None:
    ignore_sid(dsn)
    urls = [f"/story?sid={n}" for n in range(6)]
    failed: list[int] = []

    def answer(*_: object) -> tuple[int, dict[str, str], str]:
        if failed:
            return 200, {}, story("one")
        failed.append(status)
        # A page without text is not stored either.
        return status, {}, "<p>Busy."

    site.answers |= dict.fromkeys(urls, answer)
    made = site.crawl(dsn, *urls, CONCURRENT_REQUESTS=requests, RETRY_ENABLED=False)
    assert len(made.asked) == 2
    assert made.items[-1]["tag"]["kind"] == "new"
    assert made.counted["skipped"] == 4


def test_a_redirect_within_an_address_is_followed(site: Site, dsn: str) -> None:
    ignore_sid(dsn)
    site.moved("/story", "/story?sid=1", 302)
    made = site.crawl(dsn, "/story")
    assert made.asked == ["/story", "/story?sid=1"]
    assert site.crawl(dsn, "/story", "/story?sid=2").asked == []


def test_a_redirect_to_a_known_page_answers_for_its_address(site: Site, dsn: str) -> None:
    ignore_sid(dsn)
    site.crawl(dsn, "/page")
    shorts = [f"/short?sid={n}" for n in range(4)]
    for short in shorts:
        site.moved(short, "/page", 302)
    made = site.crawl(dsn, *shorts)
    assert (len(made.asked), made.counted["skipped"]) == (1, 4)


def test_a_redirect_that_fails_frees_both_addresses(site: Site, dsn: str) -> None:
    ignore_sid(dsn)
    failed: list[int] = []

    def answer(*_: object) -> tuple[int, dict[str, str], str]:
        failed.append(1)
        return 200, {}, "<p>Busy." if len(failed) == 1 else story("one")

    shorts = [f"/short?sid={n}" for n in range(4)]
    for short in shorts:
        site.moved(short, short.replace("short", "story"), 302)
        site.answers[short.replace("short", "story")] = answer
    made = site.crawl(dsn, *shorts, RETRY_ENABLED=False)
    assert made.items[-1]["tag"]["kind"] == "new"
    assert len(made.asked) == 4


class Refusal:
    """A downloader middleware that refuses the first story."""

    is_done = False

    def process_response(self, request: Request, response: Response) -> Response:
        if "story" in response.url and not self.is_done:
            self.is_done = True
            raise IgnoreRequest
        return response


def test_a_page_that_never_arrives_frees_its_address(site: Site, dsn: str) -> None:
    ignore_sid(dsn)
    urls = [f"/story?sid={n}" for n in range(4)]
    for url in urls:
        site.answers[url] = lambda *_: (200, {}, story("one"))
        # Scrapy drops a redirect to what it requested before; that page answers.
        site.moved(url.replace("story", "short"), "/page", 302)
    shorts = [{"url": url.replace("story", "short"), "priority": -1} for url in urls]
    refusal = {"DOWNLOADER_MIDDLEWARES": {"tests.test_scrapy_requests.Refusal": 10}}
    made = site.crawl(dsn, "/page", *urls, *shorts, CONCURRENT_REQUESTS=1, **refusal)
    assert [path.partition("?")[0] for path in made.paths] == ["/page", "/story"]
    assert (len(made.asked), made.counted["skipped"]) == (4, 5)


@pytest.mark.parametrize(
    "answer", ["no item", "no page", "dropped", "another URL", "error", "broken"]
)
def test_a_response_without_a_stored_page_frees_its_address(
    site: Site, dsn: str, answer: str
) -> None:
    """Other URLs of it are requested as soon as the response is done with."""
    ignore_sid(dsn)
    urls = [f"/story?sid={n}" for n in range(4)]
    first = "/story?sid=first"
    others = [{"url": f"/{n}", "priority": -1} for n in range(5)]
    site.answers |= dict.fromkeys(urls, lambda *_: (200, {}, story("one")))
    site.answers[first] = lambda *_: (200, {}, story(f"one {answer}"))
    pipelines: dict[str, Any] = {"tests.test_scrapy_requests.Changes": 100}
    pipelines |= PIPELINE["ITEM_PIPELINES"]
    requests: list[Any] = [{"url": first, "priority": 1}, *urls, *others]
    site.crawl(dsn, *requests, CONCURRENT_REQUESTS=1, ITEM_PIPELINES=pipelines)
    asked = [path.partition("?")[0] for path in site.asked]
    assert asked.count("/story") == 2
    assert "/story" in asked[2:5]


class Changes:
    """An item pipeline before ours, in which some items lose their page."""

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        if b"no page" in item["html"]:
            del item["html"]
        elif b"dropped" in item["html"]:
            raise DropItem("no story")
        elif b"another URL" in item["html"]:
            item["url"] += "&print=1"
        elif b"error" in item["html"]:
            raise ValueError
        return item


class Address(str):
    """An address that counts how often one is looked up."""

    __slots__ = ()
    looked_up = 0

    def __hash__(self) -> int:
        Address.looked_up += 1
        return super().__hash__()


def test_a_request_is_not_compared_with_all_others_without_a_page() -> None:
    in_flight = _InFlight()
    for n in range(1000):
        assert in_flight.take(Address(f"https://a.example/{n}"), Request(f"https://a.example/{n}"))
    assert not in_flight.take(Address("https://a.example/0"), Request("https://a.example/0?sid=1"))
    assert Address.looked_up < 10_000
    assert len(in_flight.release(["https://a.example/0"], is_stored=False)) == 1
    assert in_flight.take(Address("https://a.example/0"), Request("https://a.example/0?sid=2"))


class Guard:
    """A spider middleware that refuses all stories."""

    def process_spider_input(self, response: Response) -> None:
        if "story" in response.url:
            raise IgnoreRequest


@pytest.mark.parametrize("order", [543, 950])
def test_a_page_that_another_middleware_refuses_is_not_known(
    site: Site, dsn: str, order: int
) -> None:
    guard = {"SPIDER_MIDDLEWARES": {"tests.test_scrapy_requests.Guard": order}}
    assert site.crawl(dsn, "/story", "/a", **guard).paths == ["/a"]
    assert site.crawl(dsn, "/story", "/a").paths == ["/story"]
