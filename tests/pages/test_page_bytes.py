"""A page may be a ``bytes``, a ``bytearray`` or a ``memoryview`` everywhere."""

import codecs
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pgsimhash import Store, fingerprint
from pgsimhash.analysis.explanation import read_side
from pgsimhash.errors import PageError
from pgsimhash.html import read_article
from pgsimhash.pages.values import BytesLike, frozen
from pgsimhash.schemes import DEFAULT_SCHEME, read_text, scheme_names
from pgsimhash.sources import SourcePage
from tests.refusals import because

PAGE = min(Path("examples/pages").glob("*.html")).read_bytes()
MARKED = codecs.BOM_UTF16_LE + PAGE.decode().encode("utf-16-le")


def every_second(page: bytes) -> memoryview:
    return memoryview(bytes(byte for octet in page for byte in (octet, 0)))[::2]


KINDS = [bytearray, memoryview, every_second]


@pytest.mark.parametrize("kind", KINDS)
def test_readers_and_fingerprints(kind: Callable[[bytes], BytesLike]) -> None:
    for page in (PAGE, MARKED):
        for read in (read_article, read_text):
            assert read(kind(page), None, "utf-8") == read(page, None, "utf-8")
    for name in scheme_names():
        if name.startswith("pgsimhash-"):
            assert fingerprint(kind(PAGE), scheme=name) == fingerprint(PAGE, scheme=name)
    assert read_side(kind(PAGE), DEFAULT_SCHEME) == read_side(PAGE, DEFAULT_SCHEME)
    with pytest.raises(PageError, check=because("too_large")):
        fingerprint(kind(PAGE), max_bytes=len(PAGE) - 1)
    with pytest.raises(PageError, check=because("not_html")):
        fingerprint(kind(b"%PDF-1.7"))


@pytest.mark.parametrize("kind", KINDS)
def test_stores(store: Store, kind: Callable[[bytes], BytesLike]) -> None:
    url = "https://a.example/1"
    assert store.decide(url, kind(PAGE)).reason == "first_seen"
    assert store.should_store(url, kind(PAGE))
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
    assert frozen("<p>") == "<p>"
