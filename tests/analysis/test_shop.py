"""A made shop of 1,842 pages: which page of a cluster is canonical, and which links are wrong."""

from collections import Counter
from collections.abc import Iterator
from random import Random

from pgsimhash import Store, analysis
from pgsimhash.analysis.canonical_links import cluster_rows
from pgsimhash.html_reports import report_page
from pgsimhash.pages.records import PageRecord
from tests.database import run_sql

SHOP = "https://shop.example"
PAGES = 1_842


def shop() -> Iterator[PageRecord]:
    """Yield the pages; variants come before the page that they are variants of."""
    random = Random(7)
    products = iter(range(PAGES))

    def variants(
        pattern: str, count: int, links: str | None, own_link: bool = True
    ) -> Iterator[PageRecord]:
        for number in (next(products) for _ in range(count)):
            url, simhash = f"{SHOP}/p/{number}", random.getrandbits(64)
            yield page(pattern.format(number), simhash, links and links.format(number))
            yield page(url, simhash ^ 1, url if own_link else None)

    yield from variants(SHOP + "/print/p/{}", 22, SHOP + "/p/{}")
    yield from variants(SHOP + "/print/p/{}", 22, None, own_link=False)
    yield from variants(SHOP + "/p/{}?utm_source=mail", 64, None, own_link=False)
    yield from variants(SHOP + "/p/{};jsessionid=1", 153, SHOP + "/p/{}")
    yield from variants("http://www.shop.example/p/{}?utm_source=x", 152, SHOP + "/p/{}")
    yield from variants(SHOP + "/p/{}?colour=red", 140, None)
    for place in range(1, 34):
        url = f"{SHOP}/list" + (f"?page={place}" if place > 1 else "")
        yield page(url, random.getrandbits(64), f"{SHOP}/list")
    for number in range(12):
        urls = [f"{SHOP}/{language}/{number}" for language in ("en-gb", "en-us")]
        simhash = random.getrandbits(64)
        for url in urls:
            yield page(url, simhash, url, alternates=" ".join(urls))
    for number in range(20):
        simhash = random.getrandbits(64)
        yield page(f"{SHOP}/s/{number}", simhash, f"{SHOP}/gone", noindex=True)
        yield page(f"{SHOP}/search/{number}/long", simhash)
    # Others are alone; one names a page that is not in the shop.
    for number in range(PAGES - 2 * (22 + 22 + 64 + 153 + 152 + 140) - 33 - 24 - 40):
        yield page(f"{SHOP}/about/{number}", random.getrandbits(64), f"{SHOP}/gone")


def page(
    url: str,
    simhash: int,
    link: str | None = None,
    *,
    noindex: bool = False,
    alternates: str | None = None,
) -> PageRecord:
    return PageRecord(
        url=url, simhash=simhash, canonical_url=link, noindex=noindex, alternates=alternates
    )


def test_what_a_shop_has_to_mend(store: Store, dsn: str) -> None:
    list(store.ingest_many(shop()))
    report = analysis.report(store)
    assert (report.pages, report.noindex) == (PAGES, 20)
    clusters = list(store.clusters())
    assert len(clusters) == report.all_clusters == 22 + 22 + 64 + 153 + 152 + 140 + 12 + 20
    # The clean address stands for each cluster, though it came last; nothing else depends on it.
    for cluster in clusters:
        url = cluster.canonical.url
        assert url.startswith("https://shop.example/")
        assert not any(sign in url for sign in ("/print/", "?", ";", "/s/"))
    first = {cluster.cluster_id: cluster.pages for cluster in clusters}
    earliest = list(store.clusters(canonical="earliest"))
    assert {each.cluster_id for each in earliest} == set(first)
    # The table, the CSV and the report agree.
    store.save_clusters()
    saved = run_sql(dsn, "SELECT url FROM pgsimhash.clusters JOIN pgsimhash.pages "
                    "USING (collection_id, page_id) WHERE is_canonical")  # fmt: skip
    assert {url for (url,) in saved} == {cluster.canonical.url for cluster in clusters}
    rows = [row for cluster in clusters for row in cluster_rows(cluster, 8)]
    assert Counter(row["canonical_problems"] for row in rows if row["canonical_problems"]) == {
        # 140 colours, and both pages of the 22 and 64 clusters without any link.
        "missing": 140 + 2 * (22 + 64) + 20,
        "noindex": 20,
    }
    assert report.canonical_links.pages == {
        "missing": 140 + 2 * (22 + 64) + 20, "conflicting": 0, "outside": 0, "other_content": 32,
    }  # fmt: skip
    assert "<b>32</b> pages name a canonical page whose content is different" in report_page(report)
    assert "20 pages ask search engines not to list them" in report_page(report)


def test_twins_in_languages_name_each_other_or_conflict(store: Store) -> None:
    urls = [f"{SHOP}/{language}" for language in ("en-gb", "en-us", "en-au")]
    both = " ".join(urls[:2])
    # The third names the others, but they do not name it.
    for url, alternates in zip(urls, (both, both, " ".join(urls)), strict=True):
        list(store.ingest_many([page(url, 5, url, alternates=alternates)]))
    # A copy of a twin names that twin.
    list(store.ingest_many([page(f"{url}?utm_source=x", 5, url) for url in urls]))
    (cluster,) = store.clusters()
    problems = {row["url"]: row["canonical_problems"] for row in cluster_rows(cluster, 8)}
    wrong = {url for url in problems if url.startswith(urls[2])}
    assert cluster.canonical.url == urls[0]
    assert {url for url, problem in problems.items() if problem == "conflicting"} == wrong
    assert set(problems.values()) == {None, "conflicting"}
