"""Two crawls compared: a site of three hosts over three days, and random crawls against a rule."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, timedelta

import pytest

from pgsimhash import Store, connect
from pgsimhash.analysis import compare_crawls
from pgsimhash.analysis.crawls import CrawlChange
from pgsimhash.errors import NotFoundError
from pgsimhash.pages.records import PageRecord, PageStatus
from pgsimhash.sources import SourcePage
from tests.database import run_sql
from tests.store.test_buffers import Server

Change = tuple[str, str | None, str | None]


def text(name: str, *changed: str) -> str:
    """An article of three paragraphs."""
    words = [f"{name}{n}" for n in range(90)]
    words[40 : 40 + len(changed)] = changed
    return "".join(f"<p>{' '.join(words[n : n + 30])}</p>" for n in range(0, 90, 30))


def site(day: int) -> Iterator[SourcePage | PageStatus]:
    """What a crawler gets on a day from three hosts."""

    def page(url: str, *changed: str, of: str = "") -> SourcePage:
        path = (of or url).split("/")
        return SourcePage(f"https://{url}", text(path[0][0] + path[-1], *changed))

    yield page("a.example/same")
    yield page("a.example/price", *["fell"] * (day > 1), *["again"] * (day > 2))
    yield page("a.example/rewritten", of="a.example/rewritten" if day == 1 else "a.example/other")
    if day == 1:
        yield page("a.example/closed")
        yield page("a.example/old/story")
        yield page("a.example/unlinked")
        yield page("a.example/lost")
    else:
        yield PageStatus("https://a.example/closed", is_gone=True)
        yield PageStatus("https://a.example/old/story", is_gone=True)
        yield page("a.example/new/story", of="a.example/old/story")
        yield page("a.example/linked", of="a.example/unlinked")
        yield page("a.example/news")
    for n in range(4 if day == 1 else 1):
        yield page(f"b.example/{n}")
    if day < 3:
        for n in range(3):
            yield page(f"c.example/{n}")


def crawl(dsn: str, pages: Iterable[SourcePage | PageStatus], label: str) -> None:
    with connect(dsn, collection="site") as store:
        store.start_run(label)
        list(store.ingest_many(pages))


@pytest.fixture
def crawled(dsn: str) -> Iterator[Store]:
    """Three crawls on three days."""
    with connect(dsn, collection="site", create=True, keep_markdown=True) as store:
        for day in (1, 2, 3):
            crawl(dsn, site(day), f"day {day}")
            started = "UPDATE pgsimhash.runs SET started_at = %s WHERE run_id = %s"
            run_sql(dsn, started, [f"2026-11-{24 + day}", day])
        yield store


def listed(changes: Iterator[CrawlChange]) -> list[Change]:
    def path(url: str | None) -> str | None:
        return url and url.removeprefix("https://")

    return [(each.change, path(each.url), path(each.moved_from)) for each in changes]


FIRST_TO_SECOND: list[Change] = [
    ("changed", "a.example/rewritten", None),
    ("changed", "a.example/price", None),
    ("moved", "a.example/linked", "a.example/unlinked"),
    ("moved", "a.example/new/story", "a.example/old/story"),
    ("new", "a.example/news", None),
    ("gone", "a.example/closed", None),
    ("missing", "a.example/lost", None),
    ("not_visited", "b.example/1", None),
    ("not_visited", "b.example/2", None),
    ("not_visited", "b.example/3", None),
    ("unchanged", None, None),
]


def test_what_became_of_the_pages(crawled: Store) -> None:
    found = compare_crawls(crawled, 1, 2)
    assert [run.label for run in (*found.earlier, *found.later)] == ["day 1", "day 2"]
    changes = list(found.changes)
    assert listed(iter(changes)) == FIRST_TO_SECOND
    # same, b.example/0 and the three of c.example.
    assert [change.pages for change in changes] == [1] * 10 + [5]
    rewritten, price, linked, *_ = changes
    assert (price.removed, price.added) == (["aprice40"], ["fell"])
    distances = [change.distance or 0 for change in (rewritten, price)]
    assert distances[0] > 8 > distances[1] > 0
    assert (linked.distance, linked.words) == (0, [])
    for change in changes:
        assert json.loads(json.dumps(change.as_json())).keys() >= {"change", "removed", "added"}


def test_by_default_the_last_two_ended_runs(crawled: Store, dsn: str) -> None:
    expected = [
        ("changed", "a.example/price", None),
        *(("not_visited", f"c.example/{n}", None) for n in range(3)),
        ("unchanged", None, None),
    ]
    assert listed(compare_crawls(crawled).changes) == expected
    killed = connect(dsn, collection="site")
    killed.start_run("killed")
    killed.ingest("https://a.example/same", text("asame"))
    found = compare_crawls(crawled)
    assert ([run.run_id for run in found.earlier], [run.run_id for run in found.later]) == (
        [2],
        [3],
    )
    assert listed(found.changes) == expected
    # Of a run that did not end, nobody knows what is missing.
    kinds = Counter(change.change for change in compare_crawls(crawled, 1, 4).changes)
    assert kinds == {"not_visited": 13, "unchanged": 1}
    killed.close()


def test_days_and_labels_stand_for_all_their_runs(crawled: Store, dsn: str) -> None:
    days = [f"2026-11-{24 + n}" for n in range(1, 4)]
    assert listed(compare_crawls(crawled, *days[:2]).changes) == FIRST_TO_SECOND
    # The site in two runs, the second of which visits what the first one left.
    rest = [SourcePage(f"https://b.example/{n}", text(f"b{n}")) for n in (1, 2, 3)]
    crawl(dsn, rest, "rest")
    run_sql(
        dsn, "UPDATE pgsimhash.runs SET started_at = timestamptz '2026-11-26' WHERE label = 'rest'"
    )
    run_sql(dsn, "UPDATE pgsimhash.runs SET label = 'second' WHERE label IN ('rest', 'day 2')")
    for crawls in (days[:2], map(date.fromisoformat, days[:2]), ("day 1", "second")):
        found = compare_crawls(crawled, *crawls)
        assert [run.run_id for run in found.later] == [4, 2]
        kinds = {change.change: change.pages for change in found.changes}
        assert "not_visited" not in kinds
        assert kinds["unchanged"] == 8


def test_only_crawls_that_exist(crawled: Store) -> None:
    for crawls in ((7, 2), (1, "2020-01-01"), ("day 9", 2), (None, 1)):
        with pytest.raises(NotFoundError, match="pgsimhash run list --collection site"):
            compare_crawls(crawled, *crawls)
    assert listed(compare_crawls(crawled, 2, 2).changes) == [("unchanged", None, None)]
    # An undo forgets the run.
    crawled.undo_run(2)
    assert [run.run_id for run in compare_crawls(crawled).earlier] == [1]


def test_urls_of_one_address_are_one_page(dsn: str) -> None:
    with connect(dsn, collection="site", create=True) as store:
        store.set_policy("shop.example", ignore_parameters="sid")
    for day in (1, 2):
        articles = {"same": text("same"), "price": text("price", *["fell"] * (day > 1))}
        urls = {f"https://shop.example/{name}?sid={day}": html for name, html in articles.items()}
        crawl(dsn, itertools.starmap(SourcePage, urls.items()), f"day {day}")
    with connect(dsn, collection="site") as store:
        changes = compare_crawls(store).changes
        assert listed(changes) == [
            ("changed", "shop.example/price?sid=2", None),
            ("unchanged", None, None),
        ]


def test_the_same_bytes_are_unchanged_by_whatever_selectors(dsn: str) -> None:
    page = SourcePage("https://shop.example/", text("shop") + f"<div id=zz>{text('zz')}</div>")
    connect(dsn, collection="site", create=True).close()
    for day in (1, 2):
        crawl(dsn, [page], f"day {day}")
        with connect(dsn, collection="site") as store:
            store.set_policy("shop.example", ignore="#zz")
    with connect(dsn, collection="site") as store:
        assert listed(compare_crawls(store).changes) == [("unchanged", None, None)]


def test_a_page_moved_to_where_it_redirects(dsn: str) -> None:
    old, new = "https://old.example", "https://new.example"
    before = {f"{old}/{n}?sid=1": text(f"story{n}") for n in range(4)} | {
        f"{new}/home": text("home")
    }
    after = {f"{new}/{n}": text(f"story{n}", "edited") for n in range(2)}
    connect(dsn, collection="site", create=True, keep_markdown=True).close()
    crawl(dsn, itertools.starmap(SourcePage, before.items()), "before")
    with connect(dsn, collection="site") as store:
        store.set_policy("old.example", ignore_parameters="sid")
        # A crawler asks for the address, or for the URL of the page.
        asked = [f"{old}/0", f"{old}/1?sid=1", f"{old}/2", f"{old}/3?sid=1"]
        ends = [f"{new}/0", f"{new}/1", f"{new}/home", f"{new}/home"]
        store.add_redirects(dict(zip(asked, ends, strict=True)))
        before_it_was_a_page = "seen_at = now() - interval '1 day' WHERE url LIKE '%/3%'"
        run_sql(dsn, f"UPDATE pgsimhash.redirects SET {before_it_was_a_page}")
    crawl(
        dsn, itertools.starmap(SourcePage, (after | {f"{new}/home": text("home")}).items()), "after"
    )
    with connect(dsn, collection="site") as store:
        changes = list(compare_crawls(store, "before", "after").changes)
    assert listed(iter(changes)) == [
        ("moved", "new.example/0", "old.example/0?sid=1"),
        ("moved", "new.example/1", "old.example/1?sid=1"),
        ("missing", "old.example/2?sid=1", None),
        ("not_visited", "old.example/3?sid=1", None),
        ("unchanged", None, None),
    ]
    assert changes[0].distance
    assert [change.added for change in changes[:3]] == [["edited"], ["edited"], None]


def test_pages_that_were_not_due_are_not_missing(dsn: str) -> None:
    """Nobody asked for them; a page with the text of one is a copy, and did not come from there."""

    def visit(label: str, *paths: str) -> None:
        texts = {path: text(path[0]) for path in paths}
        pages = [SourcePage(f"https://a.example/{path}", html) for path, html in texts.items()]
        crawl(dsn, pages, label)

    def unseen(earlier: str) -> list[Change]:
        changes = listed(compare_crawls(store, earlier, "later").changes)
        return [change for change in changes if change[0] != "unchanged"]

    def pass_days(days: int) -> None:
        for table, time in {
            "pages": "fetched_at", "last_seen": "seen_at", "runs": "started_at",
        }.items():  # fmt: skip
            run_sql(dsn, f"UPDATE pgsimhash.{table} SET {time} = {time} - interval '{days} days'")

    with connect(dsn, collection="site", create=True) as store:
        store.set_policy("*", refetch_after=timedelta(days=7))
        visit("first", *"abcde")
        pass_days(4)
        visit("second", *"abd")
        pass_days(4)
        visit("later", "a", "b", "copy")
        copied = ("moved", "a.example/copy", "a.example/c")
        missing, fresh = (
            [(kind, f"a.example/{path}", None) for path in "de"]
            for kind in ("missing", "not_visited")
        )
        assert unseen("first") == [copied, missing[1], fresh[0]]
        assert unseen("second") == [("new", "a.example/copy", None), fresh[0]]
        # What a still later crawl saw says nothing about that one.
        visit("last", *"de")
        assert unseen("first") == [copied, *missing]
        store.set_policy("*", refetch_after=timedelta(days=9))
        assert unseen("first") == [
            ("new", "a.example/copy", None),
            ("not_visited", "a.example/c", None),
            *fresh,
        ]
        store.remove_policy("*")
        assert unseen("first") == [copied, *missing]


def test_texts_are_compared_as_far_as_they_are_kept_and_requested(dsn: str, crawled: Store) -> None:
    compared = [change.words for change in compare_crawls(crawled, 1, 2, examples=1).changes]
    assert compared[0] is not None
    assert compared[1:] == [None] * 10
    with connect(dsn) as store:
        for day in (1, 2):
            list(store.ingest_many(site(day)))
        changes = list(compare_crawls(store).changes)
        assert listed(iter(changes)) == FIRST_TO_SECOND
        assert {change.words for change in changes} == {None}


def test_the_function_for_sql(crawled: Store, dsn: str) -> None:
    query = "SELECT change, url, moved_from FROM pgsimhash.compare_crawls({}, collection => 'site')"
    for arguments in ("'{1}', '{2}'", "later => '{2}'"):
        rows = run_sql(dsn, query.format(arguments))
        assert (
            listed(CrawlChange(c, 1, u, m, None, None, None, None) for c, u, m in rows)
            == FIRST_TO_SECOND
        )
    ended = run_sql(dsn, query.format("earlier => NULL"))
    assert ended == run_sql(dsn, query.format("'{2}', '{3}'"))


class Visits:
    """Random visits of runs, and what the comparison is by definition."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.runs: dict[int, list[tuple[str, int | None]]] = {}

    def crawl(self, store: Store) -> None:
        urls = [f"https://{host}.example/{n}" for host in "ab" for n in range(8)]
        visited = self.random.sample(urls, self.random.randint(3, 16))
        visits = [(url, self.random.choice([1, 2, 3, None])) for url in visited * 2]
        visits = visits[: self.random.randint(len(visited), len(visits))]
        known = {url for run in self.runs.values() for url, digest in run if digest}
        self.runs[len(self.runs) + 1] = run = []
        items: list[PageRecord | PageStatus] = []
        for url, digest in visits:
            if digest is not None:
                items.append(PageRecord(url, digest << 20, text_digest=digest))
            elif url in known:
                items.append(PageStatus(url, is_gone=True))
            else:
                continue
            known.add(url)
            run.append((url, digest))
        size = self.random.choice([1, 4, 50])
        list(store.ingest_many(items, batch_size=size))
        # Of the answers in one batch, those with a page count.
        for start in range(0, len(run), size):
            part = run[start : start + size]
            run[start : start + size] = sorted(part, key=lambda visit: visit[1] is not None)

    def expected(self, earlier: list[int], later: list[int]) -> tuple[set[Change], int]:
        first, second = (
            {url: digest for run in sorted(runs) for url, digest in self.runs[run]}
            for runs in (earlier, later)
        )
        before = {url: digest for url, digest in first.items() if digest}
        hosts, visited = Counter(map(host, before)), Counter(map(host, second))
        found: dict[str, str] = {}
        for url in before.keys() | second.keys():
            if url not in before:
                if second[url]:
                    found[url] = "new"
            elif url not in second:
                is_visited = 2 * visited[host(url)] >= hosts[host(url)]
                found[url] = "missing" if is_visited else "not_visited"
            elif second[url] is None:
                found[url] = "gone"
            else:
                found[url] = "unchanged" if before[url] == second[url] else "changed"
        moved: set[Change] = set()
        for digest in (1, 2, 3):
            old = [
                u for u in sorted(before) if before[u] == digest and found[u] in ("gone", "missing")
            ]
            new = [u for u in sorted(second) if second[u] == digest and found.get(u) == "new"]
            moved |= {("moved", b, a) for a, b in zip(old, new, strict=False)}
        taken = {url for _, *urls in moved for url in urls}
        rest = {(kind, url, None) for url, kind in found.items() if url not in taken}
        unchanged = {change for change in rest if change[0] == "unchanged"}
        return moved | (rest - unchanged), len(unchanged)


