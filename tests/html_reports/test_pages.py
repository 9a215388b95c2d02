"""The HTML pages: one file, no requests, no scripts, everything escaped."""

import base64
import hashlib
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final, get_args

import pytest
from lxml import etree, html

from pgsimhash import Store, analysis, connect
from pgsimhash.analysis.changes import Version, compared_versions
from pgsimhash.analysis.comparison import Comparison, Side, compared
from pgsimhash.analysis.crawls import CrawlChange, CrawlComparison, Outcome, first_of_each
from pgsimhash.analysis.reports import Cause, HostFigures
from pgsimhash.hashing.bits import format_simhash, to_bigint
from pgsimhash.html_reports import (
    comparison_page,
    crawls_page,
    history_page,
    report_page,
    web_link,
)
from pgsimhash.html_reports.drawing import example, marked
from pgsimhash.pages.records import PageRecord, RunRecord
from pgsimhash.reading.kept_markdown import kept_article
from pgsimhash.schemes.registry import DEFAULT_SCHEME
from pgsimhash.search.layout import DEFAULT_LAYOUT

TEXTS: Final = [
    "<script>window.hacked = 1; fetch('https://tracker.invalid/1')</script>",
    '"><script src="https://tracker.invalid/2.js"></script>',
    "<img src=https://tracker.invalid/3.png onerror='window.hacked = 3'>",
    "</title></style></svg><svg onload='window.hacked = 4'>",
    "' autofocus onfocus='window.hacked = 5' x='",
    "<iframe src='javascript:parent.hacked = 6'></iframe>",
    "<meta http-equiv=refresh content='0;url=https://tracker.invalid/7'>",
    "<link rel=stylesheet href=https://tracker.invalid/8.css><base href=https://tracker.invalid/>",
    "<style>body { background: url(https://tracker.invalid/9.png) }</style>",
    "</details></section><form action=https://tracker.invalid/10><button>",
    "${__import__('os').system('true')} <%def name='x()'></%def> {{7777*7777}}\n% endif\n## x",
    "[link](javascript:window.hacked=12) ![i](https://tracker.invalid/12.png) <!-- -->",
    "\u202eright to left\u2066 &lt;script&gt; &amp; \u0000 \U000e0001 " + "w" * 500,
]

URLS: Final = [
    "javascript:window.hacked=20", "JaVaScRiPt:window.hacked=21",
    "data:text/html,<script>window.hacked=22</script>",
    'https://a.example/?q="><script>window.hacked=23</script>',
    "https://a.example/' onmouseover='window.hacked=24", "//tracker.invalid/25",
    "vbscript:window.hacked=26", " javascript:window.hacked=27", "https://[",
    "https://a.example/" + "long" * 400,
]  # fmt: skip

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)


def comparison() -> Comparison:
    sides = []
    for number, url in ((0, URLS[0]), (7, URLS[3])):
        told = TEXTS[number % len(TEXTS)]
        article = kept_article("\n\n".join(f"{text} {number}" for text in TEXTS), told)
        sides.append(
            Side(
                number,
                url,
                told,
                BEGIN,
                signature=0,
                structure=0,
                canonical_url=URLS[1],
                article=article,
                text="markdown",
            )
        )
    return compared(sides[0], sides[1], DEFAULT_SCHEME, DEFAULT_LAYOUT, 8)


