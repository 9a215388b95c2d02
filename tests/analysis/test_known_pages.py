"""Explanations of pages in the store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from pgsimhash import Store, analysis, connect, maintenance
from pgsimhash.analysis.sides import Side, read_side
from pgsimhash.db import migrate
from pgsimhash.errors import ArgumentError, NotFoundError
from pgsimhash.schemes import DEFAULT_SCHEME
from pgsimhash.sources import SourcePage
from tests.conftest import ROOT
from tests.refusals import because

PAGES = ROOT / "examples" / "pages"
NAMES = ["tide-pools", "tide-pools-print", "night-train"]


def page(name: str) -> bytes:
    return (PAGES / f"{name}.html").read_bytes()


def url(name: str) -> str:
    return f"https://a.example/{name}"


@pytest.fixture
def keeping(dsn: str) -> Iterator[Store]:
    """A collection with three pages and their Markdown."""
    with connect(dsn, collection="keeping", keep_markdown=True) as opened:
        for name in NAMES:
            opened.ingest(url(name), page(name))
        yield opened


def test_two_known_pages_are_explained_by_their_markdown(keeping: Store) -> None:
    found = analysis.explain(keeping, url("tide-pools"), url("tide-pools-print"))
    stored = keeping.get(url("tide-pools-print"))
    assert stored is not None
    assert (found.matches, found.distance) == (True, stored.distance)
    assert (found.max_distance, found.scheme, found.layout) == (8, keeping.scheme, keeping.layout)
    assert found.signature_distance is not None
    assert found.structure_distance is not None
    assert found.features is not None
    assert found.features.only_b.origin == "markdown"
    # Markdown contains the words without their weights.
    assert found.features.only_b.bits_off is not None
    assert found.features.only_b.bits_off <= 12
    assert found.difference is not None


def test_the_sentence_names_a_mark_that_decides(store: Store) -> None:
    for name, simhash in (("a", 0), ("b", 2**40 - 1), ("c", 1)):
        store.add(url(name), simhash)
    maintenance.mark(store, url("a"), url("b"), same=True)
    maintenance.mark(store, url("c"), url("a"), same=False)

    def sentence(one: str, other: str) -> str:
        return analysis.explain(store, url(one), url(other)).sentence

    assert sentence("b", "a").endswith(" But they are marked as the same: that decides.")
    assert sentence("a", "c").endswith(" But they are marked as different: that decides.")
    assert "marked" not in sentence("b", "c")


def test_without_markdown_the_bits_are_explained_alone(store: Store) -> None:
    for name in NAMES[:2]:
        store.ingest(url(name), page(name))
    found = analysis.explain(store, url("tide-pools"), url("tide-pools-print"))
    assert found.matches
    assert found.features is None
    assert found.difference is None


def test_a_known_page_is_compared_with_one_from_elsewhere(keeping: Store) -> None:
    fetched = read_side(page("tide-pools-redesign"), DEFAULT_SCHEME)
    found = analysis.explain(keeping, url("tide-pools"), fetched)
    assert found.features is not None
    assert (found.features.only_a.origin, found.features.only_b.origin) == ("markdown", "page")
    assert analysis.explain(keeping, url("tide-pools"), Side(0)).features is None


def test_the_present_version_counts_and_an_unknown_url_is_an_error(store: Store) -> None:
    store.add(url("x"), 0)
    store.add(url("x"), 7)
    assert analysis.explain(store, url("x"), Side(7)).distance == 0
    with pytest.raises(NotFoundError, match=r"does not know https://a\.example/none: .*ingest"):
        analysis.explain(store, url("none"), Side(0))


def test_a_distance_that_the_layout_does_not_support_is_refused(dsn: str) -> None:
    migrate.upgrade(dsn, schema="two", layout="32+32")
    with connect(dsn, schema="two") as store:
        assert analysis.explain(store, Side(0), Side(1)).max_distance == 7
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            analysis.explain(store, Side(0), Side(1), distance=8)


def test_versions_come_oldest_first_with_what_changed(keeping: Store) -> None:
    keeping.ingest(url("tide-pools"), page("tide-pools-redesign"))
    keeping.ingest(url("tide-pools"), page("tide-pools-redesign"))  # unchanged: no version
    keeping.ingest(url("tide-pools"), page("night-train"))
    found = analysis.versions(keeping, url("tide-pools"))
    assert [version.change for version in found] == [None, "redesign", "rewritten"]
    assert [version.number for version in found] == [1, 2, 3]
    assert (found[1].structure_distance or 0) > 12
    assert found[2].distance_to_first == (found[0].simhash ^ found[2].simhash).bit_count()
    assert all(version.markdown for version in found)
    assert not any(
        v.markdown for v in analysis.versions(keeping, url("tide-pools"), markdown=False)
    )
    with pytest.raises(NotFoundError, check=because("unknown_page")):
        analysis.versions(keeping, url("none"))


def test_versions_keep_the_order_in_which_they_came(store: Store) -> None:
    newer, older = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    store.add(url("x"), 0, fetched_at=newer)
    store.add(url("x"), 255, fetched_at=older)
    store.add(url("x"), 3)
    first, second, third = analysis.versions(store, url("x"))
    assert (first.fetched_at, second.fetched_at) == (newer, older)
    assert (first.distance, first.distance_to_first, first.change) == (None, 0, None)
    assert (second.distance, second.structure_distance) == (8, None)
    assert (third.distance, third.distance_to_first) == (6, 2)
    assert first.as_json()["simhash"] == "0" * 16


def test_a_page_that_comes_again_unchanged_was_seen_then(keeping: Store) -> None:
    begin, day = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)
    once, again = "https://a.example/once", "https://a.example/again"
    for address, time in ((once, begin), (again, begin), (again, begin + 60 * day)):
        html = page("tide-pools" if address == once else "night-train")
        (verdict,) = keeping.ingest_many([SourcePage(address, html, fetched_at=time)])
    assert verdict.verdict == "unchanged"
    (never_again,), (met,) = analysis.versions(keeping, once), analysis.versions(keeping, again)
    assert (never_again.seen_at, met.seen_at) == (begin, begin + 60 * day)
