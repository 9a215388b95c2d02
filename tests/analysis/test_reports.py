"""A collection at a glance."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from pgsimhash import Store, analysis, connect
from pgsimhash.analysis import reports
from pgsimhash.analysis.canonical_links import PROBLEMS, cluster_rows
from pgsimhash.analysis.changes import WithWords, changed_words
from pgsimhash.analysis.reports import CanonicalFigures, Cause, HostFigures
from pgsimhash.analysis.wording import percent
from pgsimhash.html_reports import report_page
from pgsimhash.html_reports.drawing import first_places
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


def test_copies_are_counted_once_however_many_versions_they_have(sampled: Store) -> None:
    before = analysis.report(sampled)
    (status,) = [row for row in sampled.collections() if row.name == "sample"]
    assert before.status == status
    assert (before.pages, before.copies) == (status.urls, status.duplicates)
    assert before.copy_bytes == status.duplicate_bytes > 0
    # A new version of a copy, which is a copy too.
    (copy, *_) = [page for bits, page in before.clusters[0].members if bits]
    sampled.add_page(copy.url, before.clusters[0].canonical.simhash)
    report = analysis.report(sampled)
    assert (report.status.pages, report.pages) == (status.pages + 1, status.urls)
    assert report.copies == before.copies
    for found in (before, report):
        assert sum(host.copies for host in found.hosts) == found.copies
        assert sum(host.copy_bytes for host in found.hosts) == found.copy_bytes
        assert sum(cause.copies for cause in found.causes) == found.copies
        assert sum(found.nearest.counts.values()) <= found.pages
        page = report_page(found)
        assert f"{found.copies} of {found.pages} pages are copies" in page
        assert found.headline in page
    line = json.loads(json.dumps(report.as_json()))
    assert (line["name"], line["report"]["copies"]) == ("sample", report.copies)


def test_what_makes_the_url_of_a_copy_another_one(store: Store) -> None:
    original = "https://a.example/x"
    causes = {
        "https://a.example/print/x": "/print/", "https://a.example/x?utm=b&c=1": "?utm=",
        "https://a.example/x;sid=1": "?sid=", "http://www.a.example/x/": "//",
        "https://b.example/x?y=1": "//a.example", "https://a.example/z": "",
        "https://a.example/tag/c%2B%2B/x": "/tag/", "file:///pages/x.html": "//a.example",
    }  # fmt: skip
    for url in (original, *causes):
        store.add_page(url, 7)
    pairs: list[tuple[str, str | None, str]] = [
        (url, original, name) for url, name in causes.items()
    ]
    pairs += [
        (original, None, ""),
        ("https://a.example/x?a=1&b=2", "https://a.example/x?a=2", "?b="),
        ("https://a.example/x?a=1&b=2", "https://a.example/x?a=1&b=3", "?b="),
        ("https://a.example/x?a=1&b=2", "https://a.example/x?b=2&a=1", ""),
        ("https://a.example/x", "https://a.example/x?utm=b", "?utm="),
        ("https://a.example/x", "https://a.example/print/x", "/print/"),
        ("https://a.example/x/amp", "https://a.example/x", "/amp/"),
        ("https://a.example/x", "https://a.example/x/print/", "/print/"),
        # The copy's own parameter comes before a folder of its original.
        ("https://a.example/x?sid=1", "https://a.example/amp/x", "?sid="),
        ("https://a.example/x?sid=1", "https://a.example/amp/x?sid=1", "/amp/"),
    ]
    with store._session.calls_to_read() as calls:
        for url, other, name in pairs:
            assert calls.fetch("copy_cause", url=url, original=other) == [(name,)], url
    report = analysis.report(store)
    first, second, *_ = report.hosts
    assert (first.host, first.copies, len(first.causes)) == ("a.example", 5, 4)
    assert (second.causes[0].name, second.causes[0].copies) == ("//a.example", 1)
    assert second.causes[0].example in {(url, original) for url in causes}
    assert report.causes[0] == Cause("//*", 2)
    assert report.summary == "3 in 5 of the copies on a.example."


def test_a_copy_of_another_collection_is_not_said_to_be_one_of_its_own_site(dsn: str) -> None:
    with connect(dsn, collection="other", create=True) as other:
        other.add_page("https://b.example/x", 7)
    with connect(dsn, collection="own", create=True) as own:
        own.add_page("https://a.example/x", 7, scope="global")
        report = analysis.report(own)
    assert (report.copies, report.causes) == (1, [Cause("", 1)])
    assert "on the site" not in report.causes[0].words + report_page(report)


def test_the_answer_is_a_sentence(store: Store) -> None:
    empty = analysis.report(store)
    assert (empty.headline, empty.summary) == ("There are no pages", "")
    for copies, pages, headline in (
        (0, 5, "No page is a copy of another"), (5, 15, "1 in 3 pages is a copy"),
        (2, 5, "2 in 5 pages are copies"), (5, 10, "Half of the pages are copies"),
        (98, 100, "Nearly all of the pages are copies"), (1, 4000, "1 in 4,000 pages is a copy"),
        (87, 100, "9 in 10 pages are copies"),
    ):  # fmt: skip
        assert replace(empty, pages=pages, copies=copies).headline == headline
    assert [percent(pages / 2000) for pages in (1, 2, 1998, 1999)] == [
        "under 0.1%", "0.1%", "99.9%", "over 99.9%",
    ]  # fmt: skip
    host = HostFigures("a.example", 9, 4, 0, 16_400_000, (Cause("/print/", 3),))
    found = replace(empty, pages=15, copies=5, copy_bytes=16_400_000, hosts=[host], all_hosts=2)
    assert found.summary == (
        "16 MB of HTML that says nothing new, mostly under /print/ on a.example."
    )
    many = [host._replace(copies=1, host=f"{n}.example") for n in range(5)]
    causes = [Cause("//*", 3), Cause("?ref=", 2)]
    spread = replace(found, hosts=many, causes=causes, copy_bytes=0)
    assert spread.summary == "All on another host and with ?ref=."
    assert replace(spread, copies=6).summary == "4 in 5 on another host and with ?ref=."
    assert (
        replace(spread, copies=13, causes=[Cause("//", 3)]).summary
        == "1 in 4 by http, www or a slash."
    )


def test_the_nearest_pages_say_whether_the_distance_is_right(store: Store) -> None:
    random = Random(9)
    # Old versions are no neighbours; two pages share a simhash, others are 8 and 9 bits apart.
    base = [random.getrandbits(64) for _ in range(6)]
    for n, simhash in enumerate(base):
        store.add_page(f"https://a.example/{n}", simhash)
    store.add_page("https://a.example/0", base[0] ^ 7)
    store.add_page("https://a.example/same", base[1])
    store.add_page("https://a.example/eight", base[2] ^ 0xFF)
    store.add_page("https://a.example/nine", base[3] ^ 0x1FF)
    nearest = analysis.report(store).nearest
    assert nearest.counts == {0: 2, 8: 2, 9: 2}
    assert nearest.sampled is None
    assert nearest.within is not None
    assert nearest.beyond is not None
    assert {nearest.within.a, nearest.within.b} == {
        "https://a.example/2", "https://a.example/eight",
    }  # fmt: skip
    assert (nearest.within.distance, nearest.beyond.distance) == (8, 9)
    assert nearest.answer(8)[:2] == (False, "Look at the edge.")
    assert nearest._replace(counts={0: 1000, 20: 50}).answer(8)[:2] == (
        True, "Yes, there is a gap.",
    )  # fmt: skip
    assert nearest._replace(counts={0: 1000, 12: 50}).answer(8)[:2] == (True, "Probably.")


def test_a_pair_within_is_one_that_signatures_confirm(store: Store) -> None:
    # Pairs of pages that are so many bits apart, and whether they are copies.
    random = Random(4)
    for place, (bits, is_copy) in enumerate([(8, False), (8, True), (7, False), (9, False)]):
        simhash, signature = random.getrandbits(64), random.getrandbits(120) << 8 | 80
        other = signature if is_copy else signature ^ ((1 << 120) - 1) << 8
        page = PageRecord(f"https://a.example/{place}", simhash, signature=signature)
        copy = replace(page, url=f"{page.url}/copy", simhash=simhash ^ (1 << bits) - 1)
        list(store.ingest_many([page, replace(copy, signature=other)]))
    nearest = analysis.report(store).nearest
    assert nearest.counts == {7: 2, 8: 4, 9: 2}
    assert nearest.within is not None
    assert nearest.beyond is not None
    assert (nearest.within.distance, nearest.beyond.distance) == (8, 9)
    urls = {"https://a.example/1", "https://a.example/1/copy"}
    assert {nearest.within.a, nearest.within.b} == urls
    for url in urls:
        store.delete_page(url)
    report = analysis.report(store)
    assert report.nearest.within is None
    assert "The two pairs" not in report_page(report)


def test_a_short_sample_is_no_end_of_the_simhashes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The smaller half has neighbours, the larger half has none.
    random = Random(6)
    for n in range(40):
        simhash = random.getrandbits(63)
        store.add_page(f"https://a.example/{n}", simhash + (n % 2 << 63))
        if n % 2 == 0:
            store.add_page(f"https://a.example/{n}/near", simhash ^ 0x1FF)
    monkeypatch.setattr(reports, "_COMPARED", 60 * 20)
    nearest = analysis.report(store).nearest
    assert nearest.sampled == 20
    assert 25 < nearest.counts[9] < 55  # of 60, and in truth 40


def test_clusters_come_biggest_first_with_what_differs(sampled: Store) -> None:
    report = analysis.report(sampled, canonical="shortest-url")
    found = list(sampled.clusters(report.distance))
    assert report.all_clusters == len(found)
    assert report.clustered_pages == sum(len(cluster.pages) for cluster in found)
    assert all(cluster.blocks for cluster in report.clusters)
    sizes = [cluster.size for cluster in report.clusters]
    assert sizes == sorted((len(cluster.pages) for cluster in found), reverse=True)
    for cluster in report.clusters:
        urls = [cluster.canonical.url, *(page.url for _, page in cluster.members)]
        assert len(urls) == min(cluster.size, 5)
        assert cluster.canonical.url == min(urls, key=len)
        distances = [bits for bits, _ in cluster.members]
        assert distances == sorted(distances, reverse=True)
    page = report_page(report)
    # The correction of a false match is ready to copy.
    (cluster, *_) = report.clusters
    marked = f"{cluster.canonical.url} {cluster.members[0][1].url}"
    assert f"pgsimhash mark {marked} --different --collection sample</code>" in page


def test_a_host_whose_template_decides_is_named(store: Store) -> None:
    def pages(host: str, titles: int) -> list[PageRecord]:
        return [
            PageRecord(f"https://{host}.example/{n}", 7, title=f"{host} {n % titles}")
            for n in range(20)
        ]

    # Mirrors have many titles, but each is that of an original, or differs in a site's name.
    originals = [
        PageRecord(f"https://a.example/{n}", 0x9E37_79B9_7F4A_7C15 * n % 2**64, title=f"{n} - A")
        for n in range(20)
    ]
    mirrors = [
        replace(page, url=f"https://{place}/{n}", title=f"{n}{name}")
        for place, name in (("mirror.example", " - A"), ("a.example/amp", ""), ("b.test", " | B"))
        for n, page in enumerate(originals)
    ]
    list(store.ingest_many([*pages("story", 2), *pages("shop", 15), *originals, *mirrors]))
    report = analysis.report(store)
    decides = {host.host: host.template_decides for host in report.hosts}
    assert [host for host, template in decides.items() if template] == ["shop.example"]
    assert {host.copy_titles for host in report.hosts} == {0, 1, 15}
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
         ("a.example/b3", "a.example/b1", "other_content")],
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
    assert {name: [url for url, _ in pages] for name, pages in shown.items()} == problems
    page = report_page(report)
    assert "<b>2</b> pages name a canonical page that is not stored, or not a copy" in page
    assert "https://c.example/" in page
    assert page.count("names itself</span>") == len(problems["conflicting"])
    assert "more</li>" not in page
    table = {row["url"]: row for cluster in store.clusters() for row in cluster_rows(cluster, 8)}
    for problem, urls in problems.items():
        assert {table[url]["canonical_problems"] for url in urls if url in table} == {problem}
    row = table["https://a.example/3?b=1"]
    assert (row["host"], row["path_pattern"]) == ("a.example", "/*?b=*")


def test_texts_have_no_canonical_links_that_could_be_missing(dsn: str) -> None:
    titles = ["Blue lamp of brass, 40 cm", "Blue lamp of brass 40 CM", "A green one of tin"]
    with connect(dsn, collection="titles", create=True, scheme="pgsimhash-short-1") as store:
        list(store.ingest_many((f"A{n}", title) for n, title in enumerate(titles)))
        report = analysis.report(store)
    assert (report.copies, report.all_clusters) == (1, 1)
    assert "canonical" not in report_page(report)
    assert "Percentages are of all copies." in report_page(report)


def test_a_chain_says_how_far_its_pages_are_from_the_one_to_keep(store: Store) -> None:
    for n, path in enumerate(("long/a", "long/b", "c", "long/d", "long/e")):
        store.add_page(f"https://a.example/{path}", (1 << 6 * n) - 1)
    page = report_page(analysis.report(store))
    assert "</b> a chain; its farthest page is 12 bits from the one to keep.</p>" in page


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
    assert "2 pages have more than one version." in report_page(report)


def test_the_line_below_the_head_of_a_table_has_no_words() -> None:
    table = "| Height | 12 cm |\n| --- | :-: |\n| Weight | 90 g |"
    words = changed_words("Lamps of brass.", f"Lamps of brass.\n\n{table}")
    assert [text for place in words or () for text, _ in place] == ["Height  12 cm", "Weight  90 g"]


def test_the_largest_changes_come_first_and_are_shown_shortened() -> None:
    same = " ".join(f"word{n}" for n in range(40))
    moved = "A paragraph that only moves is no change."
    both = "A second part that nobody changed\n\nof two paragraphs that stay there."
    before = f"# Tides\n\nGone **with** the [wind](https://a.example/).\n\n{moved}\n\n"
    before += f"{same} of 1,496 boats\n\n{both}"
    after = f"# Tides\n\n{same} of 1,521 boats\n\n{both}\n\n{moved}\n\n{'無' * 5000}"
    words = changed_words(before, after)
    assert words is not None
    paragraph, long, gone = words
    assert paragraph == [
        ("… word38 word39 of", "same"), ("1,496", "gone"), ("1,521", "new"), ("boats", "same"),
    ]  # fmt: skip
    assert (long, gone) == ([("無" * 5000, "new")], [("Gone with the wind.", "gone")])
    shown, more = first_places(WithWords(words=[*words, gone]))
    assert (shown, more) == ([paragraph, [(f"{'無' * 298} …", "new")], gone], 1)
    many = " ".join(f"same{n} old{n}" for n in range(2000))
    ((line,), _) = first_places(WithWords(words=changed_words(many, many.replace("old", "new"))))
    assert sum(len(text) for text, _ in line) < 2000
    assert (changed_words("", ""), changed_words("", None)) == ([], None)


def test_shown_items_are_limited_and_counts_are_not(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("_MEMBERS", 2), ("_HOSTS", 2), ("_CHANGED", 1)):
        monkeypatch.setattr(reports, name, most)
    # On each of four hosts, clusters of 2 to 6 pages, far from one another.
    for host, size in product(range(4), range(2, 7)):
        centre = (host << 40 | size << 20) * 0x9E3779B97F4A7C15 % 2**64
        urls = [f"https://h{host}.example/{size}/{page}" for page in range(size)]
        list(store.add_pages((url, centre ^ 1 << n % 3) for n, url in enumerate(urls)))
    for simhash in (5, 50, 500):
        store.add_page("https://a.example/1", simhash << 30)
        store.add_page("https://a.example/2", simhash << 31)
    report = analysis.report(store, 3, clusters=3)
    assert [cluster.size for cluster in report.clusters] == [6, 6, 6]
    assert [len(cluster.members) for cluster in report.clusters] == [2, 2, 2]
    assert report.all_clusters >= 20
    assert (len(report.hosts), report.all_hosts) == (2, 5)
    assert (len(report.changed), report.all_changed) == (1, 2)
    # No table has the pages of no cluster that name another page, so more of them are shown.
    links: list[tuple[str, str | None]] = [(f"https://a.example/{n}", None) for n in range(6)]
    problems = dict.fromkeys(PROBLEMS, 0) | {"missing": 9, "other_content": 106}
    examples = dict.fromkeys(PROBLEMS, links[:5]) | {"other_content": links}
    figures = CanonicalFigures(problems, examples)
    page = report_page(replace(report, canonical_links=figures))
    assert re.findall(r">and ([\d,]+) more</li>", page.split("Canonical links")[1]) == ["4", "100"]
    page = report_page(report)
    assert f"The 3 biggest of {report.all_clusters}." in page
    assert "and 3 more" in page
    assert f"{report.copy_hosts - 2} more hosts have copies." in page
    assert report.copy_hosts == 5
    nothing = analysis.report(store, 3, clusters=0)
    assert (nothing.clusters, nothing.all_clusters) == ([], report.all_clusters)
    assert report_page(nothing)


def test_an_empty_collection_has_a_report(store: Store) -> None:
    report = analysis.report(store)
    assert (report.all_clusters, report.all_hosts, report.all_changed) == (0, 0, 0)
    page = report_page(report)
    assert "There are no pages" in page
    assert "<section" not in page
    assert "0 bytes" not in page
    line = report.as_json()
    zero = ("pages", "urls", "duplicates", "duplicate_bytes", "simhashes")
    assert {line[name] for name in zero} == {0}
    assert {line[name] for name in ("last_write", "last_write_age", "duplicate_percent")} == {None}
    figures = line["report"] | line["report"].pop("canonical_links")
    settings = ("made_at", "distance", "linkage", "canonical_links")
    assert not any(value for name, value in figures.items() if name not in settings)
