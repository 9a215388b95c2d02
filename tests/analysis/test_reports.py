"""A collection at a glance."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from pgsimhash import Store, analysis, connect, maintenance
from pgsimhash.analysis.canonical_links import cluster_rows
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
    # The pages of a cluster, the URLs that they name as canonical, and their problems.
    clusters: list[list[tuple[str, str | None, str | None]]] = [
        [("a.example/1", None, "missing"), ("b.example/2", None, "missing")],
        [("a.example/3", "a.example/3", None), ("a.example/3?b=1", None, "missing")],
        [("a.example/4", None, None), ("b.example/4", "a.example/4", None)],
        [("a.example/5", "a.example/5", None), ("b.example/6", "b.example/6", "conflicting")],
        [("a.example/7", "c.example/", "outside"), ("b.example/8", "c.example/", "outside")],
        # A right link of a variant, also where the page that it names is not stored.
        [("a.example/9/", "a.example/9/", None), ("www.a.example/9?x=1", "a.example/9/", None)],
        [("a.example/10?utm=1", "a.example/10", None), ("a.example/10;s=2", "a.example/10", None)],
        [("a.example/list", None, None), ("a.example/list-print", "a.example/list", None)],
        # The second page of a list is no copy of the first, in a cluster or not.
        [("a.example/list?page=2", "a.example/list", "other_content")],
        [("a.example/list?page=3", "a.example/list", "other_content"),
         ("a.example/list?page=4", "a.example/list", "other_content")],
        # A chain of three pages; its ends are far from each other.
        [("a.example/b1", None, None), ("a.example/b2", "a.example/b1", None),
         ("a.example/b3", "a.example/b1", None)],
        [("a.example/alone", "c.example/alone", None)],
    ]  # fmt: skip
    random = Random(5)
    records, problems = [], defaultdict[str, list[str]](list)
    for pages in clusters:
        simhash = random.getrandbits(64)
        for n, (url, link, problem) in enumerate(pages):
            changed = (1 << 6 * n) - 1 if "/b" in url else n
            records.append(
                PageRecord(
                    f"https://{url}",
                    simhash ^ changed,
                    canonical_url=link and f"https://{link}",
                )
            )
            if problem:
                problems[problem].append(f"https://{url}")
    list(store.ingest_many(records))
    report = analysis.report(store)
    assert report.all_clusters == sum(len(pages) > 1 for pages in clusters)
    counted = {problem: len(pages) for problem, pages in problems.items()}
    assert report.canonical_links.pages == counted
    assert report.as_json()["report"]["canonical_links"] == counted
    shown = report.canonical_links.examples
    assert {name: [page.url for page in pages] for name, pages in shown.items()} == problems
    page = report_page(report)
    assert "2 pages</b> name a canonical page that is neither stored nor a copy" in page
    assert "https://c.example/" in page
    table = {row["url"]: row for cluster in store.clusters() for row in cluster_rows(cluster, 8)}
    for problem, urls in problems.items():
        assert {table[url]["canonical_problems"] for url in urls if url in table} == {problem}
    row = table["https://a.example/3?b=1"]
    assert (row["host"], row["path_pattern"]) == ("a.example", "/*?b=*")


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
