"""Which part of a page is its article."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from pgsimhash import PageError, fingerprint
from pgsimhash.html import read_article
from pgsimhash.html.parse import parse
from pgsimhash.reading.kept_markdown import plain_text
from pgsimhash.schemes import DEFAULT_SCHEME

URL = "https://bay.example/news/7"
STORY = "".join(
    f"<p>{sentence}</p>"
    for sentence in (
        "The ferryman, who learned the currents from his aunt, rows across the bay every morning.",
        "He carries letters, bread and two goats, and in March a piano for the school on the hill.",
        "Visitors ask about the goats first; the answer, he says, is longer than the crossing.",
        "When fog comes in, the baker rings a bell on the pier, three strokes and then a pause.",
    )
)
LINKS = "".join(f'<li><a href="/{name}">More about {name}</a></li>' for name in ("a", "b", "c"))


def text_of(body: str) -> str:
    return " ".join(read_article(f"<html><body>{body}</body></html>", URL).text.split())


ALONE = text_of(STORY)


@pytest.mark.parametrize("beside", [
    f"<nav><ul>{LINKS}</ul></nav>", "<aside><p>Weather: fog, then sun.</p></aside>",
    '<div style="display: none"><p>You should not be reading this at all.</p></div>',
    "<div hidden><p>You should not be reading this at all.</p></div>",
    "<script>document.write('goats, goats, goats')</script><style>p { color: red }</style>",
    "<form><select><option>Ferry</option></select><button>Go</button></form>",
    "<footer><p>Printed on the island, since 1874.</p></footer>",
])  # fmt: skip
@pytest.mark.parametrize("order", ["before", "after"])
def test_content_beside_the_story_is_left_out(beside: str, order: str) -> None:
    story = f"<div>{STORY}</div>"
    body = beside + story if order == "before" else story + beside
    assert text_of(body) == ALONE


def test_names_remove_neither_most_of_a_page_nor_parts_that_they_name_by_a_substring() -> None:
    names = ("nav", "shared", "header-article", "comment", "sidebar", "navigation ad", "download")
    for name in names:
        assert text_of(f'<div class="{name}" id="{name}">{STORY}</div>') == ALONE, name
    # As substrings these contain share, ad, nav and comment.
    for name in ("shared-files", "adherence", "navigable", "commentary", "badge"):
        extra = f'<p class="{name}">The goats, for what it is worth, have never been seasick.</p>'
        assert "seasick" in text_of(f"<div>{STORY}{extra}</div>"), name


@pytest.mark.parametrize("tag", ["article", "main", "section", "div", "td"])
def test_the_story_is_found_without_help_from_names(tag: str) -> None:
    opening, closing = f"<{tag}>", f"</{tag}>"
    if tag == "td":
        opening, closing = "<table><tr><td>", "</td></tr></table>"
    frame = "<div><ul>{}</ul></div>{}<div><ol>{}</ol></div>"
    body = frame.format(LINKS * 5, f"{opening}{STORY * 6}{closing}", LINKS * 5)
    assert text_of(body) == text_of(STORY * 6)


def test_links_lists_and_images_of_the_story_stay() -> None:
    linked = STORY.replace("two goats", '<a href="/goats">two goats</a>')
    assert text_of(f"<div>{linked}</div>") == ALONE
    kettle, boots = "Bring a kettle, for the pier is cold.", "Bring boots, for the slip is wet."
    listed = f"<article><h1>Ferry</h1>{STORY}<ul><li>{kettle}</li><li>{boots}</li></ul></article>"
    assert text_of(listed) == f"Ferry {ALONE} {kettle} {boots}"
    # So does a page of nothing but a list.
    items = [f"Item {name} of the ferryman's freight" for name in "abcdefghijkl"]
    listed = "".join(f"<li>{item}</li>" for item in items)
    body = f"<div><span>Bay Weekly</span></div><div><section><ul>{listed}</ul></section></div>"
    assert " ".join(items) in text_of(body)
    assert text_of("") == ""
    # A lazy image takes its source from noscript.
    image = "<p><img alt=boat><noscript><img src='/boat.jpg'></noscript></p>"
    markdown = read_article(f"<article>{STORY}{image}</article>", URL).markdown
    assert "![boat](https://bay.example/boat.jpg)" in markdown


PLAIN = """Timetable, 3 May

