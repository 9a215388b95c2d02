"""The interoperable scheme: what it reads beyond the main content, and its tokens."""

import dataclasses

import pytest

from pgsimhash import fingerprint
from pgsimhash.html import read_article
from pgsimhash.schemes.interop import CategoryWords, read_with_references
from pgsimhash.schemes.registry import get_scheme
from tests.programs import python

TEXT = (
    "The tide comes, says Flood, and goes, says Ebb, and between the two it waits for nobody. "
    "Nothing else is known of it, and the keeper of the light does not ask, for she has seen it."
)
INTEROP_SCHEME = get_scheme("pgsimhash-interop-1")
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
        assert article.text.count(f"{author} and others") == article.text.count(title) == 1
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
    f"<article>{BODY}</article><ul class=reference>{ITEMS}</ul>",
    "<p>", "<ol class=references></ol>",
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
def test_captions_tables_and_quotes_are_kept_outside_of_navigation(part: str, around: str) -> None:
    html = f"<article>{BODY}</article>{around.format(part)}"
    article = read_with_references(html)
    assert " ".join(article.text.split()).endswith("Ebb in May 1990")
    assert "Ebb in May" in article.markdown
    tokens = INTEROP_SCHEME.tokenize(article.text)
    assert {"ebb", "may"} <= set(tokens)
    assert "1990" not in tokens
    for tag in ("nav", "footer", "aside", "div hidden"):
        html = f"<article>{BODY}</article><{tag}>{around.format(part)}</{tag.split()[0]}>"
        assert "Ebb in May" not in read_with_references(html).text, tag


def test_nested_headings_around_all_of_a_page_take_bounded_time() -> None:
    code = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (100, 100))\n"
        "from pgsimhash.schemes.interop import read_with_references\n"
        f"page = '<h1><div>' * 1_000 + '<p>' + {TEXT!r} * 50_000\n"
        "print(len(read_with_references(page).text) >= 9_000_000)"
    )
    assert python(code) == "True\n"


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
    assert CategoryWords()(text) == words.split()


@pytest.mark.parametrize("hidden", "\u00ad\u200b\u200c\u200d\u2060\ufeff\u200e\ufe0f")
def test_invisible_characters_split_no_interoperable_word(hidden: str) -> None:
    assert CategoryWords()(f"sea{hidden}weed{hidden} {hidden}tide") == ["seaweed", "tide"]
    assert CategoryWords()(f"https://bay.exam{hidden}ple/tide pool") == ["pool"]


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
        f"see {identifier} there", f"see ({identifier}) there", f"see\t{identifier}\nthere",
    ):  # fmt: skip
        assert CategoryWords()(text) == ["see", "there"]
    assert CategoryWords()(f"潮{identifier} tide") == ["潮", "tide"]
    assert CategoryWords()(f"http://bay.example/{tide}池 tide") == ["池", "tide"]


def test_stop_words_can_be_ignored_in_the_interoperable_scheme() -> None:
    assert CategoryWords(frozenset({"and", "in", "see", "or"}))("and IN a See") == ["a"]
    words = CategoryWords(frozenset({"the", "and"}))
    own = dataclasses.replace(INTEROP_SCHEME, name="own-interop-1", tokenize=words)
    assert own.simhash(TEXT) == own.simhash(TEXT.replace("the ", ""))
    assert own.simhash(TEXT) != INTEROP_SCHEME.simhash(TEXT)
