"""The package computes what plain_loops.py computes, bit by bit.

PGSIMHASH_TEST_PAGES names folders with more pages, separated as in PATH. A real page takes a tenth
of a second.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from pgsimhash import PageError, fingerprint
from tests.conftest import ROOT
from tests.html.fuzzed_pages import CHARSETS, PAGES
from tests.html.hostile_pages import KINDS as HOSTILE_KINDS
from tests.html.hostile_pages import page
from tests.html.made_data import KINDS, around, invented, pair_of
from tests.schemes import plain_loops

FOLDERS = [ROOT / "examples" / "pages"]
FOLDERS += [
    Path(folder)
    for folder in os.environ.get("PGSIMHASH_TEST_PAGES", "").split(os.pathsep)
    if folder
]
FILES = [path for folder in FOLDERS for path in sorted(folder.rglob("*.html"))]
VECTORS = ROOT / "tests" / "vectors" / "weights" / "pgsimhash-article-1.json"
FUZZED_MAX = 20_000


def check(html: str | bytes, charset: str | None = None) -> str:
    """Compare the two, and return what became of the page."""
    try:
        ours = fingerprint(html, charset=charset, markdown=False)
    except PageError as error:
        if error.reason == "too_short":
            assert plain_loops.fingerprint(html, charset) is None
        return error.reason
    assert plain_loops.fingerprint(html, charset) == (
        ours.simhash, ours.signature, ours.text_digest, ours.structure, ours.tokens,
    )  # fmt: skip
    return "fingerprint"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_pages(path: Path) -> None:
    check(path.read_bytes())


def test_vectors() -> None:
    for case in json.loads(VECTORS.read_text(encoding="utf-8")):
        assert check(case["html"]) == "fingerprint"


@pytest.mark.parametrize("kind", KINDS)
def test_data_pages(kind: str) -> None:
    rng = random.Random(f"{kind} by plain loops")
    words = invented(rng, 500)
    ends = [
        check(around(data.markup(), site))
        for site in range(3)
        for data in pair_of(rng, kind, words)
    ]
    assert "fingerprint" in ends


@pytest.mark.parametrize("text", [
    "The harbour master keeps a ledger.\nUpdated 12 March 2024\n1,204 views \xa9 2024 the bay",
    "朝市の春、港の市場は 7/5/2016 12:30 に始まる。\nBoats: 12, 14 and 3 days ago.",
])  # fmt: skip
def test_plain_text(text: str) -> None:
    assert check(text) == "fingerprint"


@pytest.mark.long
@pytest.mark.parametrize("kind", HOSTILE_KINDS)
def test_hostile_pages(kind: str) -> None:
    html = page(kind, 6000)
    # The plain loops take time by the cube of the depth.
    check(html[:1500] if kind == "lists, nested" else html, HOSTILE_KINDS[kind].charset)


@pytest.mark.long
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(PAGES.filter(lambda html: len(html) < FUZZED_MAX), CHARSETS)
def test_fuzzed_pages(html: str | bytes, charset: str | None) -> None:
    check(html, charset)
