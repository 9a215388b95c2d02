"""Registered schemes, schemes with your own parts, and schemes in other processes."""

from __future__ import annotations

import dataclasses
import pickle
from functools import partial

import pytest

from pgsimhash import fingerprint, schemes, simhash
from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.hashing.features import weigh
from pgsimhash.hashing.hashes import fnv1a_64
from pgsimhash.hashing.tokens import Words, tokenize
from pgsimhash.html import read_article
from pgsimhash.reading.workers import extract_many
from pgsimhash.schemes.article_features import murmur3_64_of_words
from pgsimhash.schemes.texts import long_words, spaced_words
from pgsimhash.sources import SourcePage
from tests.refusals import because

TEXT = (
    "Every morning the ferryman rows across the bay with letters, bread and two goats. "
    "He learned the currents from his aunt, who drew them on the kitchen wall in chalk."
)
PAGE = f"""<html><head><title>The ferryman</title></head><body><article><h1>Two goats</h1>
<p>{TEXT}</p><img src="https://bay.example/goat.jpg" alt="A goat"></article></body></html>"""
OWN = schemes.Scheme(
    "own-1", extract=read_article, weigh=schemes.ShingleWeights((3,), "linear"),
    tokenize=Words(min_length=3, counters=False), hash_features=fnv1a_64, min_tokens=5,
)  # fmt: skip


def test_the_distance_is_not_part_of_the_recipe() -> None:
    near = dataclasses.replace(OWN, distance=2)
    assert (OWN.distance, near.distance) == (8, 2)
    assert (near, hash(near)) == (OWN, hash(OWN))
    assert pickle.loads(pickle.dumps(near)).distance == 2
    for wrong in (13, -1):
        with pytest.raises(ArgumentError, match="0 to 12"):
            dataclasses.replace(OWN, distance=wrong)


def test_the_schemes_that_ship_have_their_distances_and_go_to_other_processes() -> None:
    shipped = [
        schemes.get_scheme(name) for name in schemes.scheme_names() if name.startswith("pgsimhash-")
    ]
    assert [(scheme.name, scheme.distance) for scheme in shipped] == [
        ("pgsimhash-article-1", 8), ("pgsimhash-text-1", 8), ("pgsimhash-short-1", 6),
        ("pgsimhash-blog-words-1", 3), ("pgsimhash-blog-shingles-1", 3), ("pgsimhash-interop-1", 3),
    ]  # fmt: skip
    assert all(pickle.loads(pickle.dumps(one)) == one.check_portable() for one in shipped)


def test_a_scheme_is_found_by_its_name() -> None:
    assert schemes.get_scheme("pgsimhash-article-1") is schemes.DEFAULT_SCHEME
    assert fingerprint(PAGE, scheme="pgsimhash-interop-1").scheme == "pgsimhash-interop-1"
    assert fingerprint(PAGE, scheme="pgsimhash-article-1") == fingerprint(PAGE)
    with pytest.raises(ArgumentError, match=r"'mine', only pgsimhash-article-1, .*register_scheme"):
        fingerprint(PAGE, scheme="mine")


def test_a_scheme_of_own_parts_is_registered_and_used_by_name() -> None:
    assert schemes.register_scheme(OWN) is OWN
    assert schemes.scheme_names()[-1] == "own-1"
    made = fingerprint(PAGE, scheme="own-1")
    assert made.scheme == "own-1"
    assert made.simhash == fingerprint(PAGE, scheme=OWN).simhash
    tokens = [token for token in tokenize(f"Two goats {TEXT}") if len(token) > 2]
    assert made.simhash == simhash(weigh(tokens, (3,), "linear"), hash_function=fnv1a_64)


def test_a_name_stands_for_one_recipe() -> None:
    schemes.register_scheme(OWN)
    same = dataclasses.replace(OWN, weigh=schemes.ShingleWeights((3,), "linear"))
    assert schemes.register_scheme(same) == OWN
    with pytest.raises(ArgumentError, match="choose a different name"):
        schemes.register_scheme(dataclasses.replace(OWN, min_tokens=6))
    with pytest.raises(ArgumentError, match="pgsimhash-article-1"):
        schemes.register_scheme(dataclasses.replace(OWN, name="pgsimhash-article-1"))


def test_other_processes_need_not_have_registered_the_scheme() -> None:
    schemes.register_scheme(OWN)
    pages = [SourcePage("https://bay.example/1", PAGE.encode())] * 2
    (first, second) = extract_many(pages, jobs=2, scheme="own-1")
    assert first == second
    assert list(extract_many(pages, jobs=1, scheme=OWN)) == [first, second]
    assert getattr(first, "simhash") == fingerprint(PAGE, scheme=OWN).simhash  # noqa: B009


def test_a_scheme_with_a_lambda_stays_in_its_process() -> None:
    scheme = dataclasses.replace(OWN, tokenize=lambda text: text.split())
    pages = [SourcePage("https://bay.example/1", PAGE.encode())]
    assert len(list(extract_many(pages, jobs=1, scheme=scheme))) == 1
    with pytest.raises(ArgumentError, match="or use one process"):
        extract_many(pages, jobs=2, scheme=scheme)


