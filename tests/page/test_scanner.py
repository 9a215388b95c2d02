"""The scanner finds a page's text as a browser would, in one pass."""

from __future__ import annotations

from html import unescape
from html.entities import html5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash.page.fast import read_article_fast
from pgsimhash.page.scanner.kinds import references

LINE = "The ferryman rows across the bay with letters, fresh bread and no passengers. " * 5


def read(markup: str) -> str:
    """Return the text of a page with ``markup`` in it, one space for each line break."""
    return " ".join(
        read_article_fast(f"<p>{LINE}</p>{markup}").text.removeprefix(LINE.strip()).split()
    )


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("fer<b>ry</b>man", "ferryman"),
        ("boats<p>goats</p>tides", "boats goats tides"),
        ("boats<br>goats<td>tides", "boats goats tides"),
        ("a < b, b> c <3 <", "a < b, b> c <3 <"),
        ("boats<!-- <p>goats --> tides", "boats tides"),
        ("boats<!--> goats<!---> tides<!-- --!> gulls", "boats goats tides gulls"),
        ("boats<!-- goats", "boats"),
        ("boats<!DOCTYPE html><?xml goats?></ goats><![CDATA[goats]]> tides", "boats tides"),
        ("boats</> goats", "boats goats"),
        ("boats<p title='a > b' class = \"x>y\" id=z>goats", "boats goats"),
        ("boats<p title=a'b>goats", "boats goats"),
        ("boats<p title='goats", "boats"),
        ("boats<script>if (a </b && '<p>') </scripts> goats</SCRIPT > tides", "boats tides"),
        ("boats<textarea><p>goats</textarea> tides", "boats tides"),
        ("boats<svg><title>goats</title><path/></svg> tides<svg/> gulls", "boats tides gulls"),
        ("boats<template><div>goats</div></template> tides", "boats tides"),
        ("boats<button>goats</button> <select><option>goats</select> tides", "boats tides"),
        ("boats<noscript><p>goats</noscript> tides", "boats tides"),
        ("boats<x-goats>goats</x-goats>", "boatsgoats"),
        ("boats\u00a0and \t\r\n goats\x7f", "boats and goats"),
    ],
)
def test_markup_and_text_are_told_apart(markup: str, text: str) -> None:
    assert read(markup) == text


@pytest.mark.parametrize(
    "written",
    [
        *(
            "&amp;",
            "&amp",
            "&AMP;",
            "&lt;p&gt;",
            "&eacute;t&eacute",
            "&copy2026",
            "&notin;",
            "&notit;",
        ),
        *("&#233;", "&#xE9;", "&#Xe9", "&#128;", "&#x1F6A2;", "&#0;", "&#xD800;", "&#x110000;"),
        *("&#99999999999999999999;", "&#;", "&#x;", "&", "&;", "&goats;", "R&D", "&nLt;", "&&amp;"),
    ],
)
def test_character_references_are_those_of_the_standard(written: str) -> None:
    assert read(f"z{written}z") == f"z{unescape(written)}z"


def test_all_names_of_characters_are_known() -> None:
    assert (references().values != 0).sum() == len(html5)
    for name in list(html5)[::50]:
        expected = " ".join(f"b{html5[name]}b".split())
        assert read(f"b&{name}b" if name.endswith(";") else f"b&{name} b").replace(
            " ", ""
        ) == expected.replace(" ", "")


def test_no_reference_is_longer_as_a_character_than_the_scanner_has_room_for() -> None:
    assert max(len(text.encode()) / (len(name) + 1) for name, text in html5.items()) <= 1.5


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"])))
def test_any_text_comes_out_as_it_is(text: str) -> None:
    written = text.replace("&", "&amp;").replace("<", "&lt;")
    expected = text.replace("\ufffe", "").replace("\uffff", "")
    assert read(f"b{written}b").replace(" ", "") == "".join(f"b{expected}b".split())


@pytest.mark.parametrize(
    "markup",
    [
        "<div class=nav>goats</div>",
        "<div class=nav><div>goats</div></div>",
        "<div class=nav><section>goats</div>",
        "<div class=nav><p>goats</span></section></div>",
        "<ul id=menu><li>goats</ul>",
        "<section CLASS='x siteMenu'>goats</section>",
        "<section class=XMLMenu>goats</section>",
        "<div ROLE=Navigation>goats</div>",
        "<div style='color: red; DISPLAY : none'>goats</div>",
        "<form hidden>goats</form>",
        "<div><p>Advertisement</p><p>Goats, half price.</p></div>",
        "<div><h3>3 Comments</h3><p>goats</p></div>",
        "<div><h3>Related articles</h3><p><a href=x>More about goats</a></div>",
        "<p>Subscribe to our newsletter</p>",
        "<p>This page uses cookies to count goats.</p>",
        "<nav>goats",
    ],
)
def test_what_says_that_it_is_beside_the_text_is_left_out(markup: str) -> None:
    assert read(markup) == ""


@pytest.mark.parametrize(
    "markup",
    [
        "<div class=menu-article>goats</div>",
        "<div class=shared>goats</div>",
        "<div class=x title=nav>goats</div>",
        "<div role=main>goats</div>",
        "<div style='display: block'>goats</div>",
        "<div><h3>Comments</h3><p>goats</p></div>",
        "<p>Advertisement for goats</p>",
        "<p>goats subscribe to newsletters</p>",
        "<aside>boats</aside>goats",
        "<div><aside>boats</div>goats</aside>",
    ],
)
def test_what_does_not_say_so_stays(markup: str) -> None:
    assert "goats" in read(markup)


def test_an_article_beside_the_text_is_never_the_main_text() -> None:
    page = f"<div>{LINE}</div><div>{LINE}</div><nav><article>goats</article></nav>"
    assert "goats" not in read_article_fast(page).text
