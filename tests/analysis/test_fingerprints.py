"""The results of named pages."""

from __future__ import annotations

from pgsimhash.analysis.labelled_pages import Fingerprints, fingerprint_pages
from pgsimhash.pages.records import PageFailure
from pgsimhash.schemes import DEFAULT_SCHEME, INTEROP_SCHEME
from pgsimhash.sources import SourcePage

TEXT = " ".join(f"w{number}x" for number in range(50))


def test_a_page_has_a_simhash_or_none_or_could_not_be_read() -> None:
    pages: dict[str, SourcePage | PageFailure] = {
        "good": SourcePage("https://a.example/1", f"<p>{TEXT}"),
        "short": SourcePage("https://a.example/2", "<p>short"),
        "picture": SourcePage("https://a.example/3", b"\x89PNG\r\n\x1a\n"),
        "gone": PageFailure("https://a.example/4", "unreadable", "gone"),
    }
    made = Fingerprints()
    assert list(fingerprint_pages(pages.items(), made, DEFAULT_SCHEME)) == list(pages)
    assert list(made.simhashes) == ["good", "short", "picture"]
    assert made.simhashes["good"]
    assert made.simhashes["short"] is made.simhashes["picture"] is None
    assert made.too_short == ["short"]
    assert [failure.url for failure in made.failures] == ["picture", "gone"]


def test_the_share_of_words_in_low_weight_blocks_comes_with_the_simhash() -> None:
    menu = " ".join(f"<li><a href=/{n}>menu{n}</a></li>" for n in range(30))
    pages = {
        "bare": SourcePage("https://a.example/1", f"<p>{TEXT}"),
        "framed": SourcePage("https://a.example/2", f"<nav><ul>{menu}</ul></nav><p>{TEXT}"),
    }
    made = Fingerprints()
    assert list(fingerprint_pages(pages.items(), made, DEFAULT_SCHEME)) == list(pages)
    assert made.shares == {"bare": 0, "framed": 30 / 80}
    assert made.unseen == (15 / 80, 30 / 80, "framed")
    articles = {name: DEFAULT_SCHEME.extract(page.html, None, None) for name, page in pages.items()}
    assert made.simhashes == {
        name: DEFAULT_SCHEME.vote(article).simhash for name, article in articles.items()
    }
    other = Fingerprints()
    assert list(fingerprint_pages(pages.items(), other, INTEROP_SCHEME)) == list(pages)
    assert other.unseen is None  # the scheme does not weigh blocks


def test_each_missed_page_of_several_schemes_is_reported_once() -> None:
    both = Fingerprints({}, ["short"], [PageFailure("gone", "unreadable", "gone")])
    missed = Fingerprints()
    missed.add_missed(both)
    missed.add_missed(Fingerprints({}, ["short", "shorter"], both.failures))
    assert missed.too_short == ["short", "shorter"]
    assert missed.failures == both.failures
