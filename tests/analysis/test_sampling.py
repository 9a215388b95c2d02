"""Random pages of a collection."""

from __future__ import annotations

import numpy as np

from pgsimhash import Store, analysis


def test_a_sample_is_the_same_for_the_same_seed_and_another_for_another(store: Store) -> None:
    known = {f"https://a.example/{n}": n << 50 for n in range(200)}
    list(store.add_many([("https://a.example/7", 3), *known.items()], distance=0))
    first, again, other = (analysis.sample(store, 20, seed) for seed in (1, 1, 2))
    assert first[0] == again[0]
    assert first[1].tolist() == again[1].tolist()
    assert set(first[0]) != set(other[0])
    whole = analysis.sample(store, 1000)
    for size, (urls, simhashes, titles) in ((20, first), (20, other), (200, whole)):
        assert simhashes.dtype == np.uint64
        assert len(set(urls)) == len(urls) == size
        assert simhashes.tolist() == [known[url] for url in urls]
        assert titles == [None] * size
