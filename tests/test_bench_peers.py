"""The benchmark compares libraries on the same simhashes, and only if their results are equal."""

from __future__ import annotations

import sys
from itertools import combinations
from typing import TYPE_CHECKING

import click
import numpy as np
import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from bench import peers, search
    from bench.workload import random_simhashes
else:  # A script finds its neighbours under their own names.
    sys.path.append(str(ROOT / "bench"))
    import peers
    import search
    from workload import random_simhashes


def near_rows(one: list[int], other: list[int], distance: int) -> set[tuple[int, int]]:
    return {(n, b) for n, a in enumerate(one) for b in other if (a ^ b).bit_count() <= distance}


@pytest.mark.parametrize("distance", [3, 8])
def test_pgsimhash_finds_the_pairs_of_a_full_comparison(
    distance: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "PEER_ROWS", 300)
    monkeypatch.setattr(search, "PLANTED", 200)
    random = random_simhashes(400, np.random.default_rng(1))
    values, queries = search.peer_input(random, distance)
    known = values.tolist()
    pairs = {pair for pair in combinations(known, 2) if (pair[0] ^ pair[1]).bit_count() <= distance}
    assert len(pairs) >= 200
    lookups = near_rows(queries.tolist(), known, distance)
    for task, expected in (("all pairs", pairs), ("lookups", lookups)):
        found = peers.measured(peers.TASKS[task]["pgsimhash"], values, queries, distance)
        exact = peers.measured(lambda *_: expected, values, queries, distance)  # noqa: B023
        assert (found["answers"], found["digest"]) == (len(expected), exact["digest"])
        assert {"conversion", "search"} <= set(found["seconds"])


@pytest.mark.parametrize(
    "theirs",
    [{"answers": 0, "digest": "none"}, {"answers": 1000, "digest": "another"}],
)
def test_different_results_are_refused(theirs: dict[str, object]) -> None:
    ours = {"answers": 1000, "digest": "one"}
    search.check_same("all pairs", "a peer", ours, ours)
    with pytest.raises(click.ClickException, match="not the same"):
        search.check_same("all pairs", "a peer", ours, theirs)
    few = {"answers": 0, "digest": "none"}
    with pytest.raises(click.ClickException, match="too few"):
        search.check_same("all pairs", "a peer", few, few)