def test_plain_text_is_its_own_main_content() -> None:
    expected = simhash(weigh(tokenize(TEXT)), hash_function=murmur3_64_of_words)
    assert schemes.TEXT_SCHEME.simhash(TEXT) == expected
    assert fingerprint(TEXT, scheme="pgsimhash-text-1").simhash == expected
    assert fingerprint(TEXT.encode(), scheme=schemes.TEXT_SCHEME).markdown == TEXT
    assert (
        fingerprint(TEXT.encode("utf-16"), scheme=schemes.TEXT_SCHEME, charset="utf-16").markdown
        == TEXT
    )
    with pytest.raises(PageError, check=because("too_short")):
        schemes.TEXT_SCHEME.simhash("too short")


def test_bytes_of_text_are_utf_8_by_default() -> None:
    assert schemes.read_text("\ufeffFähre".encode()).text == "Fähre"
    assert schemes.read_text("Fähre".encode("cp1252"), charset="cp1252").text == "Fähre"
    assert schemes.read_text("Fähre".encode(), charset="no-such-charset").text == "Fähre"
    assert schemes.read_text(b"F\xe4hre").text == "F\ufffdhre"


@pytest.mark.parametrize(("text", "words"), [
    ("Snake_case and x2, in 2024 10:30: see https://bay.example/a_b?c=d or WWW.Bay.example.",
     "snake_case and x2 in see or"),
    # Spacing marks (Mc) end a run, by the list of categories.
    ("naïve, cafe\u0301, हिन्दी", "naïve cafe\u0301 ह न्द"), ("_ 12 _1_ \u0301 ②", ""),
    ("x" * 1000 + " y", "x" * 256 + " y"),
    # Words that look a little like identifiers.
    ("the DOI of it, an ISBN; figure 10.1000 and x10.1000, pmc, arxiv and/or ark",
     "the doi of it an isbn figure and x10 pmc arxiv and or ark"),
    ("goats @ home; bay.example, U.S./Canada, sea.Tide or e.g./i.e. and @keeper",
     "goats home bay example u s canada sea tide or e g i e and keeper"),
])  # fmt: skip
def test_interoperable_tokens_are_runs_by_category_with_a_letter(text: str, words: str) -> None:
    assert schemes.CategoryWords()(text) == words.split()


@pytest.mark.parametrize(
    "hidden", ["\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u200e", "\ufe0f"]
)
def test_invisible_characters_split_no_interoperable_word(hidden: str) -> None:
    assert schemes.CategoryWords()(f"sea{hidden}weed{hidden} {hidden}tide") == ["seaweed", "tide"]
    assert schemes.CategoryWords()(f"https://bay.exam{hidden}ple/tide pool") == ["pool"]


@pytest.mark.parametrize("identifier", [
    "10.1000/182", "doi:10.1000/a(b)c;d", "DOI 10.1000/tide_pools", "doi.org/10.1000/abc",
    "doi: https://doi.org/10.1000/abc", "info:doi/10.1000/abc", "arXiv:1501.00001v2",
    "arXiv:hep-th/9901001", "ISBN 0-306-40615-X", "ISBN-13: 978-3-16-148410-0", "ISSN 1234-567X",
    "1234-567x", "PMID: 12345", "PMC1234567", "https://orcid.org/0000-0002-1825-009X",
    "ORCID 0000-0002-1825-009X", "urn:isbn:0451450523", "hdl:4263537/4000", "ark:/12025/abc",
    "mailto:keeper@bay.example", "keeper@bay.example", "the-keeper.of+goats@mail.bay.example",
    "bay.example/tides/2026?page=2#low", "BAY.example:8080/tides",
    "123e4567-e89b-12d3-a456-426614174000", "http://bay.example/潮汐",
])  # fmt: skip
def test_identifiers_are_no_interoperable_words(identifier: str) -> None:
    tide = "潮汐。"
    for text in (
        f"see {identifier} there",
        f"see ({identifier}) there",
        f"see\t{identifier}\nthere",
    ):
        assert schemes.CategoryWords()(text) == ["see", "there"]
    assert schemes.CategoryWords()(f"潮{identifier} tide") == ["潮", "tide"]
    assert schemes.CategoryWords()(f"http://bay.example/{tide}池 tide") == ["池", "tide"]


def test_words_between_white_space_keep_their_marks() -> None:
    text = "# The *Tide* is\u00a0in, [at](/dock) 10:30\ufeffİt"
    words = ["#", "the", "*tide*", "is", "in,", "[at](/dock)", "10:30", "i\u0307t"]
    assert spaced_words(text) == words
    assert long_words(text) == ["the", "*tide*", "in,", "[at](/dock)", "10:30", "i\u0307t"]


def test_stop_words_can_be_left_out_of_the_interoperable_scheme() -> None:
    assert schemes.CategoryWords(frozenset({"and", "in", "see", "or"}))("and IN a See") == ["a"]
    words = schemes.CategoryWords(frozenset({"the", "and"}))
    own = dataclasses.replace(schemes.INTEROP_SCHEME, name="own-interop-1", tokenize=words)
    assert own.simhash(TEXT) == own.simhash(TEXT.replace("the ", ""))
    assert own.simhash(TEXT) != schemes.INTEROP_SCHEME.simhash(TEXT)


def test_a_scheme_can_have_a_limit_of_its_own() -> None:
    scheme = schemes.Scheme(
        "mine-limited-1", partial(read_article, max_elements=50), schemes.ShingleWeights()
    )
    few = "".join(f"<p>word{n} and word{n + 1} again" for n in range(40))
    assert fingerprint(few, scheme=scheme).tokens > 100
    with pytest.raises(PageError, match="more than 50 elements"):
        fingerprint(few * 2, scheme=scheme)
