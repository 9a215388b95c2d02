"""The test vectors in tests/vectors, for implementations in other languages."""

import json
from base64 import b64decode
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from pgsimhash import format_simhash, parse_simhash
from pgsimhash.hashing.bits import to_base32, to_bigint
from pgsimhash.hashing.tokens import tokenize_with_numbers
from pgsimhash.html import Article
from pgsimhash.html.parse import clean_utf8
from pgsimhash.schemes import get_scheme
from pgsimhash.schemes.registry import marked, scheme_names
from tests.conftest import HAS_READABILITY

VECTORS = Path(__file__).parent / "vectors"


def cases() -> list[Any]:
    files = {path.stem: path for path in sorted(VECTORS.glob("*.json"))}
    # Plain text gets the simhash of a page with this text.
    files["pgsimhash-text-1"] = files["pgsimhash-article-1"]
    return [
        pytest.param(name, case, id=f"{name}-{number}")
        for name, path in files.items()
        for number, case in enumerate(json.loads(path.read_text(encoding="utf-8")))
    ]


@pytest.mark.parametrize(("name", "case"), cases())
def test_a_vector(name: str, case: dict[str, Any]) -> None:
    scheme = get_scheme(name)
    text = case["text"]
    tokens = list(scheme.tokenize(text))
    assert tokens == case["tokens"]
    article = Article(markdown=text, text=text, title=None, canonical_url=None, language=None)
    weights = scheme.weigh(tokens, article)
    hashes = scheme.hash_features(weights.keys())
    features = [
        {"feature": feature, "weight": round(weight, 9), "hash": f"{value:016x}"}
        for (feature, weight), value in zip(weights.items(), hashes.tolist(), strict=True)
    ]
    by_name = itemgetter("feature")
    assert sorted(features, key=by_name) == sorted(case["features"], key=by_name)
    simhash, signature, *_ = scheme.vote(article)
    assert signature == marked(int(case["signature"], 16), scheme)
    assert format_simhash(simhash) == case["hex"]
    assert to_bigint(simhash) == case["decimal"]
    assert to_base32(simhash) == case["base32"]
    written = (case["hex"], str(case["decimal"]), case["base32"])
    assert {parse_simhash(form) for form in written} == {simhash}


@pytest.mark.parametrize(
    "path", sorted(VECTORS.glob("decoding/*.json")), ids=lambda path: path.stem
)
def test_the_characters_of_a_page(path: Path) -> None:
    for case in json.loads(path.read_text(encoding="utf-8")):
        assert clean_utf8(b64decode(case["page"])).decode() == case["text"]


@pytest.mark.skipif(not HAS_READABILITY, reason="readability-lxml is not for this Python")
@pytest.mark.parametrize("path", sorted(VECTORS.glob("reading/*.json")), ids=lambda path: path.stem)
def test_the_content_of_a_page(path: Path) -> None:
    for case in json.loads(path.read_text(encoding="utf-8")):
        assert get_scheme(path.stem).extract(case["html"], None, None).text == case["text"]


@pytest.mark.parametrize("path", sorted(VECTORS.glob("weights/*.json")), ids=lambda path: path.stem)
def test_the_weights_of_blocks(path: Path) -> None:
    for case in json.loads(path.read_text(encoding="utf-8")):
        article = get_scheme(path.stem).extract(case["html"], None, None)
        assert article.words is not None
        blocks = article.words.blocks
        assert [list(tokenize_with_numbers(block["text"])) for block in case["blocks"]] == [
            block.words for block in blocks
        ]
        assert [block["weight"] for block in case["blocks"]] == pytest.approx(
            [block.weight for block in blocks], abs=2e-4
        )
        simhash = format_simhash(get_scheme(path.stem).vote(article).simhash)
        assert simhash == case["hex"], f"libxml2 is {etree.LIBXML_VERSION}: see docs/schemes.md"


def test_every_shipped_scheme_has_vectors() -> None:
    shipped = [name for name in scheme_names() if name.startswith("pgsimhash-")]
    assert {case.values[0] for case in cases()} == set(shipped)
