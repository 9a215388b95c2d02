"""A collection at a glance."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from pgsimhash import Store, analysis, connect, maintenance
from pgsimhash.html_reports import report_page
from pgsimhash.pages.records import PageRecord
from tests.conftest import ROOT


@pytest.fixture
def sampled(dsn: str) -> Iterator[Store]:
    """The sample pages, with their Markdown, on two hosts."""
    with connect(dsn, collection="sample", create=True, keep_markdown=True) as store:
        for number, path in enumerate(sorted((ROOT / "examples" / "pages").glob("*.html"))):
            host = "a.example" if number % 3 else "b.example"
            store.ingest(f"https://{host}/{path.stem}", path.read_bytes())
        yield store


def test_the_figures_are_those_of_status(sampled: Store) -> None:
    report = analysis.report(sampled)
    (status,) = [row for row in maintenance.status(sampled) if row.name == "sample"]
    assert report.status == status
    assert sum(report.distances.values()) == status.duplicates > 0
    assert sum(host.duplicates for host in report.hosts) == status.duplicates
    assert sum(host.duplicate_bytes for host in report.hosts) == status.duplicate_bytes
    assert {host.host for host in report.hosts} == {"a.example", "b.example"}
    line = json.loads(json.dumps(report.as_json()))
    assert (line["name"], line["pages"]) == ("sample", status.pages)
    assert line["report"]["clustered_duplicates"] == report.clustered_duplicates


def test_clusters_come_biggest_first_with_what_differs(sampled: Store) -> None:
    report = analysis.report(sampled, canonical="shortest-url")
    found = list(sampled.clusters(report.distance))
    assert report.all_clusters == len(found)
    assert report.clustered_pages == sum(len(cluster.pages) for cluster in found)
    sizes = [cluster.size for cluster in report.clusters]
    assert sizes == sorted((len(cluster.pages) for cluster in found), reverse=True)
    for cluster in report.clusters:
        urls = [cluster.canonical.url, *(member.page.url for member in cluster.members)]
        assert len(urls) == cluster.size
        assert cluster.canonical.url == min(urls, key=len)
        distances = [member.distance for member in cluster.members]
        assert distances == sorted(distances, reverse=True)
        assert all(member.difference is not None for member in cluster.members[:3])
    page = report_page(report)
    assert "What differs" in page
    # The correction of a false match is ready to copy.
    (cluster, *_) = report.clusters
    marked = f"{cluster.canonical.url} {cluster.members[0].page.url}"
    assert f"pgsimhash mark {marked} --different --collection sample</code>" in page


def test_a_host_whose_template_decides_is_named(store: Store) -> None:
    def pages(host: str, titles: int) -> list[PageRecord]:
        return [
            PageRecord(f"https://{host}.example/{n}", 7, title=f"{host} {n % titles}")
            for n in range(20)
        ]

    # A mirror has many titles, but each is that of an original.
    originals = [
        PageRecord(f"https://a.example/{n}", 0x9E37_79B9_7F4A_7C15 * n % 2**64, title=f"{n}")
        for n in range(20)
    ]
    mirror = [replace(page, url=page.url.replace("a.", "mirror.")) for page in originals]
    list(store.ingest_many([*pages("story", 2), *pages("shop", 15), *originals, *mirror]))
    report = analysis.report(store)
    assert {host.host: host.template_decides for host in report.hosts} == {
        "story.example": False, "shop.example": True, "a.example": False,
        "mirror.example": False,
    }  # fmt: skip
    assert {host.duplicate_titles for host in report.hosts} == {0, 1, 15}
    page = report_page(report)
    assert "pgsimhash policy set shop.example --distance 3 --collection default" in page
    assert "policy set story.example" not in page
    assert "pgsimhash collection rebuild default --replace" in page
    assert (
        "<code>canonical_problems</code> of <code>pgsimhash analyse clusters --csv</code>" in page
    )


def test_canonical_links_that_are_missing_or_disagree_are_counted(store: Store) -> None:
    clusters: dict[str, list[tuple[str, str | None]]] = {
        "missing": [("a.example/1", None), ("b.example/2", None)],
        "conflicting": [("a.example/3", "a.example/3"), ("b.example/4", "b.example/4")],
        "outside": [("a.example/5", "c.example/"), ("b.example/6", "c.example/")],
        "variants": [("a.example/7/", "a.example/7/"), ("www.a.example/7?x=1", "a.example/7/")],
        "": [("a.example/8", "a.example/8"), ("b.example/9", "a.example/8")],
    }
    records = [
        PageRecord(
            f"https://{url}", 0xFFFF << 12 * number, canonical_url=link and f"https://{link}"
        )
        for number, pages in enumerate(clusters.values())
        for url, link in pages
    ]
    list(store.ingest_many(records))
    report = analysis.report(store)
    counted = {problem: 1 for problem in clusters if problem}
    assert report.all_clusters == 5
    assert report.canonical_links.clusters == counted
    assert report.as_json()["report"]["canonical_links"] == counted
    for problem, pages in list(clusters.items())[:-1]:
        (shown,) = report.canonical_links.examples[problem]
        assert [page.url for page in shown] == [f"https://{url}" for url, _ in pages]
    page = report_page(report)
    assert "1 clusters</b>: a page names a canonical URL that is not in the cluster" in page
    assert "https://c.example/" in page


def test_pages_that_changed_come_with_their_changes(store: Store) -> None:
    for simhash in (0, 1, 0):
        store.add_page("https://a.example/little", simhash)
    for simhash in (0, 2**20 - 1):
        store.add_page("https://a.example/much", simhash)
    store.add_page("https://a.example/never", 2**63)
    report = analysis.report(store)
    assert [(page.url[18:], page.versions, page.bits_moved) for page in report.changed] == [
        ("much", 2, 20),
        ("little", 3, 2),
    ]
    assert report.all_changed == 2
    assert "Shown are 2 of 2 pages with more" in report_page(report)


def test_shown_items_are_limited_and_counts_are_not(store: Store) -> None:
    # On each of four hosts, clusters of 2 to 6 pages, far from one another.
    for host, size in product(range(4), range(2, 7)):
        centre = (host << 40 | size << 20) * 0x9E3779B97F4A7C15 % 2**64
        urls = [f"https://h{host}.example/{size}/{page}" for page in range(size)]
        list(store.add_pages((url, centre ^ 1 << n % 3) for n, url in enumerate(urls)))
    for simhash in (5, 50, 500):
        store.add_page("https://a.example/1", simhash << 30)
        store.add_page("https://a.example/2", simhash << 31)
    report = analysis.report(store, 3, clusters=3, members=2, hosts=2, urls=1)
    assert [cluster.size for cluster in report.clusters] == [6, 6, 6]
    assert [len(cluster.members) for cluster in report.clusters] == [2, 2, 2]
    assert report.all_clusters >= 20
    assert (len(report.hosts), report.all_hosts) == (2, 5)
    assert (len(report.changed), report.all_changed) == (1, 2)
    page = report_page(report)
    assert "Shown are 2 of 5 hosts" in page
    assert f"Shown are 3 of {report.all_clusters} clusters" in page
    assert "and 3 more" in page
    nothing = analysis.report(store, clusters=0, members=0, hosts=0, urls=0)
    assert (nothing.clusters, nothing.hosts, nothing.changed) == ([], [], [])
    assert nothing.all_hosts == 5
    assert report_page(nothing)


def test_an_empty_collection_has_a_report(store: Store) -> None:
    report = analysis.report(store)
    assert (report.all_clusters, report.all_hosts, report.all_changed) == (0, 0, 0)
    assert "There are no duplicates." in report_page(report)
    line = report.as_json()
    zero = ("pages", "urls", "duplicates", "duplicate_bytes", "simhashes")
    assert {line[name] for name in zero} == {0}
    assert {line[name] for name in ("last_write", "last_write_age", "duplicate_percent")} == {None}
    figures = line["report"] | line["report"].pop("canonical_links")
    settings = ("made_at", "distance", "linkage", "canonical_links")
    assert not any(value for name, value in figures.items() if name not in settings)