def host(url: str) -> str:
    return url.split("/")[2]


@pytest.mark.parametrize("seed", range(6))
def test_random_crawls_follow_the_rule(store: Store, seed: int) -> None:
    visits = Visits(seed)
    for _ in range(5):
        visits.crawl(store)
    kinds: Counter[str] = Counter()
    for earlier, later in (([1], [2]), ([2], [3]), ([3], [5]), ([1, 2], [4]), ([2], [3, 5])):
        with store._session.calls_to_read() as calls:
            rows = calls.fetch("compare_crawls", earlier=earlier, later=later)
        changes = [CrawlChange(*row) for row in rows]
        *others, unchanged = changes
        expected = visits.expected(earlier, later)
        assert ({(c.change, c.url, c.moved_from) for c in others}, unchanged.pages) == expected
        assert len(others) == len(expected[0])
        kinds.update(change.change for change in changes)
    assert len(kinds) >= 5


FILL = """
INSERT INTO pgsimhash.pages (collection_id, url, simhash, text_digest)
SELECT 1, 'https://site' || n % {urls} % 49 || '.example/page-' || n % {urls},
    hashint8extended(n, 1), n
FROM generate_series(1, {urls} + {changed}) AS n;
INSERT INTO pgsimhash.runs (run_id, collection_id, label, ended_at)
VALUES (1, 1, 'first', now()), (2, 1, 'second', now());
INSERT INTO pgsimhash.sightings (collection_id, run_id, page_ids)
SELECT 1, run, array_agg(n + CASE WHEN run = 2 AND n <= {changed} THEN {urls} ELSE 0 END ORDER BY n)
FROM generate_series(1, 2) AS run, generate_series(1, {urls}) AS n
WHERE NOT (run = 1 AND n % 10 = 0 OR run = 2 AND n % 10 = 1)
GROUP BY run, n / 256
ORDER BY run, n / 256
"""


@pytest.mark.one_server("it reads plans")
@pytest.mark.parametrize("plans", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("analysed", [False, True])
def test_what_a_comparison_reads(dsn: str, plans: str, analysed: bool) -> None:
    """Each crawl's versions once by their ids, and texts that changed 32 at a time."""
    urls, changed = 4_000, 500
    server = Server(dsn, plans)
    store = connect(server.connection)
    run_sql(dsn, FILL.format(urls=urls, changed=changed))
    if analysed:
        run_sql(dsn, "VACUUM (ANALYZE)")
    kinds: list[dict[str, int]] = []
    buffers = server.buffers(
        lambda _: kinds.append(Counter(change.change for change in compare_crawls(store).changes))
    )
    assert kinds[-1] == {"changed": 400, "missing": 400, "new": 400, "unchanged": 1}
    server.connection.close()
    lookups = 2 * (urls - 400) + 2 * 400
    assert lookups < buffers <= 4 * lookups
    assert 400 // 32 < len(server._plans) <= 400 // 32 + 8
