"""Cached hashes of words equal MurmurHash3."""

from __future__ import annotations

import pytest

from pgsimhash.hashing.hashes import murmur3_64
from pgsimhash.html import read_article
from pgsimhash.schemes import article_features
from pgsimhash.schemes.article_features import BlockWeights, words_of


def test_remembered_hashes_are_those_of_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(article_features, "_KNOWN_MAX", 3)
    words = words_of(read_article(f"<p>ferry fähre 渡し船 {'x' * 300} lone pier two tides"))
    expected = murmur3_64(words.vocabulary).tolist()
    for _ in range(2):
        hashes = BlockWeights().hashed(words).hashes.tolist()
        assert hashes[: len(expected)] == expected
    assert len(article_features._HASHES) <= 3
