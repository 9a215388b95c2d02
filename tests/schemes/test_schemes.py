"""From a page or a plain text to its fingerprint, by built-in schemes and by your own."""

import dataclasses
import itertools
import pickle
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash import fingerprint, format_simhash, schemes, simhash
from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.hashing import tokens
from pgsimhash.hashing.hashes import jenkins_64, murmur3_64
from pgsimhash.hashing.signature import verified
from pgsimhash.hashing.tokens import tokenize
from pgsimhash.hashing.votes import vote
from pgsimhash.html import Article, native, read_article
from pgsimhash.reading.workers import extract_many
from pgsimhash.schemes import Scheme, ShingleWeights
from pgsimhash.schemes.blog import long_words
from pgsimhash.schemes.features import WORDS_MAX, BlockWeights, murmur3_64_of_words, short_words
from pgsimhash.schemes.registry import (
    DEFAULT_SCHEME,
    SHORT_SCHEME,
    TEXT_SCHEME,
    get_scheme,
    scheme_names,
)
from pgsimhash.schemes.texts import scheme_for_texts, simhash_texts
from pgsimhash.sources import SourcePage
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
OWN = Scheme(
    "own-1", extract=read_article, weigh=ShingleWeights((3,)), tokenize=long_words,
    hash_features=jenkins_64, min_tokens=5,
)  # fmt: skip


def test_a_fingerprint_is_the_record_of_a_page() -> None:
    made = fingerprint(PAGE.encode(), URL)
    weights = DEFAULT_SCHEME.weigh((), read_article(PAGE))
    hashes = DEFAULT_SCHEME.hash_features(weights.keys())
    assert made.simhash == vote(hashes, np.fromiter(weights.values(), np.float64))
    assert made.scheme == DEFAULT_SCHEME.name == "pgsimhash-article-1"
    assert made.tokens == len(tokenize(f"The ferryman's morning\n{TEXT}"))
    assert (made.features, made.html_bytes) == (len(weights), len(PAGE.encode()))
    assert (made.title, made.language, made.url) == ("The ferryman's morning", "en-GB", URL)
    assert made.canonical_url == "https://bay.example/ferryman"
    assert made.markdown == f"# The ferryman's morning\n\n{TEXT}"
    assert pickle.loads(pickle.dumps(made)) == made


def test_the_simhash_does_not_depend_on_the_hash_seed() -> None:
    code = f"from pgsimhash import fingerprint; print(fingerprint({PAGE!r}).simhash)"
    printed = {python(code, PYTHONHASHSEED=seed) for seed in ("1", "4242")}
    assert printed == {f"{fingerprint(PAGE).simhash}\n"}
    # A different number here would be a different scheme, which needs a new name.
    assert format_simhash(fingerprint(PAGE).simhash) == "78ad76c6d79b0abc"


@pytest.mark.parametrize("other", [
    PAGE.encode(),
    f"<article><h1>The ferryman's morning</h1><p>{TEXT}</p></article>",
    PAGE.replace(
        "two goats", '<a href="https://goats.example/x"><b>two</b> goats</a><img src="/g.jpg">'
    ),
])  # fmt: skip
def test_bytes_boilerplate_links_and_images_do_not_count(other: str | bytes) -> None:
    assert fingerprint(other).simhash == fingerprint(PAGE).simhash


@pytest.mark.parametrize(("page", "reason"), [
    *((page, "too_short") for page in (
        "", "<p>Page not found</p>", "<script>let a = 'one two'</script>", b"", b"   \n",
        b"<!doctype html>", b"<!-- only a comment -->", b"\xff\xfe", b"\xff\xfe\xfd",
    )), *((page, "not_html") for page in (
        b"%PDF-1.7\n tide", "pages/tide-pools.html", b"C:\\pages\\a.htm", "https://a.example/b?c",
    )),
])  # fmt: skip
def test_a_page_without_text_has_no_fingerprint(page: str | bytes, reason: str) -> None:
    with pytest.raises(PageError, check=because(reason)):
        fingerprint(page)
    with pytest.raises(PageError, check=because("invalid_url")):
        fingerprint(PAGE, "news/7")


