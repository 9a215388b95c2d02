"""References and the like are kept, although a reader may consider them secondary."""

from __future__ import annotations

import pytest

from pgsimhash import fingerprint
from pgsimhash.html import read_article
from pgsimhash.schemes import INTEROP_SCHEME
from pgsimhash.schemes.references import read_with_references
from tests.programs import python

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


@pytest.mark.parametrize("html", [
    f"<article>{BODY}</article>",
    f"<article>{BODY}</article><nav><h2>References</h2><ul>{ITEMS}</ul></nav>",
    f"<article>{BODY}</article><footer><div class=references><ul>{ITEMS}</ul></div></footer>",
    f"<article>{BODY}</article><h2>References</h2><h2>Other pages</h2><ul>{ITEMS}</ul>",
    f"<article>{BODY}</article><ul class=reference>{ITEMS}</ul>", "", "<ol class=references></ol>",
])  # fmt: skip
def test_other_lists_are_read_as_usual(html: str) -> None:
    assert read_with_references(html) == read_article(html)


INCLUDED = {
    "a caption": "<figure><img src=/e.png><figcaption>Ebb in May 1990</figcaption></figure>",
    "the caption of a table": "<table><caption>Ebb in May 1990</caption><tr><td><p>x</table>",
    "a table": "<table><tr><th>Boat<th>Built<tr><td>Ebb in May<td>1990</table>",
    "a quote": "<blockquote><a href=/1>Ebb in May 1990</a></blockquote>",
}


@pytest.mark.parametrize("part", INCLUDED.values(), ids=list(INCLUDED))
@pytest.mark.parametrize("around", ["{}", "<div class='related sidebar'>{}</div>"])
def test_captions_tables_and_quotes_are_kept(part: str, around: str) -> None:
    html = f"<article>{BODY}</article>{around.format(part)}"
    article = read_with_references(html)
    assert " ".join(article.text.split()).endswith("Ebb in May 1990")
    assert "Ebb in May" in article.markdown
    tokens = INTEROP_SCHEME.tokenize(article.text)
    assert {"ebb", "may"} <= set(tokens)
    assert "1990" not in tokens


@pytest.mark.parametrize("part", INCLUDED.values(), ids=list(INCLUDED))
@pytest.mark.parametrize("tag", ["nav", "footer", "aside", "div hidden"])
def test_content_beside_the_text_has_no_references(part: str, tag: str) -> None:
    html = f"<article>{BODY}</article><{tag}>{part}</{tag.split()[0]}>"
    assert "Ebb in May" not in read_with_references(html).text


def test_all_of_ten_thousand_references_are_kept() -> None:
    items = "".join(
        f"<li><a href=x>word{number}</a><style>x{{}}</style>" for number in range(10_000)
    )
    html = f"<article>{BODY}</article><ol class=references>{items}</ol>"
    tokens = INTEROP_SCHEME.tokenize(read_with_references(html).text)
    assert tokens[-10_000:] == [f"word{number}" for number in range(10_000)]


def test_nested_headings_around_all_of_a_page_take_bounded_time() -> None:
    code = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (100, 100))\n"
        "from pgsimhash.schemes.references import read_with_references\n"
        f"page = '<h1><div>' * 1_000 + '<p>' + {TEXT!r} * 50_000\n"
        "print(len(read_with_references(page).text) >= 9_000_000)"
    )
    assert python(code) == "True\n"
