"""Blocks that say in words that they stand beside the text go, whatever they are called."""

from __future__ import annotations

import pytest

from pgsimhash.page import read_article
from tests.page.test_article import ALONE, STORY, URL

VOICES = "".join(
    f"<div><b>{name}</b><p>{said}</p></div>"
    for name, said in (
        ("Ines", "I was on that boat, and there were three goats, not two."),
        ("Piet", "The baker rang four times on Sunday. Somebody should ask her about it."),
    )
)
OTHERS = "".join(
    f"<div><a href='/{name}'>The {name} of the bay</a><p>It is back.</p></div>" for name in "abc"
)


def text_of(body: str) -> str:
    return " ".join(read_article(f"<html><body>{body}</body></html>", URL).text.split())


@pytest.mark.parametrize(
    "block",
    [
        f"<div><h3>2 Comments</h3>{VOICES}</div>",
        f"<div><div><h3><span>Comments (2)</span></h3></div>{VOICES}</div>",
        f"<section><p>Leave a reply</p>{VOICES}</section>",
        f"<h3>2 comments</h3><div>{VOICES}</div>",
        f"<div itemtype='https://schema.org/Comment'>{VOICES}</div>",
        f"<div><h4>Related articles</h4>{OTHERS}</div>",
        f"<div><h4>You might also like\u2026</h4>{OTHERS}</div>",
        f"<section><div><strong>Most read</strong></div>{OTHERS}</section>",
        f"<div><h4>Das könnte Sie auch interessieren</h4>{OTHERS}</div>",
        f"<div><h4>関連記事</h4>{OTHERS}</div>",
    ],
)
@pytest.mark.parametrize("inside", [True, False])
def test_comments_and_other_articles_go_by_their_headings(block: str, inside: bool) -> None:
    page = f"<article>{STORY}{block}</article>" if inside else f"<div>{STORY}</div>{block}"
    assert text_of(page) == ALONE


@pytest.mark.parametrize(
    "banner",
    [
        "<div><p>We use cookies to improve your experience.</p><a href=/c>Settings</a></div>",
        "<div><div><span>This site uses cookies.</span> <b>Accept all</b></div></div>",
        "<p>Diese Website verwendet Cookies. Mehr dazu in der Erklärung.</p>",
        "<section><h2>Your choice</h2><p>Nous utilisons des cookies, un peu.</p></section>",
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_cookie_banner_goes_by_what_it_says(banner: str, first: bool) -> None:
    story = f"<article>{STORY}</article>"
    assert text_of(banner + story if first else story + banner) == ALONE


@pytest.mark.parametrize(
    "part",
    [
        "<h3>Comments</h3><p>A comment in this language begins with a goat.</p>",
        "<section><h3>Related articles</h3><p>Both were written by hand.</p></section>",
        "<section><h3>Read more</h3><p>Her advice to the school was to read more.</p></section>",
        "<p>We use cookies in the galley, with raisins, and everyone is happy about it.</p>",
        "<p>Comments (2) were made on the pier.</p>",
    ],
)
def test_what_only_sounds_like_it_stays(part: str) -> None:
    said = text_of(f"<article>{STORY}{part}</article>")
    assert said.startswith(ALONE)
    assert len(said) > len(ALONE) + 20


def test_comments_that_are_most_of_the_page_are_the_page() -> None:
    page = f"<div><div><h3>12 comments</h3>{STORY}</div></div>"
    assert ALONE in text_of(page)
