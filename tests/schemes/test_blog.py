"""The recipe of the blog schemes, compared with a transcription of its steps.

The transcription uses the same BeautifulSoup, readability and Markdown. Parsing, cleaning, the
choice of the content, words, hashes and votes are written again.
"""

import json
import re
from contextlib import suppress
from pathlib import Path

import lxml.html
import mmh3
import pytest
from bs4 import BeautifulSoup, Tag
from hypothesis import given
from hypothesis import strategies as st
from readability import Document

from pgsimhash import fingerprint
from pgsimhash.errors import PageError
from pgsimhash.html.markdown import Links, events, render
from pgsimhash.html.parse import clean_utf8
from pgsimhash.schemes import Scheme, blog
from pgsimhash.schemes.blog import read_blog
from pgsimhash.schemes.registry import get_scheme
from tests.conftest import ROOT
from tests.html.fuzzed_pages import PIECES
from tests.programs import python
from tests.refusals import because

VECTORS = ROOT / "tests" / "vectors"
EXAMPLES = sorted((ROOT / "examples" / "pages").glob("*.html"))
TEXT = (
    "The keeper of the light counts ships, and writes them down in a book with a blue cover. "
    "When fog comes she counts horns instead, which is harder, since horns have no colours. "
    "Once a year somebody rows out to read the book, and nobody has ever rowed back unmoved. "
    "The ships, she says, know nothing of this, and they would not change their course for it. "
    "Last winter the book was full, so she began again on the first page, between the lines."
)
BLOG_WORDS_SCHEME = get_scheme("pgsimhash-blog-words-1")
BLOG_SHINGLES_SCHEME = get_scheme("pgsimhash-blog-shingles-1")
# The steps, transcribed.


def hash64(token: str) -> int:
    first: int = mmh3.hash(token.encode(), 0, signed=False)
    return first << 32 | mmh3.hash(token.encode(), first, signed=False)


def simhash_of(tokens: list[str]) -> int:
    sums = [0] * 64
    for token in tokens:
        value = hash64(token)
        for bit in range(64):
            sums[bit] += 1 if value >> bit & 1 else -1
    return sum(1 << bit for bit in range(64) if sums[bit] > 0)


def words_of(markdown: str) -> list[str]:
    return [word for word in re.split(r"[\s\ufeff]+", markdown.lower()) if len(word) > 2]


def shingles_of(markdown: str) -> list[str]:
    words = [word for word in re.split(r"[\s\ufeff]+", markdown.lower()) if word]
    return [" ".join(words[start : start + 3]) for start in range(len(words) - 2)]


def cleaned(html: str) -> BeautifulSoup:
    soup = BeautifulSoup(html, "lxml")
    for found in soup.select("script, style, nav, header, footer, form, input, button"):
        found.decompose()
    for found in soup.select("[role=navigation], [role=complementary], .sidebar, .advertisement"):
        found.decompose()
    for found in soup.select(".cookie-banner"):
        found.decompose()
    parts = "nav menu sidebar footer header advertisement ad- social share comment-form cookie"
    for found in soup.find_all(True):
        if found.decomposed:
            continue
        attributes = [found.get("class") or "", found.get("id") or ""]
        text = "\n".join(a if isinstance(a, str) else " ".join(a) for a in attributes).lower()
        if any(part in text for part in [*parts.split(), "popup", "modal"]):
            found.decompose()
    for found in soup.find_all(["ul", "ol", "div"]):
        if not found.decomposed and (text := found.get_text()):
            linked = sum(len(link.get_text()) for link in found.find_all("a"))
            if linked / len(text) > 0.8:
                found.decompose()
    return soup


def content_of(soup: BeautifulSoup) -> str | None:
    body = soup.body
    if body is None:
        return None
    article = str(Document(str(soup)).summary())
    if len(BeautifulSoup(article, "lxml").get_text()) >= 400:
        return article
    for selector in ("article", "main", "[role=main]", "#content"):
        found = soup.select_one(selector)
        if found is not None and len(found.get_text()) >= 400:
            return str(found)
    largest: Tag = body
    for candidate in body.select("div, article, section, main"):
        if len(candidate.get_text()) > len(largest.get_text()):
            largest = candidate
    return str(largest)


def markdown_of(html: str) -> str:
    content = content_of(cleaned(html))
    if content is None:
        return ""
    return render(events(lxml.html.document_fromstring(content)), Links(None))


def page(inside: str, text: str = TEXT, head: str = "") -> str:
    return (
        f"<html><head>{head}<title>The book</title></head><body>{inside}<p>{text}</p></body></html>"
    )


