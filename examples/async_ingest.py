"""An ingest job in asyncio: tasks fetch pages, and a store decides about them as they arrive.

Run it in a clone after `./run setup`:

    .venv/bin/python examples/async_ingest.py

It uses the collection `async-example` in the database of PGSIMHASH_DSN, after `pgsimhash migrate`
there, else in the embedded PostgreSQL. A second run fetches only pages that were never stored.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from urllib.request import urlopen

from pgsimhash import AsyncStore, connect_async

PAGES = Path(__file__).resolve().parent / "pages"
AT_A_TIME = 8


def fetch(url: str) -> bytes:
    """Stand in for an HTTP client; an asynchronous client needs no thread."""
    with urlopen(url, timeout=10) as response:  # noqa: S310
        found: bytes = response.read()
    return found


async def due(store: AsyncStore, urls: list[str]) -> AsyncIterator[tuple[str, bytes]]:
    """Yield the pages that are unknown, or were last seen a week ago, as they arrive."""
    slots = asyncio.Semaphore(AT_A_TIME)

    async def fetched(url: str) -> tuple[str, bytes] | None:
        async with slots:
            if await store.should_fetch(url, older_than=timedelta(days=7)):
                return url, await asyncio.to_thread(fetch, url)
        return None

    for arriving in asyncio.as_completed([fetched(url) for url in urls]):
        if page := await arriving:
            yield page


async def main() -> None:
    """Fetch the sample pages, and print the decision about each."""
    urls = [path.as_uri() for path in sorted(PAGES.glob("*.html"))]
    async with await connect_async(collection="async-example", create=True) as store:
        async for verdict in store.ingest_many(due(store, urls)):
            print(verdict.kind, verdict.url, verdict.duplicate_of or "")


if __name__ == "__main__":
    asyncio.run(main())
