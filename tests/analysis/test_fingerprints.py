"""What becomes of named pages."""

from __future__ import annotations

from pgsimhash.analysis.fingerprints import Fingerprints, fingerprint_pages
from pgsimhash.records import PageFailure
from pgsimhash.sources import SourcePage
from pgsimhash.workers import extract_many

TEXT = " ".join(f"w{number}x" for number in range(50))


def test_a_page_has_a_simhash_or_none_or_could_not_be_read() -> None:
    pages: dict[str, SourcePage | PageFailure] = {
        "good": SourcePage("https://a.example/1", f"<p>{TEXT}"),
        "short": SourcePage("https://a.example/2", "<p>short"),
        "picture": SourcePage("https://a.example/3", b"\x89PNG\r\n\x1a\n"),
        "gone": PageFailure("https://a.example/4", "unreadable", "gone"),
    }
    made = Fingerprints()
    assert list(fingerprint_pages(pages.items(), extract_many, made)) == list(pages)
    assert list(made.simhashes) == ["good", "short", "picture"]
    assert made.simhashes["good"]
    assert made.simhashes["short"] is made.simhashes["picture"] is None
    assert made.too_short == ["short"]
    assert [failure.url for failure in made.failures] == ["picture", "gone"]


def test_of_several_schemes_each_missed_page_is_told_once() -> None:
    both = Fingerprints({}, ["short"], [PageFailure("gone", "unreadable", "gone")])
    missed = Fingerprints()
    missed.add_missed(both)
    missed.add_missed(Fingerprints({}, ["short", "shorter"], both.failures))
    assert missed.too_short == ["short", "shorter"]
    assert missed.failures == both.failures
