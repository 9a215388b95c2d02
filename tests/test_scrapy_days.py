"""Three hosts that Scrapy crawls on three days; a person sets policies after the first one."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from pgsimhash import analysis, connect
from pgsimhash.sources import SourcePage
from tests.database import run_sql
from tests.html.made_streams import Stream
from tests.test_scrapy_requests import Crawl, Site
from tests.test_scrapy_requests import site as site

STREAM = Stream(4)
SHORT = list(STREAM.template(250, 12, 12, " id=own"))
STORIES = {path: STREAM.words(60) for path in "abcd"}
ITEMS = [STREAM.words(60) for _ in range(14)]
SIDS = 5


def news(path: str, text: str) -> str:
    """A story beside an advertisement that is new at each fetch, and that no name gives away."""
    advert = f"<div class=c7><p>{STREAM.words(30)}</p></div>"
    return f"<body><div><h1>Story {path}</h1><p>{text}</p>{advert}</div></body>"


def hosts(day: int) -> Iterator[tuple[str, str | None]]:
    """The pages of a day; None for one that is gone."""
    yield "http://news.example/b", None if day == 3 else news("b", STORIES["b"])
    edited = STORIES["a"].rsplit(" ", 3)[0]
    yield "http://news.example/a", news("a", edited if day == 3 else STORIES["a"])
    yield "http://news.example/c", None if day == 3 else news("c", STORIES["c"])
    if day == 3:
        yield "http://news.example/moved", news("c", STORIES["c"])
    for number, html in enumerate(SHORT):
        yield f"http://short.example/{number}", html
    for story, text in enumerate(ITEMS):
        for sid in range(SIDS):
            html = f"<body><h1>Item {story}</h1><p>{text}</p></body>"
            yield f"http://shop.example/item?id={story}&sid={sid}x{story}", html


def crawl(site: Site, dsn: str, day: int) -> Crawl:
    """Crawl all hosts, through the site as a proxy; afterwards it was a day before."""
    pages = dict(hosts(day))
    site.answers |= {
        url: lambda *_, html=html: (404 if html is None else 200, {}, html or "")
        for url, html in pages.items()
    }
    requests: list[dict[str, Any]] = [{"url": url, "meta": {"proxy": site.url}} for url in pages]
    made = site.crawl(dsn, *requests)
    for table, times in {
        "pages": ["fetched_at"], "last_seen": ["seen_at", "gone_at"],
        "runs": ["started_at", "finished_at", "ended_at"],
    }.items():  # fmt: skip
        past = ", ".join(f"{time} = {time} - interval '1 day'" for time in times)
        run_sql(dsn, f"UPDATE pgsimhash.{table} SET {past}")
    return made


def asked(made: Crawl, host: str) -> list[str]:
    return [url for url in made.asked if f"/{host}/" in url]


def kept(made: Crawl, host: str) -> list[dict[str, Any]]:
    return [item["tag"] for item in made.items if f"/{host}/" in item["url"]]


def test_three_hosts_over_three_days(site: Site, dsn: str) -> None:
    with connect(dsn, keep_markdown=True) as store:
        first = crawl(site, dsn, 1)
        assert len(asked(first, "shop.example")) == len(ITEMS) * SIDS
        assert len(kept(first, "short.example")) < len(SHORT)

        # The suggestions, from the pages and from the store.
        pages = [SourcePage(url, html) for url, html in hosts(1) if html is not None]
        parts = {(part.host, part.selector): part for part in analysis.template_parts(pages)}
        own, advert = parts["short.example", "#own"], parts["news.example", ".c7"]
        assert (own.pages, own.same, advert.pages, advert.same) == (len(SHORT), 1, 3, 1)
        assert own.votes < 0.5
        effects = analysis.selector_effects(pages, content="#own")
        assert {
            effect.effect for effect in effects if effect.host == "short.example"
        } == {"no_match"}  # fmt: skip
        found = {each.name: each for each in analysis.parameters(store)}
        assert (found["id"].verdict, found["sid"].verdict) == ("matters", "ignorable")
        assert (found["sid"].compared, found["sid"].exceptions) == (len(ITEMS) * (SIDS - 1), 0)

        half = timedelta(hours=12)
        store.set_policy("*", refetch_after=half)
        store.set_policy("short.example", content="#own")
        store.set_policy("news.example", ignore=".c7")
        store.set_policy("shop.example", ignore_parameters="sid", sample_every=2**31 - 1)
        assert [store.count_reread(f"{host}.example") for host in ("short", "news", "shop")] == [
            len(SHORT),
            3,
            0,
        ]

        # Each host is read differently once, and what did not change is not kept.
        second = crawl(site, dsn, 2)
        assert len(asked(second, "shop.example")) == len(ITEMS)
        assert second.counted["skipped"] == len(ITEMS) * (SIDS - 1)
        assert kept(second, "short.example") == kept(second, "shop.example") == []
        changed = kept(second, "news.example")
        assert {tag["reason"] for tag in changed} == {"selectors_changed"}
        assert len(changed) == 3

        third = crawl(site, dsn, 3)
        assert len(asked(third, "shop.example")) == len(ITEMS)
        assert third.counted["gone"] == 2
        assert [tag["url"] for tag in kept(third, "news.example")] == ["http://news.example/a"]
        assert len(third.items) == 1

        # In the time zone of the server.
        ((today,),) = run_sql(dsn, "SELECT current_date")
        runs = store.runs()
        days = [run.started_at.date() for run in reversed(runs)]
        assert len({*days}) == 3
        assert max(days) < today
        comparison = analysis.compare_crawls(store, str(days[1]), str(days[2]))
        changes = [each for each in comparison.changes if each.url and "news" in each.url]
        assert {(each.change, each.url, each.moved_from) for each in changes} == {
            ("changed", "http://news.example/a", None),
            ("gone", "http://news.example/b", None),
            ("moved", "http://news.example/moved", "http://news.example/c"),
        }
        (edited,) = (each for each in changes if each.change == "changed")
        assert edited.added == []
        assert [len(words.split()) for words in edited.removed or []] == [3]
        kinds = Counter(each.change for each in analysis.compare_crawls(store).changes)
        assert kinds["missing"] == kinds["not_visited"] == 0
