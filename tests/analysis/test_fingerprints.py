"""Where the pages of labelled pairs are found, and their fingerprints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pgsimhash import Store, connect
from pgsimhash.analysis import fingerprints
from pgsimhash.analysis.fingerprints import find_pages, fingerprint_pages, stored_fingerprints
from pgsimhash.errors import ArgumentError
from pgsimhash.pages.records import PageFailure
from pgsimhash.schemes import DEFAULT_SCHEME, INTEROP_SCHEME
from pgsimhash.sources import SourcePage

TEXT = " ".join(f"w{number}x" for number in range(50))


def found(names: list[str], *places: Path) -> dict[str, str]:
    """The HTML of each page, or the reason of its failure."""
    return {
        name: page.detail
        if isinstance(page, PageFailure)
        else page.html
        if isinstance(page.html, str)
        else page.html.decode()
        for name, page in find_pages(names, places)
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pages").mkdir()
    (tmp_path / "one.html").write_text("<p>one")
    (tmp_path / "pages" / "two.htm").write_text("<p>two")
    return tmp_path


def test_folders_paths_and_archives_know_pages(folder: Path) -> None:
    names = ["one", "one.html", "two", "pages/two.htm"]
    assert [*found(names, folder).items()] == list(
        zip(names, ["<p>one", "<p>one", "<p>two", "<p>two"], strict=True)
    )
    assert len(list(find_pages(["one", "one"], [folder]))) == 1
    path = folder / "one.html"
    assert found([path.as_uri(), str(path)]) == {path.as_uri(): "<p>one", str(path): "<p>one"}
    archive = folder / "crawl.jsonl"
    pages = [{"url": f"https://a.example/{n}", "html": f"<p>{n}"} for n in (1, 2, 2, 3)]
    archive.write_text("\n".join(map(json.dumps, pages)))
    urls = ["https://a.example/2", "https://a.example/3"]
    assert found(urls, archive) == dict(zip(urls, ["<p>2", "<p>3"], strict=True))


def test_a_csv_maps_ids_to_files(folder: Path) -> None:
    table = folder / "pages.csv"
    table.write_text("id,file,licence\n7,pages/two.htm,none\n")
    assert found(["7", "one"], table) == {"7": "<p>two", "one": "<p>one"}
    table.write_text("id,licence\ntwo,none\n")
    assert found(["two"], table) == {"two": "<p>two"}
    table.write_text("name\ntwo\n")
    with pytest.raises(ArgumentError, match="the column id is missing"):
        found(["two"], table)


def test_a_missing_page_is_a_failure_that_names_the_fix(folder: Path) -> None:
    names = ["nowhere", "x" * 5000, "nul\0", "https://a.example/"]
    told = found(names, folder)
    assert list(told) == names
    assert all("--pages" in why for why in told.values())


def test_a_page_has_a_fingerprint_or_none_or_could_not_be_read() -> None:
    pages: dict[str, SourcePage | PageFailure] = {
        "good": SourcePage("https://a.example/1", f"<p>{TEXT}"),
        "short": SourcePage("https://a.example/2", "<p>short"),
        "picture": SourcePage("https://a.example/3", b"\x89PNG\r\n\x1a\n"),
        "gone": PageFailure("https://a.example/4", "unreadable", "gone"),
    }
    done: list[tuple[int, int]] = []
    result = fingerprint_pages(
        pages.items(), DEFAULT_SCHEME, progress=lambda *counts: done.append(counts), total=4
    )
    assert done[-1] == (4, 4)
    assert list(result.prints) == ["good", "short", "picture"]
    assert result.prints["good"] is not None
    assert result.prints["short"] is result.prints["picture"] is None
    assert result.too_short == ["short"]
    assert [failure.url for failure in result.failures] == ["picture", "gone"]


def test_the_share_of_words_in_low_weight_blocks_comes_with_the_fingerprints() -> None:
    menu = " ".join(f"<li><a href=/{n}>menu{n}</a></li>" for n in range(30))
    pages = {
        "bare": SourcePage("https://a.example/1", f"<p>{TEXT}"),
        "framed": SourcePage("https://a.example/2", f"<nav><ul>{menu}</ul></nav><p>{TEXT}"),
    }
    result = fingerprint_pages(pages.items(), DEFAULT_SCHEME)
    assert result.unseen == (15 / 80, 30 / 80, "framed")
    for name, page in pages.items():
        vote = DEFAULT_SCHEME.vote(DEFAULT_SCHEME.extract(page.html, None, None))
        assert result.prints[name] == (vote.simhash, vote.signature, None)
    # Other schemes do not weigh blocks.
    assert fingerprint_pages(pages.items(), INTEROP_SCHEME).unseen is None


def test_stored_fingerprints_are_those_of_the_present_versions(
    store: Store, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "_URLS", 7)
    known = {f"https://a.example/{n}": n << 50 for n in range(40)}
    list(store.add_many([("https://a.example/7", 3), *known.items()], distance=0))
    with connect(dsn, collection="other") as other:
        other.add("https://b.example/", 1)
    unknown = ["https://b.example/", "", "a.html", "https://a.example/\0"]
    result = stored_fingerprints(store, [*known, *unknown, *known])
    assert {url: page and page.simhash for url, page in result.prints.items()} == known
    assert [failure.url for failure in result.failures] == unknown
    store.ingest("https://a.example/signed", f"<p>{TEXT}")
    (page,) = stored_fingerprints(store, ["https://a.example/signed"]).prints.values()
    assert page is not None
    assert page.signature is not None
