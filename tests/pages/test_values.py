"""Times, ages, options of policies, URLs and the bytes of pages: valid and invalid values."""

import codecs
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash import Store, fingerprint
from pgsimhash.analysis import compare_pages
from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.html import read_article
from pgsimhash.pages import urls
from pgsimhash.pages.policies import checked_settings
from pgsimhash.pages.urls import check_url, normalized_url
from pgsimhash.pages.values import EARLIEST, check_age, check_time, parse_age, says_noindex
from pgsimhash.schemes import read_text
from pgsimhash.schemes.registry import scheme_names
from pgsimhash.sources import SourcePage
from tests.conftest import HAS_READABILITY
from tests.refusals import because

NOW = datetime(2024, 2, 29, 12, tzinfo=UTC)


class Nowhere(tzinfo):
    """A zone whose offset is unknown, and asking for it is an error."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        raise KeyError("Nowhere")

    dst = utcoffset

    def tzname(self, moment: datetime | None) -> str:
        return "Nowhere"


@pytest.mark.parametrize("hours", [-23, -16, 9, 16, 23])
def test_a_time_in_another_zone_is_the_same_moment(hours: int) -> None:
    there = NOW.astimezone(timezone(timedelta(hours=hours, minutes=59)))
    checked = check_time(there)
    assert (checked, checked.tzinfo) == (NOW, UTC)
    assert checked.isoformat() == NOW.isoformat()
    for time in (EARLIEST, datetime.now(UTC) + timedelta(hours=23)):
        assert check_time(time) == time


@pytest.mark.parametrize(("time", "reason"), [
    (datetime(1, 1, 1, tzinfo=UTC), "before 1970"),
    (datetime(1969, 12, 31, 23, 59, tzinfo=UTC), "before 1970"),
    (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))), "before 1970"),
    (datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))), "in the future"),
    ("2024-02-29T12:00:00Z", "a time is a datetime"), (date(2024, 2, 29), "a time is a datetime"),
    (1709208000, "a time is a datetime"), (pd.NaT, "a time is a datetime with a zone, .* not NaT"),
    (np.datetime64("NaT", "s"), "a time is a datetime"),
    (pd.Timestamp(NOW.date()), "a time is a datetime with a zone"),
    (NOW.replace(tzinfo=Nowhere()), "a time is a datetime"),
    (datetime(2024, 2, 29, 12), "a time is a datetime with a zone, such as"),
    (datetime.now(UTC) + timedelta(hours=25), "in the future; correct it"),
])  # fmt: skip
def test_an_impossible_time_of_fetching_is_refused(time: Any, reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        check_time(time)


@pytest.mark.parametrize(("text", "age"), [
    *(("90d", timedelta(days=90)), (" 1.5 H ", timedelta(minutes=90))),
    *(("30m", timedelta(minutes=30)), ("45s", timedelta(seconds=45))), ("2w", timedelta(weeks=2)),
])  # fmt: skip
def test_an_age_is_a_number_and_a_unit(text: str, age: timedelta) -> None:
    assert parse_age(text) == age


TEXTS = ["", "90", "d", "-1d", "0d", "1y", "9999999d", "9" * 400 + "d"]


@pytest.mark.parametrize(("check", "age"), [
    *((parse_age, text) for text in TEXTS), (check_age, timedelta(0)), (check_age, 30),
])  # fmt: skip
def test_an_invalid_age_is_refused(check: Any, age: Any) -> None:
    with pytest.raises(ArgumentError, check=because("invalid_argument")):
        check(age)


@pytest.mark.parametrize(("options", "message"), [
    ({"scope": "planet"}, "a scope is one of"), ({"min_tokens": -1}, "min_tokens"),
    ({"max_copies": 0}, "max_copies is a number from 1 to 2,147,483,647, not 0"),
    ({"window_size": "5"}, "window_size is a number"), ({"window_size": 2**31}, "window_size is a"),
    ({"max_age": timedelta(0)}, "an age must be above 0"),
    ({"distanse": 3}, r"no option 'distanse'; there are: distance, verify, .*"),
])  # fmt: skip
def test_invalid_options_are_refused_at_once(options: Any, message: str) -> None:
    with pytest.raises((ArgumentError, TypeError), match=message):
        checked_settings(options)


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


PAGE = min(Path("examples/pages").glob("*.html")).read_bytes()
MARKED = codecs.BOM_UTF16_LE + PAGE.decode().encode("utf-16-le")


def every_second(page: bytes) -> memoryview:
    return memoryview(bytes(byte for octet in page for byte in (octet, 0)))[::2]


KINDS = [bytearray, memoryview, every_second]


@pytest.mark.parametrize("kind", KINDS)
def test_readers_and_fingerprints(kind: Callable[[bytes], Any]) -> None:
    for page in (PAGE, MARKED):
        for read in (read_article, read_text):
            assert read(kind(page), None, "utf-8") == read(page, None, "utf-8")
    for name in scheme_names():
        if name.startswith("pgsimhash-") and (HAS_READABILITY or "blog" not in name):
            assert fingerprint(kind(PAGE), scheme=name) == fingerprint(PAGE, scheme=name)
    assert compare_pages(kind(PAGE), PAGE).distance == 0
    with pytest.raises(PageError, check=because("too_large")):
        fingerprint(kind(PAGE), max_bytes=len(PAGE) - 1)
    with pytest.raises(PageError, check=because("not_html")):
        fingerprint(kind(b"%PDF-1.7"))


@pytest.mark.parametrize("kind", KINDS)
def test_stores(store: Store, kind: Callable[[bytes], Any]) -> None:
    url = "https://a.example/1"
    assert store.decide(url, kind(PAGE)).reason == "first_seen"
    assert store.ingest(url, kind(PAGE)).keep
    assert store.ingest(url, kind(PAGE)).reason == "unchanged"
    copies = [(f"https://a.example/{number}", kind(PAGE)) for number in range(2, 6)]
    mutable: Any = kind(PAGE)
    pages: list[Any] = [*copies, SourcePage("https://a.example/6", mutable)]
    for jobs in (1, 2):
        verdicts = list(store.decide_many(pages, jobs=jobs))
        assert {verdict.reason for verdict in verdicts} == {"same_bytes"}


def test_the_bytes_of_a_page_are_immutable() -> None:
    page = bytearray(PAGE)
    html: Any = page
    source = SourcePage("https://a.example/", html)
    page.clear()
    assert source.html == PAGE
    assert hash(source) == hash(SourcePage("https://a.example/", PAGE))


@pytest.mark.parametrize(("robots", "says"), [
    ("noindex", True), ("follow, NOINDEX ", True), ("none", True), ("index, follow", False),
    ("unavailable_after: 2030-01-01, noindex", True), ("googlebot: noindex", False),
    ("otherbot: nofollow, noindex", False), ("", False), ("noindexed", False),
])  # fmt: skip
def test_robots_that_all_crawlers_obey(robots: str, says: bool) -> None:
    assert says_noindex(robots) == says