LINKS = "".join(f'<li><a href="/{n}">Number {n} of the other pages</a></li>' for n in range(9))
# Each rule has a page in tests/vectors, with the text that remains.
READ = json.loads((VECTORS / "reading" / "pgsimhash-blog-words-1.json").read_text(encoding="utf-8"))
PAGES = [case["html"] for case in READ] + [
    page("<h1>The book</h1>"), page("", "Fourteen ships, three horns and one boat."),
    page(f"<div><p>{TEXT}</p><div><ul>{LINKS}</ul></div><p>{TEXT[::-1]}</p></div>"),
    page(f"<div class=share><div class=text><p>{TEXT}</p></div></div>"),
]  # fmt: skip
NAMED_BODY = f'<body class="has-navbar"><p>{TEXT}</p></body>'


@pytest.mark.parametrize("html", PAGES, ids=range(len(PAGES)))
def test_a_page_is_read_as_the_steps_say(html: str) -> None:
    article = read_blog(html)
    assert article.markdown == markdown_of(html)
    assert article.text == article.markdown


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_page_has_the_simhashes_of_the_steps(path: Path) -> None:
    html = clean_utf8(path.read_bytes()).decode()
    markdown = markdown_of(re.sub("<!--.*?-->", "", html, flags=re.DOTALL))
    for scheme, features in (
        (BLOG_WORDS_SCHEME, words_of(markdown)),
        (BLOG_SHINGLES_SCHEME, shingles_of(markdown)),
    ):
        made = fingerprint(html, scheme=scheme)
        assert made.markdown == markdown
        assert made.simhash == simhash_of(features)


def test_more_than_four_fifths_of_the_text_in_links_is_navigation() -> None:
    def kept(links: int, others: int) -> bool:
        block = f"<div><a href=x>{'x' * links}</a>{'y' * others}</div>"
        soup = blog._soup(lxml.html.document_fromstring(page(block)))
        blog._clean(soup)
        return "xx" in str(soup)

    assert kept(8, 2)
    assert not kept(9, 2)
    # A link inside a link counts twice, like nested links in a table.
    assert not kept(800, 199)


@pytest.mark.parametrize("scheme", [BLOG_WORDS_SCHEME, BLOG_SHINGLES_SCHEME])
def test_a_page_without_content_is_too_short_and_three_words_are_not(scheme: Scheme) -> None:
    for html in ("", " ", NAMED_BODY, "<html class=modal-open><p>x", "<p>I do</p>"):
        with pytest.raises(PageError, check=because("too_short")):
            fingerprint(html, scheme=scheme)
    few = fingerprint("<p>Ships and horns</p>", scheme=scheme)
    words = ["ships", "and", "horns"]
    assert few.simhash == simhash_of(words if few.features == 3 else [" ".join(words)])


def test_the_head_is_read_as_usual_and_links_are_absolute_in_the_hashed_text() -> None:
    html = page(
        "<p>Read <a href='/b'>the book</a> <img data-src='c.png' alt='of ships'> today</p>",
        head='<link rel="canonical" href="/book"><meta charset="utf-8">',
    ).replace("<html", "<html lang=en")
    made = fingerprint(html, "https://a.example/1/?b", scheme=BLOG_WORDS_SCHEME)
    assert (made.title, made.language) == ("The book", "en")
    assert made.canonical_url == "https://a.example/book"
    assert made.structure == fingerprint(html).structure
    links = "[the book](https://a.example/b) ![of ships](https://a.example/1/c.png)"
    assert links in made.markdown


def test_only_the_blog_reader_loads_beautifulsoup_readability_and_chardet() -> None:
    code = (
        "import sys; from pathlib import Path; from pgsimhash import PageError, fingerprint\n"
        "pages = [file.read_bytes() for file in Path('examples/pages').glob('*.html')]\n"
        "pages += [b'<meta charset=%b><p>F\\xe4hre ' % label + b'some words of a page ' * 9\n"
        "          for label in (b'x', b'latin1')]\n"
        "others = {'bs4', 'readability', 'chardet', 'charset_normalizer'}\n"
        "for page in pages:\n"
        "    try: fingerprint(page)\n"
        "    except PageError: pass\n"
        "print(len(others & set(sys.modules)))\n"
        "fingerprint(page, scheme='pgsimhash-blog-words-1'); print(len(others & set(sys.modules)))"
    )
    none, loaded = python(code).split()
    assert (none, int(loaded) >= 2) == ("0", True)