def test_the_least_words_and_most_elements_depend_on_the_scheme() -> None:
    page = "<p>Only four words here</p>"
    brief = Scheme("brief", read_article, ShingleWeights((1,)), min_tokens=4)
    made = fingerprint(page, scheme=brief)
    assert (made.scheme, made.tokens, made.features) == ("brief", 4, 4)
    with pytest.raises(PageError, match="4 words"):
        fingerprint(page, scheme=dataclasses.replace(brief, min_tokens=5))
    # So does the maximum of elements; that of bytes is an argument.
    page = f"<p>{TEXT}{'é' * 100}</p>"
    assert fingerprint(page, max_bytes=len(page) + 100).html_bytes == len(page) + 100
    with pytest.raises(PageError, match=r"larger than \d+ bytes \(max_bytes\)"):
        fingerprint(page, max_bytes=len(page) + 99)
    scheme = Scheme("limited-1", partial(read_article, max_elements=50), ShingleWeights())
    few = "".join(f"<p>word{n} and word{n + 1} again" for n in range(40))
    assert fingerprint(few, scheme=scheme).tokens > 100
    with pytest.raises(PageError, match="more than 50 elements"):
        fingerprint(few * 2, scheme=scheme)


def test_built_in_schemes_have_distances_and_go_to_other_processes() -> None:
    built_in = [schemes.get_scheme(name) for name in schemes.BUILT_IN]
    assert list(schemes.BUILT_IN) == [
        name for name in scheme_names() if name.startswith("pgsimhash-")
    ]
    assert schemes.get_scheme(schemes.DEFAULT_NAME) is DEFAULT_SCHEME
    assert [scheme.distance for scheme in built_in] == [8, 8, 8, 3, 3, 3]
    assert all(pickle.loads(pickle.dumps(one)) == one.check_portable() for one in built_in)
    near = dataclasses.replace(OWN, distance=2)
    assert (near, hash(near)) == (OWN, hash(OWN))  # the distance is not part of the recipe
    assert pickle.loads(pickle.dumps(near)).distance == 2
    with pytest.raises(ArgumentError, match="0 to 12"):
        dataclasses.replace(OWN, distance=13)


def test_a_registered_scheme_is_used_by_its_name_also_in_other_processes() -> None:
    with pytest.raises(ArgumentError, match=r"'own-1', only pgsimhash-article-1, .*register_sch"):
        fingerprint(PAGE, scheme="own-1")
    assert schemes.register_scheme(OWN) is OWN
    made = fingerprint(PAGE, scheme="own-1")
    words = long_words(f"The ferryman's morning {TEXT}")
    triples = [" ".join(words[start : start + 3]) for start in range(len(words) - 2)]
    assert (made.scheme, made.features) == ("own-1", len(set(triples)))
    assert made.simhash == simhash(triples, hash_function=jenkins_64)
    pages = [SourcePage("https://bay.example/1", PAGE.encode())] * 2
    first, second = extract_many(pages, jobs=2, scheme="own-1")
    assert first == second
    assert list(extract_many(pages, jobs=1, scheme=OWN)) == [first, second]
    assert getattr(first, "simhash") == made.simhash  # noqa: B009
    # A name stands for one recipe.
    same = dataclasses.replace(OWN, weigh=ShingleWeights((3,)))
    assert schemes.register_scheme(same) == OWN
    for other in ({"min_tokens": 6}, {"name": "pgsimhash-article-1"}):
        with pytest.raises(ArgumentError, match="choose a different name"):
            schemes.register_scheme(dataclasses.replace(OWN, **other))
    # One with a lambda stays in its process.
    scheme = dataclasses.replace(OWN, tokenize=lambda text: text.split())
    assert len(list(extract_many(pages, jobs=1, scheme=scheme))) == 2
    with pytest.raises(ArgumentError, match="or use one process"):
        extract_many(pages, jobs=2, scheme=scheme)


def test_words_and_pairs_weigh_their_counts() -> None:
    assert ShingleWeights((1, 2))(["low", "tide", "low", "tide"], Article("", "")) == {
        "low": 2, "tide": 2, "low tide": 2, "tide low": 1,
    }  # fmt: skip
    for wrong in ((), (0,)):
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            ShingleWeights(wrong)


