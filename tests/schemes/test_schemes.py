"""From a page to its fingerprint."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

from pgsimhash import fingerprint, format_simhash, hamming_distance
from pgsimhash.errors import PageError
from pgsimhash.hashing.features import weigh
from pgsimhash.hashing.tokens import tokenize
from pgsimhash.hashing.votes import simhash, vote
from pgsimhash.html import read_article
from pgsimhash.schemes import DEFAULT_SCHEME, Scheme, ShingleWeights
from tests.programs import python
from tests.refusals import because

TEXT = (
    "Every morning the ferryman rows across the bay with letters, bread and two goats. "
    "He learned the currents from his aunt, who drew them on the kitchen wall in chalk. "
    "Visitors ask about the goats first; the answer, he says, is longer than the crossing."
)
PAGE = f"""<!doctype html><html lang="en-GB"><head><title>The  ferryman's
 morning</title><link rel="canonical" href="/ferryman"></head>
<body><nav><a href="/">Home</a> <a href="/bay">The bay</a></nav>
<article><h1>The ferryman's morning</h1><p>{TEXT}</p></article>
<footer>Printed on the island</footer></body></html>"""
URL = "https://bay.example/news/7?from=feed"


def test_a_fingerprint_is_the_record_of_a_page() -> None:
    made = fingerprint(PAGE.encode(), URL)
    article = read_article(PAGE)
    weights = DEFAULT_SCHEME.weigh((), article)
    hashes = DEFAULT_SCHEME.hash_features(weights.keys())
    assert made.simhash == vote(hashes, np.fromiter(weights.values(), np.float64))
    assert made.scheme == DEFAULT_SCHEME.name == "pgsimhash-article-1"
    assert made.tokens == len(tokenize(f"The ferryman's morning\n{TEXT}"))
    assert made.features == len(weights)
    assert made.title == "The ferryman's morning"
    assert made.canonical_url == "https://bay.example/ferryman"
    assert made.language == "en-GB"
    assert made.markdown == f"# The ferryman's morning\n\n{TEXT}"
    assert made.html_bytes == len(PAGE.encode())
    assert made.url == URL
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.simhash = 0  # type: ignore[misc]


def test_frozen_simhash() -> None:
    """A different number here would be a different scheme, which needs a new name."""
    assert format_simhash(simhash(weigh(tokenize(TEXT)))) == "78acfeef159b8fa4"
    assert format_simhash(fingerprint(PAGE).simhash) == "78ad76c6d59b0abc"


def test_the_simhash_does_not_depend_on_the_hash_seed() -> None:
    code = f"from pgsimhash import fingerprint; print(fingerprint({PAGE!r}).simhash)"
    printed = {python(code, PYTHONHASHSEED=seed) for seed in ("0", "1", "4242")}
    assert printed == {f"{fingerprint(PAGE).simhash}\n"}


@pytest.mark.parametrize("other", [
    PAGE.encode(),
    f"<article><h1>The ferryman's morning</h1><p>{TEXT}</p></article>",
    PAGE.replace(
        "two goats", '<a href="https://goats.example/x"><b>two</b> goats</a><img src="/g.jpg">'
    ),
])  # fmt: skip
def test_bytes_boilerplate_links_and_images_do_not_count(other: str | bytes) -> None:
    assert fingerprint(other).simhash == fingerprint(PAGE).simhash


def test_a_small_change_moves_few_bits_and_another_text_many() -> None:
    original = fingerprint(PAGE).simhash
    corrected = fingerprint(PAGE.replace("two goats", "three goats")).simhash
    other = fingerprint(
        "<p>Bakers on the hill knead before midnight, because the oven is shared with a potter "
        "and nobody, not even the mayor, remembers which of them lit it in the first place.</p>"
    ).simhash
    assert 0 < hamming_distance(original, corrected) <= 12
    assert hamming_distance(original, other) > 20


@pytest.mark.parametrize(
    "page",
    ["", " \n", "<html></html>", "<p>Page not found</p>", "<script>let a = 'one two'</script>"],
)
def test_too_little_text_has_no_fingerprint(page: str) -> None:
    with pytest.raises(PageError, check=because("too_short")):
        fingerprint(page)


def test_the_minimum_number_of_words_depends_on_the_scheme() -> None:
    page = "<p>Only four words here</p>"
    brief = Scheme("brief", read_article, ShingleWeights((1,)), min_tokens=4)
    made = fingerprint(page, scheme=brief)
    assert (made.scheme, made.tokens, made.features) == ("brief", 4, 4)
    with pytest.raises(PageError, match="4 words"):
        fingerprint(page, scheme=dataclasses.replace(brief, min_tokens=5))


def test_the_size_is_counted_in_bytes_and_its_error_names_the_fix() -> None:
    page = f"<p>{TEXT}{'é' * 100}</p>"
    assert fingerprint(page, max_bytes=len(page) + 100).html_bytes == len(page) + 100
    with pytest.raises(PageError, match=r"larger than \d+ bytes \(max_bytes\)"):
        fingerprint(page, max_bytes=len(page) + 99)


@pytest.mark.parametrize("url", ["news/7", "//bay.example/", "javascript:alert(1)", "", "http://["])
def test_the_url_must_be_valid(url: str) -> None:
    with pytest.raises(PageError, check=because("invalid_url")):
        fingerprint(PAGE, url)


def test_a_valid_label_from_the_http_header_is_used() -> None:
    german = f"<p>{TEXT} Die Fähre über die Bucht</p>"
    latin = fingerprint(german.encode("iso-8859-1"), charset="ISO-8859-1")
    assert latin.simhash == fingerprint(german).simhash
    assert fingerprint(german.encode(), charset="iso-8859-1").simhash == latin.simhash


@pytest.mark.parametrize("body", [b"%PDF-1.7\n" + b"tide " * 100, bytes(range(32)) * 30])
def test_the_text_scheme_refuses_bytes_that_are_no_text(body: bytes) -> None:
    with pytest.raises(PageError, match="this is not text but", check=because("not_html")):
        fingerprint(body, scheme="pgsimhash-text-1")
    german = "Die Fähre fährt über den See und zurück zu der Brücke am anderen Ufer " * 3
    for charset in ("utf-8", "windows-1252", "utf-16"):
        assert fingerprint(german.encode(charset), charset=charset, scheme="pgsimhash-text-1")
