"""The versions of a page, and the kinds of change."""

from datetime import UTC, datetime, timedelta

import pytest

from pgsimhash import Store, analysis, connect
from pgsimhash.analysis.history import Change, judge
from pgsimhash.errors import NotFoundError
from pgsimhash.sources import SourcePage
from tests.conftest import ROOT
from tests.refusals import because

URL = "https://a.example/x"


def page(name: str) -> bytes:
    return (ROOT / "examples" / "pages" / f"{name}.html").read_bytes()


@pytest.mark.parametrize(("same", "distance", "structure", "change"), [
    (True, 0, None, "same"), (True, 3, 12, "same"), (True, 9, 12, "same"),
    (True, 9, 13, "redesign"), (False, 0, None, "edited"), (False, 4, 0, "edited"),
    (False, 8, 12, "edited"), (False, 9, None, "rewritten"), (False, 9, 13, "rewritten"),
    (False, 8, 13, "redesign"), (False, 0, 13, "redesign"),
])  # fmt: skip
def test_text_content_and_structure_decide_the_kind_of_change(
    same: bool, distance: int, structure: int | None, change: Change
) -> None:
    assert judge(distance, structure, same=same) == change


def test_versions_come_oldest_first_with_what_changed(dsn: str) -> None:
    keeping = connect(dsn, collection="keeping", keep_markdown=True)
    for name in ("tide-pools", "tide-pools-redesign", "tide-pools-redesign", "night-train"):
        keeping.ingest(URL, page(name))
    found = analysis.versions(keeping, URL)
    assert [version.change for version in found] == [None, "redesign", "rewritten"]
    assert [version.number for version in found] == [1, 2, 3]
    assert (found[1].structure_distance or 0) > 12
    assert found[2].distance_to_first == (found[0].simhash ^ found[2].simhash).bit_count()
    assert all(version.markdown for version in found)
    assert not any(version.markdown for version in analysis.versions(keeping, URL, markdown=False))
    with pytest.raises(NotFoundError, check=because("unknown_page")):
        analysis.versions(keeping, f"{URL}/none")
    keeping.close()


def test_versions_keep_the_order_in_which_they_came(store: Store) -> None:
    newer, older = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    store.add(URL, 0, fetched_at=newer)
    store.add(URL, 255, fetched_at=older)
    store.add(URL, 3)
    first, second, third = analysis.versions(store, URL)
    assert (first.fetched_at, second.fetched_at) == (newer, older)
    assert (first.distance, first.distance_to_first, first.change) == (None, 0, None)
    assert (second.distance, second.structure_distance) == (8, None)
    assert (third.distance, third.distance_to_first) == (6, 2)
    assert first.as_json()["simhash"] == "0" * 16


def test_a_page_that_comes_again_unchanged_was_seen_then(store: Store) -> None:
    begin, day = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)
    once, again = "https://a.example/once", "https://a.example/again"
    for address, time in ((once, begin), (again, begin), (again, begin + 60 * day)):
        html = page("tide-pools" if address == once else "night-train")
        (verdict,) = store.ingest_many([SourcePage(address, html, fetched_at=time)])
    assert verdict.verdict == "unchanged"
    (never_again,), (met,) = analysis.versions(store, once), analysis.versions(store, again)
    assert (never_again.seen_at, met.seen_at) == (begin, begin + 60 * day)
