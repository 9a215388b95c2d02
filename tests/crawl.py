"""A Scrapy crawl in a separate process: python -m tests.crawl URL SETTINGS.

Prints the counters and the resulting items as JSON.
"""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy import signals
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse, Response


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
            yield {"url": response.url, "html": response.body, "seen": tag and tag["verdict"]}
        else:
            yield {"url": response.url}


class ListSpider(PagesSpider):
    """The same with a callback that is not a generator."""

    name = "list"

    def parse(self, response: Response) -> list[Any]:  # type: ignore[override]
        return list(super().parse(response))


def main() -> None:
    url, settings = sys.argv[1], json.loads(sys.argv[2])
    items: list[dict[str, Any]] = []

    def keep(item: Any) -> None:
        items.append({key: value for key, value in item.items() if key != "html"})

    process = CrawlerProcess(
        {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, "ROBOTSTXT_OBEY": False, **settings}
    )
    spider = ListSpider if settings.get("LIST") else PagesSpider
    crawler = process.create_crawler(spider)
    crawler.signals.connect(keep, signal=signals.item_scraped)
    process.crawl(crawler, url=url)
    process.start()
    stats = {key: value for key, value in crawler.stats.get_stats().items() if "time" not in key}
    print(json.dumps({"stats": stats, "items": items}, default=str))


if __name__ == "__main__":
    main()