def test_plain_text_is_its_own_main_content() -> None:
    weights = BlockWeights()([], Article(TEXT, TEXT))
    expected = simhash(weights, hash_function=murmur3_64_of_words)
    assert TEXT_SCHEME.simhash(TEXT) == expected
    assert fingerprint(TEXT, scheme="pgsimhash-text-1").simhash == expected
    coded = fingerprint(TEXT.encode("utf-16"), scheme=TEXT_SCHEME, charset="utf-16")
    assert (coded.markdown, coded.simhash) == (TEXT, expected)
    with pytest.raises(PageError, check=because("too_short")):
        TEXT_SCHEME.simhash("too short")
    for data, charset, text in (
        ("\ufeffFähre".encode(), None, "Fähre"), ("Fähre".encode("cp1252"), "cp1252", "Fähre"),
        ("Fähre".encode(), "no-such-charset", "Fähre"), (b"F\xe4hre", None, "F\ufffdhre"),
    ):  # fmt: skip
        assert schemes.read_text(data, charset=charset).text == text
    for body in (b"%PDF-1.7\n" + b"tide " * 100, bytes(range(32)) * 30):
        with pytest.raises(PageError, match="this is not text but", check=because("not_html")):
            fingerprint(body, scheme="pgsimhash-text-1")


BRIEF = dataclasses.replace(TEXT_SCHEME, name="brief", min_tokens=1)
TEXTS = [
    "The ferryman rows across the bay with letters, bread and two goats; 12 of 34 letters rhyme.",
    "Der Fährmann rudert über die Bucht, „mit Briefen“ und zwei Ziegen … jeden Tag, STRASSE naß",
    "朝の市場で魚と野菜を売る人々\nFerry No. 7 leaves at 6:40\nทะเล ٣ ٤ خمسة \u0301 e\u0301 ½",
    "x" * 40 + " a-very-long-word-and " * 30,
    "٣ ٤ خمسة",
    "lone \ud800 and \ufffd, \U0001f6a2 and \u200d",
]


def one_by_one(text: str, scheme: Scheme) -> int | None:
    try:
        return scheme.simhash(text)
    except PageError:
        return None


@pytest.mark.parametrize("scheme", [
    BRIEF, dataclasses.replace(BRIEF, weigh=BlockWeights(0.5)),
    dataclasses.replace(BRIEF, weigh=ShingleWeights((2, 1))),
    dataclasses.replace(BRIEF, hash_features=jenkins_64),
    dataclasses.replace(BRIEF, weigh=ShingleWeights((3, 1)), hash_features=murmur3_64),
    SHORT_SCHEME, get_scheme("pgsimhash-blog-words-1"),
    dataclasses.replace(get_scheme("pgsimhash-interop-1"), min_tokens=1),
])  # fmt: skip
def test_a_batch_gives_what_each_text_gives(scheme: Scheme) -> None:
    assert list(simhash_texts(TEXTS, scheme)) == [one_by_one(text, scheme) for text in TEXTS]


@pytest.mark.filterwarnings("ignore:.* texts have fewer")
@given(st.lists(st.text() | st.text(alphabet="ab1 é.\nß朝", max_size=200)))
def test_any_texts(texts: list[str]) -> None:
    assert list(simhash_texts(texts, BRIEF)) == [one_by_one(text, BRIEF) for text in texts]


def test_numbers_count_and_tokens_after_the_limit_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "wind of {} km/h, {} schools closed, {} ferries cancelled "
    one, other = (text.format(*numbers) * 3 for numbers in ((80, 4, 7), (140, 61, 12)))
    assert len(set(simhash_texts([one, other]))) == 2
    monkeypatch.setattr(native, "is_used", False)
    monkeypatch.setattr(tokens, "TOKENS_MAX", 50)
    text = " ".join(f"漢{number:x}w" for number in range(25))
    more = f"{text} and so on, and so on"
    assert list(simhash_texts([text, more])) == [one_by_one(more, BRIEF)] * 2


def test_texts_too_short_for_a_scheme_have_no_simhash_and_are_reported() -> None:
    long, title = " ".join(["word", *map(str, range(30))]), "iPhone 13, 128 GB"
    warning = r"3 of 4 texts have fewer than the 20 words .* short texts is 'pgsimhash-short-1'"
    with pytest.warns(UserWarning, match=warning):
        made = list(simhash_texts(["", title, title, long]))
    assert made == [None, None, None, TEXT_SCHEME.simhash(long)]
    assert None not in list(simhash_texts([title, long], SHORT_SCHEME))