def fill(store: Store) -> None:
    """Insert clusters and histories of hostile pages into a collection that stores Markdown.

    By SQL, because other programs may write these tables: it includes pages that `ingest` refuses.
    """
    collection_id = store.collection.collection_id
    rows = []
    for number in range(60):
        own = f"https://host{number % 7}.example/{number}"
        url = own if number % 3 else URLS[number % len(URLS)]
        told = TEXTS[number % len(TEXTS)].replace("\0", "")
        group = number % len(TEXTS) * 0x9E37_79B9_7F4A_7C15 % 2**64
        simhash = to_bigint(group ^ (1 << number % 4) - 1)
        rows.append(
            (
                collection_id, url, simhash, BEGIN + timedelta(days=number * 3), told, number * 999,
                to_bigint(int(format_simhash(number * 2**40), 16)),
                "\n\n".join(f"{text} {number}" for text in TEXTS).replace("\0", ""),
                number % 9 if number else None,
            )
        )  # fmt: skip
    with store._session.connection_to_read() as connection, connection.cursor() as cursor:
        columns = "simhash, fetched_at, title, html_bytes, structure, markdown, distance"
        into = f"INSERT INTO pgsimhash.pages (collection_id, url, {columns})"
        cursor.executemany(f"{into} VALUES (%s{', %s' * 8})".encode(), rows)


def hostile_pages(dsn: str) -> dict[str, str]:
    with connect(dsn, collection="hostile", create=True, keep_markdown=True) as store:
        fill(store)
        report = report_page(analysis.report(store, clusters=50))
    found, history = crawl_changes()
    return {
        "report": report,
        "comparison": comparison_page(comparison()),
        "crawls": crawls_page(found, first_of_each(found.changes, 20)),
        "history": history_page(history),
    }


def crawl_changes() -> tuple[CrawlComparison, list[Version]]:
    """Changes of every kind, and versions of a page, with hostile texts."""
    words = [[(text, kind) for text, kind in zip(TEXTS, ["same", "gone", "new"] * 5, strict=False)]]
    run = RunRecord(1, TEXTS[0], BEGIN, BEGIN, BEGIN, *[9] * 8)
    outcomes = get_args(Outcome)
    changes = [
        CrawlChange(outcome, 1, url, URLS[3], TEXTS[number], number, None, None, words=words * 4)
        for number, outcome in enumerate(outcomes)
        for url in URLS
    ]
    pages = [
        {"url": URLS[3], "simhash": 7 << 5 * number, "fetched_at": BEGIN + timedelta(number),
         "seen_at": BEGIN + timedelta(number + 1), "gone_at": BEGIN if number == 5 else None,
         "title": TEXTS[number], "structure": None,
         "html_bytes": 9, "text_digest": number, "markdown": f"{TEXTS[number]}\n\nand the same"}
        for number in range(6)
    ]  # fmt: skip
    return CrawlComparison([run], [run], iter(changes)), compared_versions(pages)  # type: ignore[arg-type]


@pytest.fixture
def pages(dsn: str) -> dict[str, str]:
    return hostile_pages(dsn)


def xpath(tree: Any, query: str) -> list[Any]:
    found = tree.xpath(query)
    assert isinstance(found, list)
    return found


