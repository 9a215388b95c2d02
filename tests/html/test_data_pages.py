"""Pages with tables, lists, numbers and code: different data are a different page."""

import random
from collections import Counter

import pytest

from pgsimhash import Store, fingerprint
from pgsimhash.errors import PageError
from pgsimhash.html.page_words import LISTED, NUMBER, PASSING, VOLATILE, WORD, words_by_line
from pgsimhash.schemes import DEFAULT_SCHEME
from tests.html.made_data import KINDS, around, invented, pair_of
from tests.html.made_streams import kept

PROSE = (
    "The harbour office publishes the measurements of the buoy at the mouth of the bay, with the "
    "forecast for the coming day and the state of the roads, as the wardens on duty report them by "
    "radio every morning and every evening."
)
KEPT = 0.995
PAIRS = 200


def test_other_data_are_another_page() -> None:
    """bench/README.md lists how many are separated."""
    lost = Counter[str]()
    for kind in KINDS:
        rng = random.Random(kind)
        words = invented(rng, 3000)
        for _ in range(PAIRS):
            site = rng.randrange(3)
            pair = [around(data.markup(), site) for data in pair_of(rng, kind, words)]
            try:
                lost[kind] += kept(pair) == 1
            except PageError:  # Too short for a fingerprint.
                lost[kind] += 1
    assert lost.total() <= (1 - KEPT) * PAIRS * len(KINDS), lost


STORM = (
    "<article><h1>Storm over the bay</h1><p>{} Gusts of {} to {} km/h, waves of {} metres; {} "
    "schools are closed.</p></article>"
)


def test_the_same_page_with_other_numbers_is_updated_or_a_small_change(store: Store) -> None:
    for url, prose, numbers in (
        ("https://example.org/storm", PROSE, (80, 140, 7, 61)),
        ("https://example.org/other", f"{PROSE} " * 3, (40, 60, 2, 61)),
    ):
        store.ingest(url, STORM.format(prose, 40, 60, 2, 4))
        verdict = store.ingest(url, STORM.format(prose, *numbers))
        assert (verdict.verdict, verdict.reason, verdict.keep) == ("updated", "changed", True)
    assert verdict.distance is not None
    assert verdict.distance <= DEFAULT_SCHEME.distance


@pytest.mark.parametrize(("before", "after"), [
    ("1,204 views", "1,311 views"), ("3 days ago", "4 days ago"),
    ("Last updated 12 March 2025, 10:15", "Last updated 2 April 2026, 9:40"),
    ("Page generated 2025-03-12", "Page generated 2026-04-02"),
])  # fmt: skip
def test_counters_and_dates_of_the_visit_leave_a_page_unchanged(before: str, after: str) -> None:
    html = f"<article><h1>Storm</h1><p>{PROSE}</p><p>{{}}</p><p>{PROSE}</p></article>"
    digests = {fingerprint(html.format(note)).text_digest for note in (before, after)}
    assert len(digests) == 1


def test_products_that_differ_in_their_numbers_are_apart() -> None:
    page = "<h1>{0}</h1><p>{0} in black, unlocked, with charger and cable. Ships today.</p>"
    assert kept(map(page.format, ("iPhone 13, 128 GB", "iPhone 16, 512 GB"))) == 2


def test_content_streamed_by_react_is_content() -> None:
    text = f"<h1>Tides</h1><p>{PROSE}</p>"
    streamed = fingerprint(f'<body><div hidden id="S:1">{text}</div></body>')
    assert streamed.simhash == fingerprint(f"<body><div>{text}</div></body>").simhash
    assert PROSE in streamed.markdown


@pytest.mark.parametrize(("text", "kinds"), [
    ("gusts of 140 km", [WORD, WORD, NUMBER, WORD]),
    ("at 12:30 today", [WORD, VOLATILE, VOLATILE, WORD]),
    ("on 7/5/2016", [WORD, VOLATILE, VOLATILE, VOLATILE]),
    ("on 12 March 2020", [WORD, VOLATILE, WORD, VOLATILE]),
    ("from 1.5 to 3.25", [WORD, NUMBER, NUMBER, WORD, NUMBER, NUMBER]),
    ("1,204 views", [PASSING, PASSING, WORD]), ("5 minutes ago", [PASSING, WORD, WORD]),
    ("Updated 12 March 2020", [WORD, PASSING, PASSING, PASSING]), ("© 2026 Ann", [VOLATILE, WORD]),
    ("in 2016", [WORD, NUMBER]),
])  # fmt: skip
def test_numbers_are_data_unless_they_are_dates_or_counters(text: str, kinds: list[int]) -> None:
    assert [list(block.kinds) for block in words_by_line(text).blocks] == [kinds]


def test_dates_in_tables_are_data() -> None:
    rows = "".join(f"<tr><td>{PROSE.split()[at]}<td>1{at % 10}:30<td>20:1{at}" for at in range(10))
    article = DEFAULT_SCHEME.extract(f"<table>{rows}</table>", None, None)
    assert article.words is not None
    kinds = [set(block.kinds) for block in article.words.blocks]
    assert kinds == [{WORD}, {LISTED}, {LISTED}] * 10
