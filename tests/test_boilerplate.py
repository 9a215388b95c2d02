"""What stands on most pages of a host is learnt, and left out of its fingerprints."""

from __future__ import annotations

import json
import pickle

import pytest

from pgsimhash import fingerprint
from pgsimhash.boilerplate import (
    Boilerplate,
    base_name,
    learn,
    own_text,
    read_boilerplate,
    split_name,
    without_boilerplate,
)
from pgsimhash.errors import BoilerplateError
from pgsimhash.extraction import extract_many
from pgsimhash.records import PageRecord
from pgsimhash.schemes import DEFAULT_SCHEME, TEXT_SCHEME, Scheme
from pgsimhash.sources import SourcePage

SLOGAN = "Subscribe to the Harbour Letter, and never miss a tide!"


def url(number: int, host: str = "bay.example") -> str:
    return f"https://{host}/{number}"


def story(number: int) -> str:
    return " ".join(f"word{number}x{n}" for n in range(40))


def pages(count: int, every: int = 1, host: str = "bay.example") -> list[tuple[str, str]]:
    return [
        (url(number, host), f"{story(number)}\n{SLOGAN if number % every == 0 else 'quiet'}")
        for number in range(count)
    ]


def test_a_paragraph_on_more_than_half_of_the_pages_is_boilerplate() -> None:
    learnt = learn(pages(10))
    assert learnt.remove(f"Tides\n{SLOGAN}\nFog", url(99)) == "Tides\nFog"
    assert learnt.remove("subscribe to the harbour letter and never miss a tide", url(99)) == ""
    assert learnt.remove(story(3), url(99)) == story(3)


def test_half_of_the_pages_are_not_enough() -> None:
    assert learn(pages(10, every=2)).hosts == {}
    assert learn(pages(10, every=2), share=0.4).hosts.keys() == {"bay.example"}


def test_a_paragraph_that_a_page_repeats_counts_once() -> None:
    once = [(url(n), f"{story(n)}\n" + (f"{SLOGAN}\n" * 9 if n == 0 else "")) for n in range(10)]
    assert learn(once).hosts == {}


def test_pages_that_come_host_by_host_give_the_same() -> None:
    sorted_pages = [*pages(10), *pages(7, host="isle.example")]
    mixed = sorted(sorted_pages, key=lambda page: page[1])
    assert learn(sorted_pages, by_host=True) == learn(mixed)
    assert learn(sorted_pages, by_host=True).pages == learn(mixed).pages == 17


def test_a_page_without_a_proper_url_teaches_nothing() -> None:
    wrong = ["no url", "https:///path", "https://[bay/", "ftp://bay.example/1"]
    learnt = learn([*pages(10), *((url, SLOGAN) for url in wrong * 5)])
    assert (list(learnt.hosts), learnt.pages) == (["bay.example"], 10)


def test_hosts_are_learnt_apart_and_few_pages_teach_nothing() -> None:
    learnt = learn([*pages(10), *pages(4, host="small.example"), ("file:///tmp/a", SLOGAN)])
    assert learnt.hosts.keys() == {"bay.example"}
    assert learnt.remove(SLOGAN, url(1, "other.example")) == SLOGAN
    assert learnt.remove(SLOGAN, None) == SLOGAN


def test_a_host_of_many_pages_is_learnt_in_bounded_memory() -> None:
    """Rare paragraphs are forgotten on the way, the frequent one is not."""
    many = ((url(n), f"{story(n)}\n{SLOGAN if n % 3 else ''}") for n in range(5_000))
    learnt = learn(many)
    assert [len(paragraphs) for paragraphs in learnt.hosts.values()] == [1]
    assert learnt.remove(SLOGAN, url(1)) == ""


def test_the_file_is_read_back_and_its_version_is_that_of_the_content() -> None:
    learnt = learn(pages(10))
    again = read_boilerplate(learnt.as_json())
    assert again == learnt
    assert again.version == learnt.version != learn(pages(10, every=3), share=0.2).version
    assert learn(reversed(pages(10))).as_json() == learnt.as_json()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps({"format": "other", "hosts": {}}),
        json.dumps({"format": "pgsimhash-boilerplate-1", "hosts": {"a": ["xyz"]}}),
        json.dumps({"format": "pgsimhash-boilerplate-1", "hosts": [1]}),
        json.dumps({"format": "pgsimhash-boilerplate-1", "hosts": {"a": ["-1"]}}),
        json.dumps({"format": "pgsimhash-boilerplate-1", "hosts": {"a": ["1" * 17]}}),
        json.dumps({"format": "pgsimhash-boilerplate-1", "hosts": {"a\0b": ["1"]}}),
        json.dumps({"format": "pgsimhash-boilerplate-1", "hosts": {}, "pages": None}),
    ],
)
def test_what_is_no_boilerplate_file_is_refused(text: str) -> None:
    with pytest.raises(BoilerplateError):
        read_boilerplate(text)


@pytest.mark.parametrize("share", [0, 0.02, 1, 2, -1])
def test_a_share_that_makes_no_sense_is_refused(share: float) -> None:
    with pytest.raises(BoilerplateError, match=r"above 0\.02"):
        learn([], share=share)


def html(number: int, foot: str) -> str:
    return f"<html><body><article><p>{story(number)}</p><p>{foot}</p></article></body></html>"


def made_by(scheme: Scheme, number: int, foot: str) -> int:
    return fingerprint(html(number, foot), url(number), scheme=scheme).simhash


def test_the_scheme_without_it_gives_pages_the_simhash_of_what_is_their_own() -> None:
    scheme = without_boilerplate(learn(pages(10)))
    assert scheme.name == f"pgsimhash-article-1+{learn(pages(10)).version}"
    plain = fingerprint(f"<article><p>{story(1)}</p></article>").simhash
    assert made_by(scheme, 1, SLOGAN) == plain
    made = fingerprint(html(1, SLOGAN), url(1), scheme=scheme)
    assert made.words < fingerprint(html(1, SLOGAN), url(1)).words
    assert "Subscribe" in made.markdown


def test_it_goes_to_other_processes_and_over_other_schemes() -> None:
    scheme = without_boilerplate(learn(pages(10)))
    assert pickle.loads(pickle.dumps(scheme)) == scheme
    sources = [SourcePage(url(n), html(n, SLOGAN)) for n in range(3)]
    records = list(extract_many(sources, jobs=2, scheme=scheme))
    assert [r.simhash for r in records if isinstance(r, PageRecord)] == [
        made_by(scheme, n, SLOGAN) for n in range(3)
    ]
    assert without_boilerplate(Boilerplate({}), TEXT_SCHEME).name.startswith("pgsimhash-text-1+")


def test_the_name_of_a_scheme_says_what_it_leaves_out() -> None:
    first = without_boilerplate(learn(pages(10)))
    second = without_boilerplate(Boilerplate({"bay.example": frozenset()}), first)
    version = learn(pages(10)).version
    assert split_name(first.name) == ("pgsimhash-article-1", version)
    assert split_name("mine+1") == ("mine+1", None)
    assert base_name(second.name) == base_name(first.name) == "pgsimhash-article-1"
    assert own_text(second, f"{SLOGAN}\nFog", url(1)) == "Fog"
    assert own_text(DEFAULT_SCHEME, SLOGAN, url(1)) == SLOGAN
