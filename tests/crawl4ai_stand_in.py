"""The parts of crawl4ai that docs/other-tools.md uses: crawl4ai itself needs a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from urllib.request import urlopen


class CrawlerRunConfig(SimpleNamespace):
    """The settings of a run."""


class AsyncWebCrawler:
    """Fetches pages without rendering them."""

    async def __aenter__(self) -> AsyncWebCrawler:
        return self

    async def __aexit__(self, *_error: object) -> None:
        pass

    async def arun_many(
        self, urls: list[str], config: CrawlerRunConfig
    ) -> AsyncIterator[SimpleNamespace]:
        assert config.stream
        return self._results(urls)

    async def _results(self, urls: list[str]) -> AsyncIterator[SimpleNamespace]:
        for url in urls:
            with urlopen(url) as answer:
                html = answer.read().decode("utf-8", "replace")
            # A page of an error is a success too.
            yield SimpleNamespace(success=True, status_code=200, url=url, html=html)
