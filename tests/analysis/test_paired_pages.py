"""All pairs of near-duplicates with their URLs."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import psycopg
import pytest

from pgsimhash import Store, analysis, connect
from pgsimhash.analysis import paired_pages
from pgsimhash.errors import ArgumentError
from tests.refusals import because
from tests.store.read.test_clusters import FAR, fill

Known = dict[str, int]


def found(store: Store, distance: int) -> list[tuple[str, str, int]]:
    pairs = list(analysis.page_pairs(store, distance))
    for pair in pairs:
        assert (pair.a.simhash ^ pair.b.simhash).bit_count() == pair.distance <= distance
    return [
        (pair.a.url.removeprefix("https://"), pair.b.url.removeprefix("https://"), pair.distance)
        for pair in pairs
    ]


def some_pages(seed: int) -> Known:
    rng = random.Random(seed)
    centres = [rng.getrandbits(64) for _ in range(20)]
    return {
        f"a.example/{number}": rng.choice(centres)
        ^ sum(1 << bit for bit in rng.sample(range(64), rng.choice([0, 0, 1, 2, 3])))
        for number in range(300)
    }


@pytest.mark.parametrize("distance", [0, 3, 6])
@pytest.mark.parametrize("rows", [2_000, 7])
def test_every_simhash_is_paired_by_its_first_page_and_each_page_with_that(
    dsn: str, store: Store, distance: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paired_pages, "_ROWS", rows)
    former, known = some_pages(1), some_pages(2)
    fill(store, former)
    fill(store, known)
    with connect(dsn, collection="other") as other:
        fill(other, {f"b.example/{n}": value for n, value in enumerate(known.values())})
    # A page that reverts to an earlier simhash gets no new version.
    unchanged = [url for url in known if known[url] == former[url]]
    first: dict[int, str] = {}
    for url in [*unchanged, *(url for url in known if url not in unchanged)]:
        first.setdefault(known[url], url)
    expected = {
        (frozenset((first[a], first[b])), bits)
        for a, b in combinations(sorted(first), 2)
        if 0 < (bits := (a ^ b).bit_count()) <= distance
    } | {(frozenset((first[value], url)), 0) for url, value in known.items() if url != first[value]}
    pairs = found(store, distance)
    assert len(pairs) == len(expected) > 90
    assert {(frozenset((a, b)), bits) for a, b, bits in pairs} == expected


def test_a_hot_simhash_makes_as_many_pairs_as_it_has_other_pages(store: Store, dsn: str) -> None:
    fill(store, {"a.example/first": FAR, "a.example/near": FAR ^ 1})
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO pgsimhash.pages (collection_id, url, simhash) "
            "SELECT p.collection_id, 'https://b.example/' || n, p.simhash "
            "FROM pgsimhash.pages AS p, generate_series(1, 5000) AS n WHERE p.url LIKE '%first'"
        )
    pairs = found(store, 3)
    assert Counter(bits for *_, bits in pairs) == {0: 5000, 1: 1}
    assert {a for a, _, bits in pairs if bits == 0} == {"a.example/first"}


def test_titles_come_along(store: Store) -> None:
    words = " ".join(f"word{n} and" for n in range(60))
    for name in "ab":
        store.ingest(f"https://a.example/{name}", f"<title>Page {name}</title><p>{words}</p>")
    known = store.get("https://a.example/a")
    assert known is not None
    (pair,) = analysis.page_pairs(store)
    simhash = f"{known.simhash:016x}"
    assert pair.as_json() == {
        **{"a": "https://a.example/a", "b": "https://a.example/b", "distance": 0},
        **{"a_title": "Page a", "b_title": "Page b"},
        **{"a_simhash": simhash, "b_simhash": simhash},
    }


def test_a_page_deleted_meanwhile_is_left_out(store: Store, dsn: str) -> None:
    fill(store, {"a.example/1": 0, "a.example/2": 0, "a.example/3": 1, "a.example/4": 3})
    pairs = analysis.page_pairs(store, 1)
    assert next(pairs).distance == 0
    with connect(dsn) as other:
        other.delete("https://a.example/3")
    assert list(pairs) == []
    assert len(list(analysis.page_pairs(store, 2))) == 2


def test_a_loop_that_stops_early_leaves_the_store_usable(store: Store) -> None:
    fill(store, {f"a.example/{n}": n // 2 for n in range(200)})
    pairs = analysis.page_pairs(store, 3)
    next(pairs)
    assert store.add("https://a.example/", FAR).verdict == "new"
    pairs.close()
    assert store.add("https://a.example/", FAR).verdict == "unchanged"


def test_invalid_arguments_of_pairs_are_refused_at_once(store: Store) -> None:
    for distance in (13, -1):
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            analysis.page_pairs(store, distance)
    assert list(analysis.page_pairs(store)) == []