@pytest.mark.parametrize(("lengths", "scheme"), [
    ([19, 19, 20], SHORT_SCHEME), ([19, 20], TEXT_SCHEME), ([0, 0, 0, 19, 20, 20], TEXT_SCHEME),
    ([0, 0, 1], SHORT_SCHEME), ([500_000], TEXT_SCHEME), ([], TEXT_SCHEME),
])  # fmt: skip
def test_the_majority_of_texts_chooses_the_scheme(lengths: list[int], scheme: Scheme) -> None:
    assert scheme_for_texts("a 7 " * (size // 2) + "a" * (size % 2) for size in lengths) is scheme


def test_few_texts_are_read_ahead_and_none_before_an_unknown_scheme_is_refused() -> None:
    endless = itertools.repeat(TEXTS[0])
    assert next(simhash_texts(endless, BRIEF)) == BRIEF.simhash(TEXTS[0])
    with pytest.raises(ArgumentError, match="pgsimhash-article-1"):
        simhash_texts(endless, "nonesuch")


# Short texts: numbers and single words separate them, spelling hardly does.

SPELLINGS = [
    ("iPhone 13, 128 GB", "IPHONE 13 128GB"), ("10 / 2048", "10 \u2013 2,048"),
    ("iPhone 13 (128 GB), 1,299 €", "iPhone 13, 128 GB: 1299€"),
    ("Send us an e-mail", "send us an email!"), ("Ausgabe ٣", "Ausgabe 3"),
    ("Wi-Fi antenna for boats", "WiFi Antenna for Boats"),
    ("The ferryman\u2019s daughter", "The Ferrymans Daughter"),
    ("Curry of lentils and carrots", "„Curry of carrots and lentils“"),
    ("Ferry leaves at 08:30 from the north pier", "ferry leaves at 8:30 from the north pier"),
    ("Mooring fees for small boats in the old harbour, 2024",
     "Mooring fees for small boats in the old harbor, 2024"),
    ("朝の市場で魚と野菜を売る人々", "「朝の市場で魚と野菜を売る人々」"),
]  # fmt: skip
CHANGES = [
    ("iPhone 13, 128 GB", "iPhone 16, 512 GB"), ("iPhone 13, 128 GB", "iPhone 13, 256 GB"),
    ("Minutes of the meeting of the harbour board, 3 May 2024, with all of its enclosures",
     "Minutes of the meeting of the harbour board, 4 May 2024, with all of its enclosures"),
    ("Germany 3, France 2", "Germany 2, France 3"), ("10 2048", "2048 10"),
    ("Your code is 482913", "Your code is 482931"), ("Apples from Austria", "Apples from Armenia"),
    ("Blue leather shoes", "Blue leather belts"), ("朝の市場で魚を売る", "夜の市場で肉を売る"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), [*SPELLINGS, *CHANGES])
def test_spellings_match_and_changed_numbers_or_words_do_not(one: str, other: str) -> None:
    a, b = (SHORT_SCHEME.vote(Article(text, text)) for text in (one, other))
    bits = (a.simhash ^ b.simhash).bit_count()
    match = bits <= SHORT_SCHEME.distance and verified(bits, a.signature, b.signature)
    assert match == ((one, other) in SPELLINGS)


WORDS = st.sampled_from(["harbour", "ferry", "boat", "pier", "bay", "goat"])
NUMBERS = st.lists(st.integers(0, 10**6), max_size=4)


@given(st.lists(WORDS, min_size=2), NUMBERS, NUMBERS)
def test_numbers_share_no_feature(words: list[str], some: list[int], others: list[int]) -> None:
    texts = ([*words, *map(str, numbers)] for numbers in (some, others))
    a, b = (set(SHORT_SCHEME.weigh(text, Article("", ""))) for text in texts)
    assert a == b if some == others else not a & b


def test_short_words_are_joined_and_split_from_numbers() -> None:
    assert short_words("E-mail don\u2019t 128GB 1,299.50 007 m² 10.5k") == [
        "email", "dont", "128", "gb", "1299", "50", "7", "m", "2", "10", "5", "k",
    ]  # fmt: skip
    assert one_by_one("Harbour", SHORT_SCHEME) is None
    assert one_by_one("Harbour 3", SHORT_SCHEME)
    # The first ones count.
    for word in ("w{}", "w", "7"):
        text = " ".join(word.format(number) for number in range(WORDS_MAX))
        assert len(short_words(f"{text} and more")) == WORDS_MAX
        assert SHORT_SCHEME.simhash(text) == SHORT_SCHEME.simhash(f"{text} and more")


@pytest.mark.parametrize("call", [scheme_for_texts, lambda texts: list(simhash_texts(texts))])
def test_a_missing_text_is_named(call: Callable[[list[str | None]], object]) -> None:
    with pytest.raises(TypeError, match=r"texts\[1\] is of type NoneType, not str; fill missing"):
        call(["Ferry", None])
    for one in ("Ferry", {"text": "Ferry"}):
        with pytest.raises(ArgumentError, match="texts are a list, not a"):
            call(one)  # type: ignore[arg-type]
