"""Valid URLs, and their normal forms."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash import PageError
from pgsimhash.pages import urls
from pgsimhash.pages.urls import check_url, normalized_url


@given(url=st.from_regex(urls._PLAIN, fullmatch=True))
def test_plain_urls_pass_the_full_check(url: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(urls, "_PLAIN", re.compile("(?!)"))
        assert check_url(url) == url


@pytest.mark.parametrize(("url", "normalized"), [
    ("https://example.com", "https://example.com/"),
    ("HTTPS://Example.COM:443/Path", "https://example.com/Path"),
    ("http://example.com:80/", "http://example.com/"),
    ("http://example.com:443/", "http://example.com:443/"), ("http://[::1]:80/", "http://[::1]/"),
    ("https://u:p@example.com:443/", "https://u:p@example.com/"),
    ("https://example.com/#top", "https://example.com/"),
    ("https://example.com/?b=2&a=1", "https://example.com/?a=1&b=2"),
    ("https://example.com/?utm_source=x&UTM_medium=y&id=3", "https://example.com/?id=3"),
    ("https://example.com/?fbclid=x&gclid=y&msclkid=z&q=1", "https://example.com/?q=1"),
    ("https://example.com/?", "https://example.com/"),
    ("https://example.com/%7euser/%e4", "https://example.com/~user/%E4"),
    ("https://example.com/ä", "https://example.com/%C3%A4"),
    ("https://bücher.example/", "https://xn--bcher-kva.example/"),
    ("file:///tmp/a%20b.html", "file:///tmp/a%20b.html"),
    ("https://example.com//a//b/", "https://example.com//a//b/"),
])  # fmt: skip
def test_spellings(url: str, normalized: str) -> None:
    assert normalized_url(url) == normalized
    assert normalized_url(normalized) == normalized


@pytest.mark.parametrize("url", [
    *("", "example.com", "ftp://a.example/", "https://[::1/", "http://", "http:///x"),
    *("http://a.example/\n", "https://a.example/ b", "http://a.example/" + "x" * 2048),
    # These are valid, and have no normal form.
    *("https://a.example:port/", "https://a.example/" + "ä" * 600),
])  # fmt: skip
def test_an_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(PageError):
        normalized_url(url)
    if not url.endswith(("port/", "ä")):
        with pytest.raises(PageError):
            check_url(url)


@given(st.text(max_size=60))
def test_any_text_is_normalized_once_or_an_error(text: str) -> None:
    try:
        once = normalized_url(f"https://example.com/{text}")
    except PageError:
        return
    assert normalized_url(once) == once
