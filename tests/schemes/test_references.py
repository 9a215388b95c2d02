"""Lists of references are kept where a reader of articles takes them for navigation."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pgsimhash import fingerprint
from pgsimhash.html import read_article
from pgsimhash.html.parse import parse
from pgsimhash.schemes import INTEROP_SCHEME, get_scheme, references
from pgsimhash.schemes.references import ITEMS_MAX, read_with_references

TEXT = (
    "The tide comes, says Flood, and goes, says Ebb, and between the two it waits for nobody. "
    "Nothing else is known of it, and the keeper of the light does not ask, for she has seen it."
)
BOOKS = [("Ebb", "How the tide goes"), ("Flood", "How it comes back"), ("Slack", "Why it waits")]
ITEMS = "".join(
    f'<li>{author} and others, <a href="https://doi.org/10.1000/{author}">{title} in the bay at '
    f'night</a>, <a href="/j">Letters of the Bay</a> 1990, doi:10.1000/{author}</li>'
    for author, title in BOOKS
)
BODY = f"<h1>Tides</h1><p>{TEXT}</p><p>{TEXT.replace('tide', 'moon')}</p>"
LISTS = {
    "a heading": f"<article>{BODY}<h2>References</h2><ol>{ITEMS}</ol></article>",
    "a heading in another language": f"<article>{BODY}<h2>Literatur</h2><ul>{ITEMS}</ul></article>",
    "a heading in Chinese": f"<article>{BODY}<h2>参考文献</h2><ul>{ITEMS}</ul></article>",
    "a numbered heading": f"<article>{BODY}<h3>7. Works  Cited [e]</h3><ul>{ITEMS}</ul></article>",
    "a wrapped heading": f"{BODY}<div><h2>References:</h2></div><div><ol>{ITEMS}</ol></div>",
    "a class": f"<article>{BODY}</article><div class='ltx_bibliography'><ul>{ITEMS}</ul></div>",
    "an id": f"<article>{BODY}</article><section id=footnotes><ul>{ITEMS}</ul></section>",
    "a role": f"<article>{BODY}</article><section role=doc-bibliography>{ITEMS}</section>",
}


@pytest.mark.parametrize("html", LISTS.values(), ids=list(LISTS))
def test_a_list_of_references_is_kept_each_entry_once(html: str) -> None:
    article = read_with_references(html, "https://a.example/1")
    for author, title in BOOKS:
        assert article.text.count(f"{author} and others") == 1
        assert article.text.count(title) == 1
        assert article.markdown.count(f"{author} and others") == 1
    assert article.text.count("says Flood") == 2
    made = fingerprint(html, "https://a.example/1", scheme=INTEROP_SCHEME)
    assert made.simhash == INTEROP_SCHEME.simhash(article.text)
    tokens = INTEROP_SCHEME.tokenize(article.text)
    assert {"slack", "letters", "waits"} <= set(tokens)
    assert not {"doi", "https", "org"} & set(tokens)


def test_references_that_the_reader_kept_are_not_there_twice() -> None:
    prose = "".join(f"<li>{author}: {title} in the bay, {TEXT}</li>" for author, title in BOOKS)
    html = f"<article>{BODY}<h2>References</h2><ol>{prose}</ol></article>"
    assert read_article(html).text.count("Why it waits") == 1
    assert read_with_references(html) == read_article(html)


@pytest.mark.parametrize(
    "html",
    [
        f"<article>{BODY}</article>",
        f"<article>{BODY}</article><nav><h2>References</h2><ul>{ITEMS}</ul></nav>",
        f"<article>{BODY}</article><footer><div class=references><ul>{ITEMS}</ul></div></footer>",
        f"<article>{BODY}</article><h2>References</h2><h2>Other pages</h2><ul>{ITEMS}</ul>",
        f"<article>{BODY}</article><ul class=reference>{ITEMS}</ul>",
        "",
        "<ol class=references></ol>",
    ],
)
def test_other_lists_are_what_the_reader_makes_of_them(html: str) -> None:
    assert read_with_references(html) == read_article(html)


def test_ten_thousand_references_are_looked_at_up_to_a_limit() -> None:
    words = [f"word{number}" for number in range(2 * ITEMS_MAX)]
    items = "".join(f"<li><a href=x>{word} {word}th {word}est</a></li>" for word in words)
    html = f"<article>{BODY}</article><ol class=references>{items}</ol>"
    text = read_with_references(html).text
    assert words[ITEMS_MAX - 1] in text
    assert (words[ITEMS_MAX] in text) == (words[ITEMS_MAX] in read_article(html).text)


def test_the_first_million_characters_of_references_count() -> None:
    long = "The tide was seen by all who wrote of it in their letters. " * 6_000
    html = f"<p>{TEXT}</p><h2>References</h2><ol>{''.join(f'<li>{n}s {long}</li>' for n in 'abcd')}"
    root = parse(html)
    assert root is not None
    counted = references._first(references._items(root))
    assert [item.text[0] for item in counted] == ["a", "b"]


def test_nested_headings_around_all_of_a_page_take_bounded_time() -> None:
    code = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (100, 100))\n"
        "from pgsimhash.schemes.references import read_with_references\n"
        f"page = '<h1><div>' * 1_000 + '<p>' + {TEXT!r} * 50_000\n"
        "print(len(read_with_references(page).text) >= 9_000_000)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_only_the_interoperable_scheme_reads_so() -> None:
    assert get_scheme("pgsimhash-interop-1").extract is read_with_references