def test_no_element_and_no_attribute_comes_from_a_page(pages: dict[str, str]) -> None:
    for text in pages.values():
        tree = html.document_fromstring(text)
        assert not xpath(tree, "//script | //img | //iframe | //link | //form | //base | //object")
        assert not xpath(tree, "//@*[starts-with(name(), 'on')] | //@style | //@src | //@autofocus")
        assert len(xpath(tree, "//style")) == 1
        assert len(xpath(tree, "//meta")) == 4
    # The policy allows the page's own style and nothing else.
    for text in pages.values():
        (style,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        query = "//meta[@http-equiv='Content-Security-Policy']/@content"
        (policy,) = xpath(html.document_fromstring(text), query)
        own = f"style-src 'sha256-{digest}'"
        assert policy == f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"
        assert not re.search(r"url\(|@import", style)
        assert "prefers-color-scheme: dark" in style


def test_links_go_to_web_pages_only(pages: dict[str, str]) -> None:
    for url in URLS:
        assert (web_link(url) is not None) == url.startswith("https://a.example/")
    for name, text in pages.items():
        links = xpath(html.document_fromstring(text), "//@href")
        assert links, name
        assert all(link.startswith(("https://", "http://", "#")) for link in links)
    report = html.document_fromstring(pages["report"]).text_content()
    assert "javascript:window.hacked=20" in report


def test_texts_are_shown_unchanged_and_are_no_templates(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        shown = "".join("".join(map(str, html.document_fromstring(text).itertext())).split())
        # A history has the words of a change apart.
        for told in TEXTS[5:6] if name == "history" else TEXTS[:10]:
            assert "".join(told.split()) in shown, (name, told)
        assert not re.findall(r"60481729", text)
        for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
            etree.fromstring(picture)
    assert "7777*7777" in pages["comparison"]
    assert "<svg" in pages["report"]


def test_a_comparison_without_texts_says_so() -> None:
    page = comparison_page(analysis.compare_pages(0, 5))
    assert "a simhash without a page" in page
    assert "Unknown, because a text is missing." in page
    assert page.count('class="d1"') == page.count('class="d0"') == 2


def test_blocks_beside_nothing_are_those_of_one_page() -> None:
    text = "".join(f"<p>{' '.join(f'w{n}x{m}' for m in range(30))}" for n in range(4))
    menus = [
        "".join(f"<li>{name}{n}" for n in range(count))
        for name, count in (("own", 2), ("other", 9))
    ]
    a, b = (f"<nav><ul>{menu}</ul></nav><article>{text}" for menu in menus)
    found = analysis.compare_pages(a, b)
    page = comparison_page(found)
    assert "Menu: 9 quiet blocks, 2 different on each page and 7 only in B, " in page


def test_a_note_before_a_text_has_no_part_in_its_direction() -> None:
    one, other = (" ".join(f"{word}{n}" for n in range(30)) for word in ("كتاب", "مدينة"))
    page = comparison_page(analysis.compare_pages(f"<p>{one}", f"<p>{other}"))
    notes = xpath(html.document_fromstring(page), "//p[@dir='auto']/span/@dir")
    assert notes == ["ltr", "ltr"]


def test_a_version_that_differs_in_its_surroundings_has_the_same_text(store: Store) -> None:
    page = PageRecord(URLS[3], 6, text_digest=5)
    list(store.ingest_many([page, replace(page, simhash=7)]))
    assert "<span>the same text, 1 bit" in " ".join(
        history_page(analysis.versions(store, URLS[3])).split()
    )


def test_runs_of_a_script_without_spaces_get_none(store: Store) -> None:
    store.change_settings(keep_markdown=True)
    for digest, changed in enumerate(("五", "六")):
        text = f"今日の朝市は{changed}時に始まるので、早く起きてください。"
        list(store.ingest_many([PageRecord(URLS[3], 1, text_digest=digest, markdown=text)]))
    page = "".join(history_page(analysis.versions(store, URLS[3])).split("\n"))
    assert "は<del>五</del><ins>六</ins>時" in page


def test_bars_are_in_proportion(store: Store) -> None:
    hosts = [HostFigures(f"{n}.example", 2 * n, n, 0, 0, ()) for n in (1_250_000, 625_000, 1)]
    hosts[1] = hosts[1]._replace(causes=(Cause("/print/", 312_500),))
    copies = sum(host.copies for host in hosts)
    found = replace(analysis.report(store), pages=4 * copies, copies=copies, hosts=hosts)
    page = report_page(found)
    rows = re.findall(
        r'<td class="n"><svg.*?width="([\d.]+)".*?<span>([\d,]+) <small>(.*?)<', page, re.DOTALL
    )
    assert rows == [
        ("100.0", "1,250,000", "67%"), ("50.0", "625,000", "33%"), ("25.0", "312,500", "17%"),
        ("25.0", "312,500", "17%"), ("0.0", "1", "under 0.1%"),
    ]  # fmt: skip
    assert re.findall(r'height="19" rx="3" class="(\w+)"', page) == ["c0"] * 25 + ["o"] * 75


@pytest.mark.parametrize(("url", "other", "parts"), [
    ("https://a.example/print/x", "https://a.example/x", ("a.example/", "print/", "x")),
    ("https://a.example/x?ref=1", "https://a.example/x", ("a.example/x", "?ref=1", "")),
    ("https://a.example/v2.0/x", "https://a.example/v2.1/x", ("a.example/v2.", "0", "/x")),
    ("https://a.example/print/p/x", "https://a.example/p/x", ("a.example/", "print/", "p/x")),
    ("https://a.example/storm", "https://a.example/story", ("a.example/", "storm", "")),
    # A name that the other URL's continues is another name.
    ("https://a.example/w/x", "https://a.example/wiki/y", ("a.example/", "w/x", "")),
    ("https://a.example/1", "https://a.example/11", ("a.example/", "1", "")),
    ("https://a.example/8", "https://a.example/18", ("a.example/", "8", "")),
    ("https://a.example/x", "http://a.example/x", ("", "", "a.example/x")),
    ("http://a.example/x", "https://a.example/x", ("", "http://", "a.example/x")),
    ("https://b.example/x", "https://a.example/x", ("", "b", ".example/x")),
    ("https://a.example/%E6%96%87%20%80", "https://a.example/", ("a.example/", "文%20%80", "")),
    ("javascript:a", "https://a.example/", ("", "javascript:a", "")),
])  # fmt: skip
def test_what_differs_between_two_urls_is_marked(
    url: str, other: str, parts: tuple[str, str, str]
) -> None:
    assert marked(url, other) == parts


@pytest.mark.parametrize(("name", "url", "other"), [
    ("/print/", "https://a.example/print/x", "https://a.example/x?ref=1"),
    ("?ref=", "https://a.example/x?ref=1", "https://a.example/x"),
    ("//", "http://a.example/x", "https://a.example/x"),
])  # fmt: skip
def test_an_example_shows_the_cause_whichever_page_came_first(
    name: str, url: str, other: str
) -> None:
    assert example(Cause(name, 1, (url, other))) == example(Cause(name, 1, (other, url)))
    assert example(Cause(name, 1, (url, other))) == (url, other)
    assert example(Cause("//b.example", 1, (url, "https://b.example/x")))[0] == url
    assert example(Cause(name, 1, (url, ""))) == (url, url)


def test_a_report_is_small_whatever_the_collection_has(store: Store) -> None:
    """1,000 clusters with long URLs and titles on 300 hosts, and 14 of 20 runs."""
    random = Random(2)
    for number in range(20):
        records = []
        for cluster in range(number * 50, number * 50 + 50):
            simhash = random.getrandbits(64)
            for page in range(2 + cluster % 4):
                path = f"{cluster}/" + "long-" * 300 + str(page)
                url = f"https://host{cluster % 300}.example/{path}"
                records.append(PageRecord(url, simhash, title=f"{cluster} " + "word " * 400))
        list(store.ingest_many(records))
    report = analysis.report(store)
    assert report.all_clusters == 1000
    assert report.copies == 2500
    assert len(report.runs) == 14 < report.all_runs
    text = report_page(report)
    assert len(text.encode()) < 300_000
    assert set(re.findall("--collection ([^< ]+)", text)) == {"default"}


def test_huge_changes_of_pages_are_shortened(store: Store) -> None:
    random = Random(3)
    store.change_settings(keep_markdown=True)
    for name in ("old", "new"):
        runs = [(kind, number) for number in range(12) for kind in ("same", name)]
        line = " ".join(f"{kind}{n}x{m}{'ก' * 42}" for kind, n in runs for m in range(6))
        text = "\n\n".join(f"place{place} {line}" for place in range(4))
        urls = [f"https://a.example/{number}" for number in range(6)]
        records = [PageRecord(url, random.getrandbits(64), markdown=text) for url in urls]
        list(store.ingest_many(records))
    page = report_page(analysis.report(store))
    assert page.count("<del>old0") == page.count("<ins>new0") == 6 * 3
    assert len(page.encode()) < 300_000
