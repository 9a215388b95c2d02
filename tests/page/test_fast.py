"""The fast way to read a page gives the same story, and bounds its work as the default way does."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgsimhash import NotHtmlError, TooLargeError, hamming_distance
from pgsimhash.errors import MissingPackageError
from pgsimhash.features import weigh
from pgsimhash.page import read_article
from pgsimhash.page.fast import read_article_fast
from pgsimhash.tokens import tokenize
from pgsimhash.votes import simhash
from tests.page.test_article import ALONE, LINKS, STORY, URL
from tests.test_hostile_html import MEGABYTE, PIECES, TEXT

EXAMPLES = Path(__file__).parents[2] / "examples" / "pages"


def text_of(body: str) -> str:
    return " ".join(read_article_fast(f"<html><body>{body}</body></html>", URL).text.split())


@pytest.mark.parametrize(
    "beside",
    [
        f"<nav><ul>{LINKS}</ul></nav>",
        f"<div><ul>{LINKS}</ul></div>",
        f'<div class="site-menu">{LINKS}</div>',
        "<aside><p>Weather: fog, then sun.</p></aside>",
        '<div id="cookie-consent"><p>We use cookies for everything we do.</p></div>',
        '<div class="commentsArea"><p>I was on that boat, and the goats were three.</p></div>',
        '<div style="display: none"><p>You should not be reading this at all.</p></div>',
        "<div hidden><p>You should not be reading this at all.</p></div>",
        "<script>document.write('goats, goats, goats')</script><style>p { color: red }</style>",
        "<noscript><p>Enable JavaScript to see the goats.</p></noscript>",
        "<footer><p>Printed on the island, since 1874.</p></footer>",
    ],
)
@pytest.mark.parametrize("order", ["before", "after"])
def test_what_stands_beside_the_story_is_left_out(beside: str, order: str) -> None:
    story = f"<div>{STORY}</div>"
    assert text_of(beside + story if order == "before" else story + beside) == ALONE


@pytest.mark.parametrize("name", ["nav", "shared", "comment", "sidebar", "navigation ad"])
def test_a_name_does_not_remove_most_of_the_page(name: str) -> None:
    assert text_of(f'<div class="{name}" id="{name}">{STORY}</div>') == ALONE


def test_a_frame_that_holds_enough_is_the_story() -> None:
    assert text_of(f"<div><p>Bay Weekly</p></div><article>{STORY}</article>") == ALONE
    assert "Bay Weekly" in text_of(f"<p>Bay Weekly</p><article></article><div>{STORY}</div>")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.html")), ids=lambda path: path.stem)
def test_title_canonical_url_and_language_are_those_of_the_default_way(path: Path) -> None:
    fast, default = (read(path.read_bytes(), URL) for read in (read_article_fast, read_article))
    assert (fast.title, fast.canonical_url, fast.language) == (
        default.title,
        default.canonical_url,
        default.language,
    )


def test_copies_are_as_near_as_by_the_default_way() -> None:
    hashes = {
        path.stem: simhash(weigh(tokenize(read_article_fast(path.read_bytes()).text)))
        for path in EXAMPLES.glob("*.html")
    }
    distances = [
        hamming_distance(hashes[copy], hashes[original])
        for copy in hashes
        for original in hashes
        if copy.startswith(f"{original}-") and copy != "morning-market-ja-shift-jis"
    ]
    assert len(distances) == 14
    assert median(distances) <= 3
    for one, other in combinations(("tide-pools", "night-train", "repair-cafe", "lighthouse"), 2):
        assert hamming_distance(hashes[one], hashes[other]) > 12


def test_bytes_and_text_are_the_same_page() -> None:
    page = f"<title>Die Fähre</title><p>{TEXT} Die Fähre fährt.</p>"
    decoded = read_article_fast(page)
    assert decoded.text.endswith("Die Fähre fährt.")
    assert read_article_fast(page.encode()) == decoded
    assert read_article_fast(page.encode("cp1252"), charset="iso-8859-1") == decoded
    assert read_article_fast(page.encode("utf-16"), None) == decoded


@pytest.mark.parametrize("page", ["", " ", "<!-- x -->", "<html></html>", "<frameset><frame>"])
def test_a_page_without_text_is_an_article_without_text(page: str) -> None:
    assert read_article_fast(page).text.strip() == ""


def test_binary_data_is_not_a_page() -> None:
    with pytest.raises(NotHtmlError, match="PDF"):
        read_article_fast(b"%PDF-1.7\n" + b"tide " * 100)


def test_too_many_elements_are_refused() -> None:
    with pytest.raises(TooLargeError, match="500,000"):
        read_article_fast("<div>x</div>" * 600_000)


def test_without_numba_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from pgsimhash.page.fast import read_article_fast\n"
        "read_article_fast('<p>boats')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert MissingPackageError.__name__ in done.stderr
    assert "pip install 'pgsimhash[fast]'" in done.stderr


HOSTILE = {
    "nested": "'<div>' * 99_000 + TEXT",
    "nested names": "'<div class=ad>boats ' * 99_000 + 'x' * N",
    "nested lists": "'<ul><li><a href=x>boats</a>' * 24_000 + 'x' * N",
    "nested labels": "'<div>' * 50_000 + 'Related articles' + 'x' * N",
    "ends of nothing": "'<section><div>' * 20_000 + '</section></table></p>' * 20_000 + TEXT",
    "ends out of order": "('<div>' * 16 + '<section>' * 16 + '</div>' * 16) * 1_500 + TEXT",
    "names": "'<div class=\"' + 'a ' * (N // 2) + '\">' + TEXT",
    "many names": "('<div class=\"' + 'nav-x ' * 200 + '\">') * (N // 1300) + TEXT",
    "style": "'<div style=\"' + 'color: red; ' * (N // 12) + '\">' + TEXT",
    "quote": "'<p>boats</p>' * 1_000 + '<p title=\"' + 'x' * N",
    "comment": "'<p>boats<!--' + '-' * N",
    "comments": "'<!-->' * 99_000 + '<!--' * (N // 4)",
    "raw text": "'<script></scrip' * 99_000",
    "lines": "'Advertisement<br>' * 99_000 + TEXT",
    "nested formatting": "'<p>' + ''.join(f'<font a{i}>' for i in range(9_000)) + TEXT",
    "misnested": "'<a><b><i><u>' * 2_400 + '<p>x' * 100",
    "deep": "'<div>' * 200_000 + TEXT",
    "more tags": "'<p>boats' * 300_000",
    "more containers": "'<div>boats' * 150_000",
    "attributes": "'<p ' + ' '.join(f'a{i}' for i in range(100_000)) + '>' + TEXT",
    "text": "'<p>' + 'boats ' * (N // 6)",
    "one word": "'<p>' + 'x' * N",
    "nul": "('<p>' + TEXT * 100).encode() + bytes(N)",
    "entities": "'<p>' + '&amp;&#1;&#x110000;&bogus;' * (N // 26)",
    "tables": "'<table><tr><td>boats ' * 3_333",
    "options": "'<select><option><section>' * 3_333",
    "noscript": "'<noscript>' * (N // 10)",
}


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on a process")
def test_hostile_pages_stay_within_time_and_memory() -> None:
    code = "\n".join(
        [
            "import resource",
            "resource.setrlimit(resource.RLIMIT_CPU, (120, 120))",
            "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))",
            "from pgsimhash.page.fast import read_article_fast",
            f"N, TEXT = {2 * MEGABYTE}, {TEXT!r}",
            f"for name, page in {HOSTILE!r}.items():",
            "    print(name, read_article_fast(eval(page)).text[:0])",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join) | st.binary(max_size=400))
def test_any_page_ends_well(page: str | bytes) -> None:
    with suppress(NotHtmlError):
        article = read_article_fast(page, URL)
        assert not {"\0", "\1", "\x08", "\ud800"} & set(article.text)