Home | About | Contact us

The ferry crosses the bay at 8:30, 9:15 and 17:40, if 2 < wind < 7 & the pier is open.
* Goats: 4 EUR
"""


def test_plain_text_is_read_line_by_line() -> None:
    assert read_article("The ferry crosses every day.").markdown == "The ferry crosses every day."
    article = read_article(PLAIN, "https://bay.example/ferry.txt")
    assert article.text == PLAIN
    assert plain_text(article.markdown).split() == PLAIN.split()
    for page in (PLAIN, PLAIN.encode(), PLAIN.encode("utf-16")):
        made = fingerprint(page)
        assert made.simhash == DEFAULT_SCHEME.simhash(PLAIN)
        assert made.tokens == len(re.findall(r"\w+", PLAIN))
    assert fingerprint(f"<p>{PLAIN}").simhash != DEFAULT_SCHEME.simhash(PLAIN)


@given(st.text(alphabet="ab 7:.&;<\n\té漢", min_size=80))
def test_any_plain_text_has_the_simhash_of_the_text(text: str) -> None:
    text = text.replace("<a", "<7").replace("<b", "<7")
    try:
        expected = DEFAULT_SCHEME.simhash(text)
    except PageError:
        with pytest.raises(PageError):
            fingerprint(text)
    else:
        assert fingerprint(text).simhash == expected


@pytest.mark.parametrize("block", ["article", "main", "section", "custom-block"])
@pytest.mark.parametrize(
    "head", ["<title>Ferry</title>", "<head><meta name=a><title>Ferry</title>"]
)
def test_head_and_body_may_be_left_out(head: str, block: str) -> None:
    article = read_article(
        f"<!doctype html>{head}<{block}>{STORY}</{block}><footer>© 1874 The Bay Society</footer>"
    )
    assert (article.title, " ".join(article.text.split())) == ("Ferry", ALONE)


def test_elements_not_allowed_in_a_head_precede_the_body() -> None:
    root = parse("<head><title>Ferry</title><main>one</main> two <body>three<p>four</body>")
    assert root is not None
    assert etree.tostring(root) == (
        b"<html><head><title>Ferry</title></head>"
        b"<body><main>one</main> two three<p>four</p></body></html>"
    )


def test_title_canonical_url_and_language() -> None:
    article = read_article(
        "<html lang=' de '><head><base href='https://other.example/x/'>"
        "<title>\n Die Fähre\n</title><link rel='alternate canonical' href='faehre'></head>"
        f"<body>{STORY}",
        URL,
    )
    assert article.canonical_url == "https://other.example/x/faehre"
    assert (article.title, article.language) == ("Die Fähre", "de")
    for href in ("", "javascript:0", "http://[", "data:text/html,x", "/relative"):
        page = f"<link rel=canonical href='{href}'><svg><title>Arrow</title></svg>{STORY}"
        assert read_article(page).canonical_url is None
        assert read_article(f"<body>{page}").title is None
    # The first ten links are tried.
    broken, good = "<link rel=canonical href='http://['>", f"<link rel=canonical href={URL}>"
    assert read_article(f"{broken * 9}{good}{STORY}").canonical_url == URL
    assert read_article(f"{broken * 10}{good}{STORY}").canonical_url is None


def test_the_markdown_of_a_page_of_very_many_elements_is_paragraphs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = f"<h1>The ferry</h1><p>* No *gulls* may sit on the rail, nor any dogs.</p>{STORY}"
    assert "# The ferry" in read_article(page).markdown
    monkeypatch.setattr("pgsimhash.html.article.MARKED_UP_MAX", 2)
    article = read_article(page)
    assert article.markdown.startswith("The ferry\n\n\\* No \\*gulls\\* may sit")
    assert article.markdown.replace("\n\n", "\n").replace("\\", "") == article.text
