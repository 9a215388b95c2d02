"""Hostile pages end in a fingerprint or in a PageError.

No test measures time. Bounded work runs in a process with a limit on memory and CPU time, far above
its need and far below quadratic growth.
"""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgsimhash import PageError, fingerprint
from pgsimhash.html import implementation
from pgsimhash.html.parse import ATTRIBUTES_MAX, DEPTH_MAX
from pgsimhash.schemes.registry import DEFAULT_SCHEME
from tests.html.fuzzed_pages import PIECES
from tests.html.texts import TEXT, parsed
from tests.programs import python
from tests.refusals import because

WORDS = fingerprint(f"<p>{TEXT}</p>").tokens
MEGABYTE = 1_000_000


def outcome(html: bytes | str, charset: str | None = None) -> str:
    try:
        made = fingerprint(html, charset=charset)
    except PageError as error:
        return error.reason
    return "fingerprint" if made.tokens >= DEFAULT_SCHEME.min_tokens else "short fingerprint"


@pytest.mark.parametrize("tag", ["div", "span", "b", "blockquote", "section", "em"])
@pytest.mark.parametrize("closed", [True, False])
def test_ten_thousand_nested_elements_lose_no_text(tag: str, closed: bool) -> None:
    ends = f"</{tag}>" * 10_000 if closed else ""
    page = f"{f'<{tag}>' * 10_000}{TEXT}{ends}<p>The gulls agree.</p>"
    assert "".join(parsed(page).itertext()) == f"{TEXT}The gulls agree."
    assert fingerprint(page).tokens >= WORDS


def test_other_deep_nesting_becomes_a_tree_of_limited_depth() -> None:
    for tags in ("<ul><li>", "<table><tr><td>", "<a href=x><i>", "<ol><li><p>"):
        assert fingerprint(f"{tags * 10_000}{TEXT}").tokens == WORDS, tags
    root = parsed("<div>" * 100_000 + TEXT)
    assert max(sum(1 for _ in node.iterancestors()) for node in root.iter()) < DEPTH_MAX
    assert "".join(root.itertext()) == TEXT
    # A form feed is white space.
    page = f"{'<div>' * 3000}{TEXT}\f<p title='a\fb'>boats"
    assert fingerprint(page).tokens == WORDS + 1


@pytest.mark.parametrize("part", [
    "<svg><g><p>a</g>\f<p>b</svg>&#1;c", "<p class=x>a</p>&#2;b",
    "<img><noscript><img src='a&#1;\f'>", "<head><section>a</section></head><body>&#3;b",
])  # fmt: skip
def test_control_characters_move_with_their_text(part: str) -> None:
    assert fingerprint(part + TEXT, ignore=".x").tokens >= WORDS


def test_ordinary_pages_are_left_to_the_parser() -> None:
    assert parsed("<div>" * 1000 + TEXT).xpath("count(//div)") == 1000
    # The flat builder keeps fewer attributes.
    many = " ".join(f"a{number}=1" for number in range(ATTRIBUTES_MAX * 2))
    root = parsed(f"<p {many}>" + f"{TEXT}<br>" * 1000)
    assert len(root.xpath("//p")[0].attrib) == ATTRIBUTES_MAX * 2


@pytest.mark.parametrize("attributes", [
    " ".join(f"a{number}=1" for number in range(100_000)),
    " ".join(f'a{number}=">"' for number in range(100_000)),
    " ".join(f"a{number}" for number in range(100_000)) + " z='<p>\">'", "class=x " * 100_000,
])  # fmt: skip
def test_a_hundred_thousand_attributes(attributes: str) -> None:
    page = f"<p {attributes}>{TEXT}</p>"
    assert len(parsed(page).xpath("//p")[0].attrib) <= ATTRIBUTES_MAX
    assert fingerprint(page).tokens == WORDS


