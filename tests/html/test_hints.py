"""Selectors of the content by host; each invalid hint has a clear error."""

from __future__ import annotations

import pytest

from pgsimhash.errors import ArgumentError
from pgsimhash.html import SiteHints, read_article
from tests.html.test_article import STORY

TABLE = "<table class='freight'><tr><td>Goats</td><td>two</td></tr></table>"
PAGE = (
    f"<body><article>{STORY}</article><div class='log ad'><p>Fog at six.<script>x()</script></p>"
    f"<div class=log><p>Sun at nine.</p></div></div>{TABLE}</body>"
)


def text_of(
    selector: str, url: str | None = "https://bay.example/log", host: str = "bay.example"
) -> str:
    return " ".join(read_article(PAGE, url, hints=SiteHints({host: selector})).text.split())


@pytest.mark.parametrize(
    "selector", ["div.log", "body > div", "//div[@class='log ad']", "(//div)[1]"]
)
def test_a_hint_in_css_or_xpath_selects_the_content(selector: str) -> None:
    """Although the block is named like an advertisement, and is a small part of the page."""
    assert text_of(selector) == "Fog at six. Sun at nine."


def test_several_elements_are_one_text_in_order() -> None:
    assert text_of("table, .log .log") == "Sun at nine. Goats two"


@pytest.mark.parametrize(
    ("host", "url", "hinted"),
    [
        ("bay.example", "http://BAY.example:8080/x", True),
        ("bay.example", "https://news.bay.example/", True),
        ("Bay.Example", "https://bay.example/", True),
        ("news.bay.example", "https://bay.example/", False),
        ("bay.example", "https://notbay.example/", False),
        ("bay.example", "http://[", False),
        ("bay.example", None, False),
    ],
)
def test_a_hint_applies_to_a_host_and_its_subdomains(
    host: str, url: str | None, hinted: bool
) -> None:
    assert (text_of(".freight", url, host) == "Goats two") is hinted


@pytest.mark.parametrize(
    "selector", ["div.gone", "//nothing", "//script", "/html/@lang", "//p/text()"]
)
def test_a_hint_that_selects_no_text_is_ignored(selector: str) -> None:
    assert text_of(selector) == " ".join(read_article(PAGE).text.split())


@pytest.mark.parametrize(
    "selector",
    ["", " ", "div[", "p::before", "//div[", "(//div", "div:unknown", "x" * 501],
)
def test_an_invalid_selector_is_refused(selector: str) -> None:
    with pytest.raises(ArgumentError, match=r"bay\.example"):
        SiteHints({"bay.example": selector})


@pytest.mark.parametrize(
    "host", ["", "https://bay.example", "bay.example/news", "bay.example:80", "["]
)
def test_an_invalid_host_is_refused(host: str) -> None:
    with pytest.raises(ArgumentError, match="without scheme"):
        SiteHints({host: "p"})
