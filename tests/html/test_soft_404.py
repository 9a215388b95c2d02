"""Error pages and the like are detected, and articles about them are not."""

import pytest

from pgsimhash import PageError, fingerprint
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


SHELL = f"<title>Bay</title><div id='{{}}'></div>{SORRY}<script src='/app.js'></script>"


@pytest.mark.parametrize(("reason", "page"), [
    *(("error_page", f"<title>{title}</title>{SORRY}") for title in (
        "Page not found | Bay Weekly", "404 Not Found", "Bay Weekly: Error 404", "403 Forbidden",
        "503 Service Temporarily Unavailable", "Access denied - Bay Weekly",
        "Seite nicht gefunden \u2013 Buchtblatt", "お探しのページが見つかりませんでした",
        "Bay Weekly</title><body><h1>Sorry, this page can\u2019t be found.</h1><title>",
    )),
    ("error_page", f"404 Not Found\n{SORRY.replace('<p>', '').replace('</p>', '')}"),
    *(("blocked", f"<title>{title}</title>{SORRY}") for title in (
        "Just a moment...", "Attention Required! | Gate", "Are you a robot?",
    )),
    *(("blocked", f"<title>Bay Weekly</title>{SORRY}<p>Please {please}.</p>") for please in (
        "enable JavaScript and cookies to continue", "verify that you are a human",
    )),
    *(("needs_script", SHELL.format(name)) for name in ("root", "app", "__next")),
    # The statements of a page of five words change nothing.
    ("too_short", "<title>404 Not Found</title><h1>Not found</h1>"),
])  # fmt: skip
def test_a_page_that_is_no_article_says_why(reason: str, page: str) -> None:
    with pytest.raises(PageError, check=because(reason)):
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