@pytest.mark.parametrize(("start", "unit", "times", "message"), [
    ("", "<p>tide ", 50 * MEGABYTE // 8, "10,000,000"),
    *((TEXT, unit, 600_000, "500,000 elements") for unit in ("<p>x", "<br>", "<i></i>")),
    (f"{TEXT}<table>", "<tr><td>x", 600_000, "500,000 elements"),
    # A parser searches all open elements for each end tag.
    (TEXT, "<div></p>", 100_000, "within one another, and far too many end tags"),
])  # fmt: skip
def test_too_large_a_page_is_refused(start: str, unit: str, times: int, message: str) -> None:
    with pytest.raises(PageError, match=message):
        fingerprint(start + unit * times)
    few = "<div>" * 10_000 + "</p>" * 1000
    assert fingerprint(f"{few}{TEXT}").tokens == WORDS


LARGE = [
    "marks in turn", "marks to sort", "marks on many letters", "marks of scripts",
    "marks on a letter", "ligatures of eighteen", "squares of six", "UTF-16", "high bytes",
    "broken UTF-8", "accents of windows-1252", "ideographs", "words", "words of a letter", "links",
    "links elsewhere", "pictures", "paragraphs of a letter", "classes of their own",
    "attributes, many tags", "canonical links", "ends of the page that stay open",
    "a long tag of a script", "noscripts that stay open",
]  # fmt: skip
"""Kinds of 5 MB, half the maximum size, for speed; bench/hostile.py has all kinds at full size."""

SMALL = [
    "one long word", "white space", "entities", "entities of nothing", "spanning cells",
    "an uneven table", "a data URI", "open labels", "a tag that stays open", "broken links",
    "comments", "an open comment", "brackets in a script", "an internal subset", "backticks",
    "signs of Markdown", "formatting across blocks", "ends of nothing",
    "ends of nothing, in between", "ends of nothing, deeper and deeper", "anchors across tables",
    "articles, nested", "advertisements", "hidden, nested", "tables, nested", "articles in a row",
    "a long class", "white space in a style", "mixed encodings", "rows", "letters in italics",
    "shallow, again and again",
]  # fmt: skip
"""Kinds of 1 MB."""

REFUSED = {
    **dict.fromkeys(("anchors across tables", "ends of nothing, deeper and deeper",
                     "paragraphs of a letter"), "too_large"),
    "open labels": "too_short", "high bytes": "not_html",
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits and /proc")
def test_hostile_pages_stay_within_time_and_memory() -> None:
    # All in one process, because its start takes longer than a page.
    told = python(f"""
import resource
from pgsimhash import PageError, fingerprint
from tests.html.hostile_pages import KINDS, page
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

def peak():
    with open('/proc/self/status') as about:
        return 1024 * next(int(x.split()[1]) for x in about if 'VmHWM' in x)

for size, kinds in ({MEGABYTE}, {SMALL}), ({5 * MEGABYTE}, {LARGE}):
    for kind in kinds:
        try:
            fingerprint(page(kind, size), charset=KINDS[kind].charset)
        except PageError as error:
            end = error.reason
        else:
            end = "fingerprint"
        print(kind, end, peak(), sep="\\t", flush=True)
""")
    lines = [line.split("\t") for line in told.splitlines()]
    ends = {kind: end for kind, end, _ in lines}
    assert list(ends) == [*SMALL, *LARGE]
    assert {kind: end for kind, end in ends.items() if end != "fingerprint"} == REFUSED
    # The maximum of the process, so the first page with this size is reported.
    most = (400 if implementation() == "C" else 500) * MEGABYTE
    assert not [kind for kind, _, peak in lines if int(peak) > most]


STALLED = {
    "removed elements, deep": "'<article>' + LONG * 9 + '</p>' + ('<q>' + '<rt>x</rt>' * 8) * 2000",
    "scripts between words": "'<script></script>abcdefg hijklmn opqrst uvwxyz 01 ' * 199_000",
    "code below a long class": "f'<div class=\"{\"a \" * M}\">' + f'<pre>{LONG}</pre>' * 20_000",
    "empty titles, deep": "LONG + '<div>' * 1900 + '<title></title>' * 450_000",
    "ids without words, deep": "'<div id=a>' * 1900 + '. ' * 4 * M",
    "drawings in drawings": "LONG + '<svg><foreignobject>' * 900 + '<i></i>' * 440_000 + 'a'",
    "code in many lists": "LONG + '<ol start=999999990><li>' * 32 + '<pre>' + 'a\\n' * 4 * M",
}
"""Pages that once took 10 s and more, the first of them half a minute, and take one now."""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on a process")
@pytest.mark.parametrize("page", STALLED.values(), ids=list(STALLED))
def test_a_page_takes_time_in_proportion_to_its_size(page: str) -> None:
    python(f"""
import resource
from pgsimhash import PageError, fingerprint
M, LONG = 1_000_000, '<p>' + {TEXT[:200]!r}
page = {page}
resource.setrlimit(resource.RLIMIT_CPU, (8, 8))
try:
    fingerprint(page)
except PageError as error:
    assert error.reason == 'too_short'
""")


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the memory of a process")
@pytest.mark.parametrize("megabytes", [10, 30, 50])
def test_a_page_that_needs_too_much_memory_fails(megabytes: int) -> None:
    told = python(f"""
import resource
from pgsimhash.sources import SourcePage
from pgsimhash.reading.workers import extract
page = SourcePage('https://a.example/', '<p>{TEXT}</p>')
extract(page)
large = SourcePage(page.url, page.html * 15_000)
with open('/proc/self/status') as about:
    used = 1024 * next(int(x.split()[1]) for x in about if 'VmData' in x)
most = used + {megabytes} * {MEGABYTE}
resource.setrlimit(resource.RLIMIT_DATA, (most, most))
print(extract(large).reason)
""")
    assert told == "no_memory\n"


def test_entities_read_no_file_and_control_characters_do_not_reach_the_store() -> None:
    page = f"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><p>{TEXT} &e;</p>"
    assert "root:" not in fingerprint(page).markdown
    made = fingerprint(f"<title>a&#0;&#1;b</title><p>{TEXT}&#0;&#1;&#8;</p>")
    assert made.title is not None
    assert all(c.isprintable() for c in made.title.replace("\ufffd", ""))
    assert not {"\0", "\1", "\x08"} & set(made.markdown)


def test_odd_documents_numbers_and_urls() -> None:
    for body in ("<frameset><frame src=x></frameset>", "<plaintext>", "<svg><p>"):
        assert outcome(body + TEXT) in ("fingerprint", "too_short")
    # A list with an invalid number starts at 1.
    for digits in ("9" * 5000, "9" * 10, "\u0663", "\u00b2", "-3", " "):
        made = fingerprint(f"<p>{TEXT}</p><ol start='{digits}'><li>{TEXT}</li></ol>")
        assert "\n\n1. The harbour master" in made.markdown
    with pytest.raises(PageError, check=because("invalid_url")):
        fingerprint(f"<p>{TEXT}</p>", "http://[::1")
    page = f"<base href='http://[::1'><p>{TEXT} <a href='http://[x'>a</a><img src='//['></p>"
    assert fingerprint(page, "https://bay.example/").tokens == WORDS + 1


# An empty element with the id root makes a short page a shell of scripts; "0.HTM" alone is a path.
ENDS = {"fingerprint", "too_short", "error_page", "needs_script", "not_html"}


@settings(max_examples=400)
@given(st.sampled_from(["", "", "", "<div>" * 2100]), st.lists(PIECES, max_size=40).map("".join))
def test_any_markup_gives_a_fingerprint_or_a_page_error(deep: str, page: str) -> None:
    assert outcome(deep + page) in ENDS


@settings(max_examples=300)
@given(st.binary(max_size=400), st.none() | st.text(max_size=12))
def test_any_bytes_give_a_fingerprint_or_a_page_error(html: bytes, charset: str | None) -> None:
    for page in (html, f"<p>{TEXT}".encode() + html):
        assert outcome(page, charset) in ENDS | {"not_html"}
