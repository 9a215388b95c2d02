"""rel=canonical is trusted if the option is set and the page is on the same site."""

from __future__ import annotations

import pytest

from pgsimhash import Store
from pgsimhash.pages.urls import same_site
from tests.store.test_store import ARTICLE, page, paragraph

FRONT = "https://a.example/story"


def linked(canonical: str, *paragraphs: str) -> str:
    return f'<link rel="canonical" href="{canonical}">' + page(*paragraphs)


def test_the_page_it_names_is_the_original_at_any_distance(store: Store) -> None:
    store.ingest(FRONT, page(*ARTICLE))
    other = linked(FRONT, paragraph(3), paragraph(4))
    dry = store.decide("https://a.example/2", other, canonical_link=True)
    verdict = store.ingest("https://a.example/2", other, canonical_link=True)
    assert dry == verdict
    assert (verdict.verdict, verdict.reason, verdict.duplicate_of) == (
        "near",
        "canonical_link",
        FRONT,
    )
    assert verdict.distance is not None
    assert verdict.distance > 8


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("https://a.example/1", "http://A.example:8080/2", True),
        ("https://www.a.example/", "https://a.example/", True),
        ("https://a.example/", "https://m.a.example/", True),
        ("https://www.a.example/", "https://m.a.example/", True),
        ("https://www.a.co.uk/", "https://m.a.co.uk/", True),
        ("https://a.co.uk/", "https://b.co.uk/", False),
        ("https://github.io/", "https://evil.github.io/", False),
        ("https://a.github.io/", "https://evil.github.io/", False),
        ("https://www.例子.中国/", "https://m.例子.中国/", True),
        ("https://10.0.1.1/", "https://20.0.1.1/", False),
        ("https://[::1]/", "https://[::2]/", False),
        ("https://localhost/", "https://LOCALHOST/", True),
        ("https://ba.example/", "https://a.example/", False),
        ("https://a.example/", "https://example/", False),
        ("file:///a.html", "https://a.example/", False),
        ("file:///a.html", "file:///b.html", True),
    ],
)
def test_a_site_is_what_one_owner_registered(a: str, b: str, same: bool) -> None:
    assert same_site(a, b) == same_site(b, a) == same
