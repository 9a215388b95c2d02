"""The HTML pages: one file, no requests, no scripts, everything escaped."""

import base64
import hashlib
import re
from typing import Any

import pytest
from lxml import etree, html

from pgsimhash.analysis.explanation import Side, explain_sides
from pgsimhash.html_reports import BASE, WIDTH, bars, explanation_page, web_link
from tests.html_reports import hostile


@pytest.fixture
def pages(dsn: str) -> dict[str, str]:
    return hostile.pages(dsn)


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


def test_links_go_to_web_pages_only(pages: dict[str, str]) -> None:
    for url in hostile.URLS:
        assert (web_link(url) is not None) == url.startswith("https://a.example/")
    for name, text in pages.items():
        links = xpath(html.document_fromstring(text), "//@href")
        assert links, name
        assert all(link.startswith(("https://", "http://", "#")) for link in links)
    assert "javascript:window.hacked=20" in pages["report"]  # as text


def test_texts_are_shown_unchanged_and_are_no_templates(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        shown = "".join("".join(map(str, html.document_fromstring(text).itertext())).split())
        for told in hostile.TEXTS[:10]:
            assert "".join(told.split()) in shown, (name, told)
        assert not re.findall(r"60481729", text)
        for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
            etree.fromstring(picture)
    assert "7777*7777" in pages["explanation"]
    assert "<svg" in pages["report"]


def test_the_policy_allows_the_pages_own_style_and_nothing_else(pages: dict[str, str]) -> None:
    for text in pages.values():
        (style,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        query = "//meta[@http-equiv='Content-Security-Policy']/@content"
        (policy,) = xpath(html.document_fromstring(text), query)
        own = f"style-src 'sha256-{digest}'"
        assert policy == f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"
        assert not re.search(r"url\(|@import", style)
        assert "prefers-color-scheme: dark" in style


def test_an_explanation_without_texts_says_so() -> None:
    page = explanation_page(explain_sides(Side(0), Side(5)))
    assert "a simhash without a page" in page
    assert "Unknown, because a text is missing." in page
    assert page.count("<b>1</b>") == 2


def test_bars_are_in_proportion_and_small_ones_show() -> None:
    drawn = bars({0: 1_250_000, 4: 625_000, 12: 1})
    labels = [(bar.bits, bar.label) for bar in drawn if bar.pages]
    assert labels == [(0, "1.2M"), (4, "625k"), (12, "1")]
    assert drawn[4].height == drawn[0].height / 2
    assert drawn[12].height >= 2
    assert all(bar.x + bar.width < WIDTH and bar.y + bar.height == BASE for bar in drawn)
    assert not any(bar.pages for bar in bars({}))