@pytest.mark.parametrize("name", ["pgsimhash-blog-words-1", "pgsimhash-blog-shingles-1"])
def test_without_readability_the_error_names_the_pythons_that_have_it(name: str) -> None:
    code = (
        "import sys; sys.modules['readability'] = None\n"
        "from pgsimhash import fingerprint; from pgsimhash.errors import MissingPackageError\n"
        "page = open('examples/pages/tide-pools.html', 'rb').read()\n"
        "fingerprint(page)\n"
        f"try: fingerprint(page, scheme={name!r})\n"
        "except MissingPackageError as error: print(error.reason, error)"
    )
    told = python(code)
    assert told.startswith("not_installed the schemes pgsimhash-blog-* need readability-lxml")
    assert "Python 3.14 or older" in told


WORDS = "Some words, about the tide that comes, and goes. "
HOSTILE = {
    "deep": "<div>" * 25_000 + TEXT,
    "deep, with text on the way": "<div class=entry>x" * 1_900 + f"<p>{TEXT}",
    "every other sibling goes": "<p>a</p><form></form>" * 14_000 + TEXT,
    "tails of what readability drops": "<article>" + f"<p class=combx></p>{WORDS}" * 3_000,
    "hidden ones": "<article>" + f"<p hidden></p>{WORDS}" * 3_000,
    "headings": f"<h2>{WORDS * 3_000}</h2><ul>" + f"<li><ul><li>{WORDS}</ul>" * 500,
    "leads, deep": f"<article>{'<div>' * 100}" + "<p class=dek>a lead of words</p>" * 2_000,
    "candidates": "<div class=entry>" * 90 + f"<div class=content><p>{WORDS}</p></div>" * 2_000,
    "white space": f"<p>{TEXT}</p><p>{' ' * 5_000_000}</p>",
    "colours": f"<p {' '.join('a' * n + '-color=1' for n in range(1, 1_500))}>{TEXT}</p>",
    "a long class": f"<p class='{'a ' * 2_000_000}'>{TEXT}",
    "empty lists": f"<p>{TEXT}</p>{'<ul></ul>' * 9_000}",
    "links in tables": ("<table><tr><td><a>" * 16 + WORDS * 300 + "</table>" * 16) * 20,
    "quotes around text": "<blockquote>" * 60 + WORDS * 24_000,
    "leads": "<article>" + "<div>" * 80 + "<p class=dek>a lead</p>" * 4_000 + WORDS * 99,
    "attributes": f"<p {' '.join(f'a{n}=1' for n in range(90))}>x" * 5_000,
    "ampersands": f"<p>{TEXT}{'&' * 5_000_000}",
    "spaces between words": f"<p>{TEXT}{(' ' * 254 + 'boat') * 9_000}",
    "code": f"<code>{TEXT}{'`' * 5_000_000}</code>",
    "brackets": f"<p>{TEXT}</p><a href='http://{'[' * 1_000_000}'>x</a>",
}


def test_hostile_pages_take_bounded_time_and_memory() -> None:
    # All in one process, because its start takes longer than a page.
    code = (
        "import json, resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (120, 120))\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "from pgsimhash.schemes.blog import read_blog\n"
        "for kind, html in json.load(sys.stdin).items():\n"
        "    print(kind, flush=True)\n"
        "    read_blog(html)\n"
    )
    # The last reported kind is the one that failed.
    assert python(code, stdin=json.dumps(HOSTILE)).splitlines() == list(HOSTILE)


def test_a_page_of_too_many_elements_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blog, "ELEMENTS_MAX", 300)
    read_blog("<i></i>" * 290)
    with pytest.raises(PageError, match="more than 300 elements"):
        read_blog("<i></i>" * 310)


@pytest.mark.parametrize("limit", ["WORK_MAX", "DEPTH_MAX", "CHARS_MAX"])
def test_expensive_pages_avoid_readability(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    html = f"<main><h1>Lights</h1><div class=story><p>{TEXT}</p><p>{TEXT}</p></div></main>"
    assert read_blog(html).text == f"{TEXT}\n\n{TEXT}"
    monkeypatch.setattr(blog, limit, 3)
    assert read_blog(html).text == f"# Lights\n\n{TEXT}\n\n{TEXT}"


@given(st.lists(PIECES).map("".join))
def test_any_soup_of_tags_is_read(page: str) -> None:
    with suppress(PageError):
        fingerprint(page, scheme=BLOG_SHINGLES_SCHEME)
