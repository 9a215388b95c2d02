"""Hostile pages end in a fingerprint or in a PageError.

No test measures time. Bounded work runs in a process with a limit on memory and CPU time, far above
its need and far below quadratic growth.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgsimhash import PageError, fingerprint
from pgsimhash.html.parse import ATTRIBUTES_MAX, DEPTH_MAX, parse
from pgsimhash.schemes import DEFAULT_SCHEME
from tests.refusals import because

TEXT = (
    "The harbour master keeps a ledger of every boat, its cargo and its temper. On calm days she "
    "reads it aloud to the gulls, who correct her spelling. On stormy days nobody dares to ask "
    "which boats are missing, because the ledger answers before she does."
)
WORDS = fingerprint(f"<p>{TEXT}</p>").tokens
MEGABYTE = 1_000_000
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


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
    root = parse(page)
    assert root is not None
    assert "".join(root.itertext()) == f"{TEXT}The gulls agree."
    assert fingerprint(page).tokens >= WORDS


@pytest.mark.parametrize("tags", ["<ul><li>", "<table><tr><td>", "<a href=x><i>", "<ol><li><p>"])
def test_other_deep_nesting(tags: str) -> None:
    assert fingerprint(f"{tags * 10_000}{TEXT}").tokens == WORDS


def test_a_deep_page_becomes_a_tree_of_limited_depth() -> None:
    root = parse("<div>" * 100_000 + TEXT)
    assert root is not None
    deepest = max(root.iter(), key=lambda node: sum(1 for _ in node.iterancestors()))
    assert sum(1 for _ in deepest.iterancestors()) < DEPTH_MAX
    assert "".join(root.itertext()) == TEXT


def test_an_ordinary_page_may_be_a_thousand_deep() -> None:
    root = parse("<div>" * 1000 + TEXT)
    assert root is not None
    assert root.xpath("count(//div)") == 1000


@pytest.mark.parametrize(
    "attributes",
    [
        " ".join(f"a{number}=1" for number in range(100_000)),
        " ".join(f'a{number}=">"' for number in range(100_000)),
        " ".join(f"a{number}" for number in range(100_000)) + " z='<p>\">'",
        "class=x " * 100_000,
    ],
)
def test_a_hundred_thousand_attributes(attributes: str) -> None:
    page = f"<p {attributes}>{TEXT}</p>"
    root = parse(page)
    assert root is not None
    assert len(root.xpath("//p")[0].attrib) <= ATTRIBUTES_MAX
    assert fingerprint(page).tokens == WORDS


def test_a_form_feed_in_a_deep_page_is_white_space() -> None:
    page = f"{'<div>' * 3000}{TEXT}\f<p title='a\fb'>boats"
    assert fingerprint(page).tokens == WORDS + 1


def test_few_pages_need_the_flat_builder() -> None:
    # Its marks: it keeps fewer attributes than the parser does.
    many = " ".join(f"a{number}=1" for number in range(ATTRIBUTES_MAX * 2))
    root = parse(f"<p {many}>" + f"{TEXT}<br>" * 1000)
    assert root is not None
    assert len(root.xpath("//p")[0].attrib) == ATTRIBUTES_MAX * 2


def test_a_page_of_fifty_megabytes_is_refused_unread() -> None:
    with pytest.raises(PageError, match="10,000,000"):
        fingerprint(b"<p>tide " * (50 * MEGABYTE // 8))


@pytest.mark.parametrize("element", ["<p>x", "<br>", "<i></i>", "<tr><td>x"])
def test_too_many_elements_are_refused(element: str) -> None:
    start = "<table>" if "td" in element else ""
    with pytest.raises(PageError, match="500,000 elements"):
        fingerprint(f"<p>{TEXT}</p>{start}{element * 600_000}")


def test_a_deep_page_with_too_many_end_tags_is_refused_at_once() -> None:
    # A parser searches all open elements for each of them.
    with pytest.raises(PageError, match="within one another, and far too many end tags"):
        fingerprint(TEXT + "<div></p>" * 100_000)
    few = "<div>" * 10_000 + "</p>" * 1000
    assert fingerprint(f"{few}{TEXT}").tokens == WORDS


LARGEST = {
    "marks in turn": "f'<p>{TEXT} a' + '\u0301\u0316' * (N // 4)",
    "marks of several decompositions": "f'<p>{TEXT} a' + '\u0344\u0f71\u0345\u0316' * (N // 9)",
    "marks on a hundred thousand letters": "f'<p>{TEXT}' + ('a' + '\u0316\u0301' * 20) * (N // 81)",
    "marks of a script": "f'<p>{TEXT}' + ('\u05b4\u05bc\u05c1' * 3 + ' ') * (N // 19)",
    "one mark": "f'<p>{TEXT} a' + '\u0301' * (N // 2)",
    "ligatures of eighteen": "f'<p>{TEXT}' + '\ufdfa' * (N // 3)",
    "squares of six": "f'<p>{TEXT}' + '\u3316' * (N // 3)",
    "ligatures in UTF-16": "(f'<p>{TEXT}' + '\ufdfa' * (N // 2 - 500)).encode('utf-16')",
    "high bytes": "b'<p>' + random.randbytes(N).translate(bytes(range(128, 256)) * 2)",
    "broken characters": "f'<p>{TEXT}'.encode() + b'\\xc3(\\xe2\\x82(\\xf0\\x9f\\x98' * (N // 9)",
    "accents of windows-1252": "f'<p>{TEXT}'.encode() + b'\\xe9 ' * (N // 2)",
    "ideographs": "'<p>' + ''.join(random.choices([*map(chr, range(19968, 40900))], k=N // 3))",
    "different words": "f'<p>{TEXT}' + ' '.join(hex(n)[2:] + 'z' for n in range(N // 8))",
    "words of one letter": "f'<p>{TEXT}' + 'a ' * (N // 2)",
    "links": "f'<p>{TEXT}' + '<a href=/harbour/x>harbour</a> ' * (N // 32)",
    "links to other sites": "f'<p>{TEXT}' + '<a href=http://h.example/a?b>y</a>' * (N // 35)",
    "pictures": "f'<p>{TEXT}' + '<img srcset=\"a 1x, b\">' * (N // 23)",
    "paragraphs": "f'<p>{TEXT}' + '<p>x' * (N // 4)",
    "classes of their own": "''.join(f'<p class=\"c{n} d{n}\">w{n} v' for n in range(N // 40))",
    "nested elements": "TEXT * 9 + ('<div>' * 200 + 'x' + '</div>' * 200) * (N // 4200)",
    "cells": "TEXT * 9 + '<table>' + '<tr><td>boats<td>nets' * (N // 63)",
    "letters in italics": "f'<p>{TEXT}' + '<i>x</i> ' * (N // 21)",
    "attributes": "('<p ' + ' '.join(f'a{n}=1' for n in range(1000)) + '>boat') * (N // 6900)",
    "attributes, many tags": 'f\'<p {" ".join(f"a{n}" for n in range(400))}>x\' * (N // 2000)',
    "canonical links": "'<link rel=canonical href=\"http://[\">' * (N // 36) + TEXT",
}
"""Pages of half the maximum size, for speed; bench/hostile.py has the full size."""

BOUNDED = {
    "one long word": "f'<p>{TEXT}' + 'a' * N",
    "white space": "f'<p>{TEXT}' + ' ' * N",
    "entities": "f'<p>{TEXT}' + '&amp;&#1;&#x110000;&bogus;' * (N // 26)",
    "a large table": "f'<p>{TEXT}</p><table>' + ('<tr>' + '<td>x y' * 50) * (N // 400)",
    "a wide table": "f'<p>{TEXT}</p><table><tr>' + '<th colspan=1000>x' * (N // 20)",
    "an uneven table": "f'<p>{TEXT}</p><table><tr>' + '<th>x' * 99 + '<tr><td>y' * (N // 20)",
    "a data URI": "f'<p>{TEXT}<img src=\"data:image/png;base64,' + 'A' * N + '\">'",
    "open tags": "'<meta ' * (N // 6) + TEXT",
    "open labels": "'<meta charset=' * (N // 14) + TEXT",
    "broken links": "f'<p>{TEXT}' + '<a href=\"http://[::1\">y</a> ' * (N // 60)",
    "comments": "f'<p>{TEXT}' + '<!-- x -->' * (N // 10)",
    "an open comment": "f'<p>{TEXT}<!--' + '-' * N",
    "an open script": "f'<p>{TEXT}<script>' + '<' * N",
    "doctype entities": "'<!DOCTYPE x [' + '<!ENTITY a \"&a;\">' * (N // 17) + ']>&a;' + TEXT",
    "backticks": "f'<pre>{TEXT}' + '`' * N",
    "marks": "f'<p>{TEXT}' + '*_[]' * (N // 4)",
    "nested marks": "f'<p>{TEXT}' + '<em><a href=x>x ' * (N // 16)",
    "ends of nothing": "TEXT + '<div>' * 2000 + '</b>' * (N // 4)",
    "ends of nothing, in between": "TEXT + '<div>' * 2000 + '<br></b>' * (N // 9)",
    "ends of nothing, deeper and deeper": "TEXT + '<div></p>' * (N // 9)",
    "anchors across tables": "TEXT + '<a href=x><table><tr><td></a>x' * (N // 30)",
    "nested articles": "f'<p>{TEXT}' + '<article><p>boats, nets, and rope' * (N // 40)",
    "nested advertisements": "f'<p>{TEXT}' + '<div>Advertisement ' * (N // 20)",
    "nested hidden": "f'<p>{TEXT}' + '<div hidden>boats ' * (N // 20)",
    "nested tables": "'<table><tr><td>boats ' * (N // 25) + TEXT",
    "flat articles": "'<article><p>boats, nets, and more rope</p></article>' * 6000",
    "a long class": "f'<p class=\"' + 'aB-' * (N // 3) + f'\">{TEXT}'",
    "a long style": "f'<p style=\"display:' + ' ' * N + f'\">{TEXT}'",
    "windows-1252": "(f'<p>{TEXT}' + 'é ' * (N // 2)).encode('cp1252')",
    "mixed encodings": "f'<p>{TEXT}'.encode() + (b'\\xc3\\xa9' * 9 + b'\\xe9 ') * (N // 20)",
}


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on a process")
def test_hostile_pages_stay_within_time_and_memory() -> None:
    # All in one process, because its start takes longer than a page.
    code = "\n".join(
        [
            "import random, resource",
            "resource.setrlimit(resource.RLIMIT_CPU, (120, 120))",
            "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))",
            "from pgsimhash import PageError, fingerprint",
            "def peak():",
            # ru_maxrss includes the memory of the parent at the fork; VmHWM does not.
            "    try:",
            "        with open('/proc/self/status') as about:",
            "            return 1024 * next(int(x.split()[1]) for x in about if 'VmHWM' in x)",
            "    except OSError:",
            f"        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * {MAXRSS_UNIT}",
            f"TEXT = {TEXT!r}",
            f"M, small, large = {MEGABYTE}, {BOUNDED!r}, {LARGEST!r}",
            "for N, pages in (M, small), (5 * M, large):",
            "    for name, page in pages.items():",
            "        try:",
            "            fingerprint(eval(page))",
            "        except PageError as error:",
            "            end = error.reason",
            "        else:",
            "            end = 'fingerprint'",
            "        print(name, end, peak(), flush=True)",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.rsplit(maxsplit=2) for line in done.stdout.splitlines()]
    ends = {name: end for name, end, _ in lines}
    assert set(ends) == {*BOUNDED, *LARGEST}
    assert set(ends.values()) <= {"fingerprint", "too_short", "too_large"}
    assert ends["marks"] == ends["broken links"] == ends["nested tables"] == "fingerprint"
    large = {name: ends[name] for name in LARGEST}
    assert large.pop("paragraphs") == "too_large"
    assert set(large.values()) == {"fingerprint"}, large
    # The maximum of the process, so the first page with this size is reported.
    too_much = [name for name, _, peak in lines if int(peak) > 350 * MEGABYTE]
    assert not too_much


STALLED = {
    "removed elements, deep": "'<article>' + LONG * 9 + '</p>' + ('<q>' + '<rt>x</rt>' * 8) * 2000",
    "scripts between words": "'<script></script>abcdefg hijklmn opqrst uvwxyz 01 ' * 199_000",
    "code below a long class": "f'<div class=\"{\"a \" * M}\">' + f'<pre>{LONG}</pre>' * 20_000",
    "empty titles, deep": "LONG + '<div>' * 1900 + '<title></title>' * 450_000",
    "ids without words, deep": "'<div id=a>' * 1900 + '. ' * 4 * M",
    "code in many lists": "LONG + '<ol start=999999990><li>' * 32 + '<pre>' + 'a\\n' * 4 * M",
}
"""Pages that once took 10 s and more, the first of them half a minute, and take one now."""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on a process")
@pytest.mark.parametrize("page", STALLED.values(), ids=list(STALLED))
def test_a_page_takes_time_in_proportion_to_its_size(page: str) -> None:
    code = "\n".join(
        [
            "import resource",
            "from pgsimhash import PageError, fingerprint",
            f"M, LONG = 1_000_000, '<p>' + {TEXT[:200]!r}",
            f"page = {page}",
            "resource.setrlimit(resource.RLIMIT_CPU, (8, 8))",
            "try:",
            "    fingerprint(page)",
            "except PageError as error:",
            "    assert error.reason == 'too_short'",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("digits", ["9" * 5000, "9" * 10, "\u0663", "\u00b2", "-3", " "])
def test_a_list_with_an_invalid_number_starts_at_1(digits: str) -> None:
    made = fingerprint(f"<p>{TEXT}</p><ol start='{digits}'><li>{TEXT}</li></ol>")
    assert "\n\n1. The harbour master" in made.markdown


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the memory of a process")
@pytest.mark.parametrize("megabytes", [10, 30, 50])
def test_a_page_that_needs_too_much_memory_fails(megabytes: int) -> None:
    code = "\n".join(
        [
            "import resource",
            "from pgsimhash.sources import SourcePage",
            "from pgsimhash.reading.workers import extract",
            f"page = SourcePage('https://a.example/', '<p>{TEXT}</p>')",
            "extract(page)",
            "large = SourcePage(page.url, page.html * 15_000)",
            "with open('/proc/self/status') as about:",
            "    used = 1024 * next(int(x.split()[1]) for x in about if 'VmData' in x)",
            f"most = used + {megabytes} * {MEGABYTE}",
            "resource.setrlimit(resource.RLIMIT_DATA, (most, most))",
            "print(extract(large).reason)",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("no_memory\n", "")


def test_no_entity_reads_a_file() -> None:
    page = f"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><p>{TEXT} &e;</p>"
    assert "root:" not in fingerprint(page).markdown


def test_nul_bytes_are_dropped() -> None:
    spoiled = f"<p>{TEXT}</p>".replace("e", "e\0").encode()
    assert fingerprint(spoiled).simhash == fingerprint(f"<p>{TEXT}</p>").simhash


def test_control_characters_written_as_entities_do_not_reach_the_store() -> None:
    made = fingerprint(f"<title>a&#0;&#1;b</title><p>{TEXT}&#0;&#1;&#8;</p>")
    assert made.title is not None
    assert all(c.isprintable() for c in made.title.replace("\ufffd", ""))
    assert not {"\0", "\1", "\x08"} & set(made.markdown)


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        (b"", "too_short"),
        (b"   \n", "too_short"),
        (b"<!doctype html>", "too_short"),
        (b"<!-- only a comment -->", "too_short"),
        (b"\xff\xfe", "too_short"),
        (b"\xff\xfe\xfd", "too_short"),
        (b"%PDF-1.7 " + TEXT.encode(), "not_html"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "not_html"),
        (b"\x1f\x8b\x08\x00" + bytes(range(256)), "not_html"),
        (bytes(range(32)) * 100, "not_html"),
    ],
)
def test_a_binary_format_is_named(html: bytes, reason: str) -> None:
    with pytest.raises(PageError, check=because(reason)):
        fingerprint(html)


@pytest.mark.parametrize("charset", ["utf-16", "shift_jis", "utf-7", "nonsense", "\0", "é" * 99])
def test_a_wrong_charset_costs_nothing(charset: str) -> None:
    assert fingerprint(f"<p>{TEXT}</p>".encode(), charset=charset).tokens == WORDS


def test_invalid_urls() -> None:
    with pytest.raises(PageError, check=because("invalid_url")):
        fingerprint(f"<p>{TEXT}</p>", "http://[::1")
    page = f"<base href='http://[::1'><p>{TEXT} <a href='http://[x'>a</a><img src='//['></p>"
    assert fingerprint(page, "https://bay.example/").tokens == WORDS + 1


@pytest.mark.parametrize("body", ["<frameset><frame src=x></frameset>", "<plaintext>", "<svg><p>"])
def test_odd_documents(body: str) -> None:
    assert outcome(body + TEXT) in ("fingerprint", "too_short")


PIECES = st.sampled_from(
    [
        *("<p>", "</p>", "<div class='ad-nav'>", "</div>", "<table>", "<tr>", "<td>", "<th>"),
        *("</table>", "<ul>", "<ol start=-1>", "<li>", "</ul>", "<blockquote>", "<pre>", "</pre>"),
        *("<code class=language-x>", "</code>", "<a href='http://['>", "</a>", "<img src=x>"),
        *("<b>", "</i>", "<br>", "<hr>", "<h1>", "</h1>", "<article>", "</article>", "<main>"),
        *("<body>", "</html>", "<html lang=x>", "<base href='::'>", "<title>", "<noscript>"),
        *("<script>", "</script>", "<!--", "-->", "<![CDATA[", "&amp;", "&#0;", "&#x1;", "<"),
        *("</noscript>", "<div hidden>", "<form>", "<nav>", "<td colspan=9999999999999999999>"),
        *("Advertisement", "tide, pools, and boats", "朝市", "\0", "\x01", "|", "`", "1. ", "é"),
        *(TEXT, "<in<div", "<p a=1 a=2 é=3 \x02>", "<svg>", "</svg>", "<template>", "\ud800"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join))
def test_any_markup_gives_a_fingerprint_or_a_page_error(page: str) -> None:
    assert outcome(page) in ("fingerprint", "too_short")


@settings(max_examples=100, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_markup_in_a_deep_page_gives_a_fingerprint_or_a_page_error(page: str) -> None:
    assert outcome("<div>" * 2100 + page) in ("fingerprint", "too_short")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400), st.none() | st.text(max_size=12))
def test_any_bytes_give_a_fingerprint_or_a_page_error(html: bytes, charset: str | None) -> None:
    for page in (html, f"<p>{TEXT}".encode() + html):
        assert outcome(page, charset) in ("fingerprint", "too_short", "not_html")
