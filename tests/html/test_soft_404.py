"""Error pages and the like are detected, and articles about them are not."""

from __future__ import annotations

import pytest

from pgsimhash import PageError, fingerprint
from pgsimhash.html import read_article
from tests.refusals import because

SORRY = (
    "<p>We looked in the cellar, in the attic and under the pier, and what you asked for was in "
    "none of these places. Perhaps the address has changed since somebody wrote it down.</p>"
)
STORY = (
    "<p>The lighthouse keeper wrote the sentence on a slate and hung it on the door, because the "
    "visitors kept asking for a room that the tower never had. Forty years later the slate hangs "
    "in the museum of the town, and children copy it into their notebooks without knowing why. "
    "The curator says that it is the most photographed object of the whole collection, ahead of "
    "the anchor and of the stuffed pelican, which lost an eye in the flood. Nobody complained.</p>"
)


@pytest.mark.parametrize("head", [
    "<title>Page not found | Bay Weekly</title>", "<title>404 Not Found</title>",
    "<title>Bay Weekly: Error 404</title>",
    "<title>Bay Weekly</title><body><h1>Sorry, this page can\u2019t be found.</h1>",
    "<title>403 Forbidden</title>", "<title>503 Service Temporarily Unavailable</title>",
    "<title>Access denied - Bay Weekly</title>",
    "<title>Seite nicht gefunden \u2013 Buchtblatt</title>",
    "<title>お探しのページが見つかりませんでした</title>",
])  # fmt: skip
def test_a_page_that_says_not_found_is_an_error_page(head: str) -> None:
    with pytest.raises(PageError, check=because("error_page")):
        read_article(f"<html>{head}{SORRY}")


@pytest.mark.parametrize("page", [
    f"<title>Just a moment...</title>{SORRY}", f"<title>Attention Required! | Gate</title>{SORRY}",
    f"<title>Bay Weekly</title>{SORRY}<p>Please enable JavaScript and cookies to continue.</p>",
    f"<title>Bay Weekly</title>{SORRY}<p>Please verify that you are a human.</p>",
    f"<title>Are you a robot?</title>{SORRY}",
])  # fmt: skip
def test_a_page_that_requires_a_check_is_blocked(page: str) -> None:
    with pytest.raises(PageError, check=because("blocked")):
        fingerprint(page)


@pytest.mark.parametrize("name", ["root", "app", "__next"])
def test_a_shell_that_scripts_fill_needs_them(name: str) -> None:
    page = f'<title>Bay</title><div id="{name}"></div>{SORRY}<script src="/app.js"></script>'
    with pytest.raises(PageError, check=because("needs_script")):
        fingerprint(page)


@pytest.mark.parametrize("page", [
    f"<title>Page not found</title>{STORY * 3}",
    f"<title>A slate that says: not found</title><h1>Not found</h1>{STORY * 3}",
    f"<title>What 404 pages say about a newspaper</title>{SORRY}",
    f"<title>How to enable JavaScript</title>{SORRY}<p>Enable JavaScript in the settings.</p>",
    f"<title>Error 404, the band, plays on the pier</title>{SORRY}",
    f'<title>Bay Weekly</title><div id="root"></div>{STORY * 3}',
    f'<title>Bay Weekly</title><div id="root">{SORRY}</div>',
    f"<title>Just a moment: the ferry of 6:40</title><p>{STORY * 3}",
])  # fmt: skip
def test_an_article_about_such_pages_is_an_article(page: str) -> None:
    assert fingerprint(page).tokens >= 20


def test_almost_no_text_is_too_short() -> None:
    """The statements of a page of five words change nothing."""
    with pytest.raises(PageError, check=because("too_short")):
        fingerprint("<title>404 Not Found</title><h1>Not found</h1>")
