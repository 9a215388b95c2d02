"""A Scrapy crawl in a separate process: python -m tests.crawl URL SETTINGS.

Prints the counters and the resulting items as JSON.
"""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import scrapy
from scrapy import signals
from scrapy.crawler import CrawlerProcess
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.http import HtmlResponse, Response

import pgsimhash.scrapy


class PagesSpider(scrapy.Spider):
    """Follows every link of the front page, and yields each page as an item."""

    name = "pages"
    url: str

    async def start(self) -> AsyncIterator[scrapy.Request]:
        yield scrapy.Request(self.url)

    def parse(self, response: Response) -> Iterator[Any]:
        tag = response.meta.get("pgsimhash")
        if isinstance(response, HtmlResponse):
            for link in response.css("a.page"):
                is_left = link.attrib["href"] == self.settings.get("LEFT")
                yield response.follow(link, meta={"pgsimhash": False} if is_left else None)
            yield {"url": response.url, "html": response.body, "seen": tag and tag["kind"]}
        else:
            yield {"url": response.url}


class RequestsSpider(scrapy.Spider):
    """Makes the requests of the setting REQUESTS after the start request.

    A page that is still incomplete is asked for again, and each page has two items, the second of
    a later callback.
    """

    name = "requests"
    url: str

    async def start(self) -> AsyncIterator[scrapy.Request]:
        yield scrapy.Request(self.url, self.follow)

    def follow(self, response: Response) -> Iterator[scrapy.Request]:
        for request in json.loads(self.settings["REQUESTS"]):
            yield response.follow(**request, callback=self.parse, errback=self.skip)

    def parse(self, response: Response) -> Iterator[Any]:
        if b"incomplete" in response.body:
            yield get_retry_request(cast(scrapy.Request, response.request), spider=self)
            return
        if b"no item" in response.body:
            return
        assert b"broken" not in response.body
        tag = response.meta.get("pgsimhash")
        item = {"url": response.url, "html": response.body, "tag": tag}
        yield {**item, "part": 1}
        if self.settings.get("LATER"):
            yield scrapy.Request(
                "data:,", self.later, dont_filter=True, cb_kwargs={"item": {**item, "part": 2}}
            )

    def later(self, response: Response, item: dict[str, Any]) -> Iterator[Any]:
        yield item

    def skip(self, failure: Any) -> None:
        pass


class ListSpider(PagesSpider):
    """The same with a callback that is not a generator."""

    name = "list"

    def parse(self, response: Response) -> list[Any]:  # type: ignore[override]
        return list(super().parse(response))


def main() -> None:
    url, settings = sys.argv[1], json.loads(sys.argv[2])
    items: list[dict[str, Any]] = []
    if seconds := settings.pop("PAUSE_SECONDS", None):
        vars(pgsimhash.scrapy)["PAUSE_SECONDS"] = seconds

    def keep(item: Any) -> None:
        items.append({key: value for key, value in item.items() if key != "html"})

    process = CrawlerProcess(
        {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, "ROBOTSTXT_OBEY": False, **settings}
    )
    spider: type[scrapy.Spider] = ListSpider if settings.get("LIST") else PagesSpider
    spider = RequestsSpider if "REQUESTS" in settings else spider
    crawler = process.create_crawler(spider)
    crawler.signals.connect(keep, signal=signals.item_scraped)
    process.crawl(crawler, url=url)
    process.start()
    stats = {key: value for key, value in crawler.stats.get_stats().items() if "time" not in key}
    print(json.dumps({"stats": stats, "items": items}, default=str))


if __name__ == "__main__":
    main()
