"""Where the pages of labelled pairs are searched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pgsimhash.analysis.labelled_pages import find_pages
from pgsimhash.errors import ArgumentError
from pgsimhash.pages.records import PageFailure


def found(names: list[str], *places: Path, beside: Path | None = None) -> dict[str, str]:
    """The HTML of each page, or the reason of its failure."""
    return {
        name: page.detail
        if isinstance(page, PageFailure)
        else page.html
        if isinstance(page.html, str)
        else page.html.decode()
        for name, page in find_pages(names, places, beside)
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pages").mkdir()
    (tmp_path / "one.html").write_text("<p>one")
    (tmp_path / "pages" / "two.htm").write_text("<p>two")
    return tmp_path


def test_a_folder_knows_files_with_and_without_their_suffix(folder: Path) -> None:
    assert found(["one", "one.html", "two", "pages/two.htm"], folder) == {
        "one": "<p>one",
        "one.html": "<p>one",
        "two": "<p>two",
        "pages/two.htm": "<p>two",
    }


def test_by_default_the_folder_of_the_pairs_is_searched(folder: Path) -> None:
    assert found(["one"], beside=folder) == {"one": "<p>one"}


def test_file_urls_and_absolute_paths_need_no_place(folder: Path) -> None:
    path = folder / "one.html"
    assert found([path.as_uri(), str(path)]) == {path.as_uri(): "<p>one", str(path): "<p>one"}


def test_a_csv_maps_ids_to_files(folder: Path) -> None:
    table = folder / "pages.csv"
    table.write_text("id,file,licence\n7,pages/two.htm,none\n")
    assert found(["7", "one"], table) == {"7": "<p>two", "one": "<p>one"}
    table.write_text("id,licence\ntwo,none\n")
    assert found(["two"], table) == {"two": "<p>two"}
    table.write_text("name\ntwo\n")
    with pytest.raises(ArgumentError, match="the column id is missing"):
        found(["two"], table)


def test_archives_know_pages_by_their_url(folder: Path) -> None:
    archive = folder / "crawl.jsonl"
    pages = [{"url": f"https://a.example/{n}", "html": f"<p>{n}"} for n in (1, 2, 2, 3)]
    archive.write_text("\n".join(map(json.dumps, pages)))
    assert found(["https://a.example/2", "https://a.example/3"], archive) == {
        "https://a.example/2": "<p>2",
        "https://a.example/3": "<p>3",
    }


def test_a_missing_page_is_a_failure_that_names_the_fix(folder: Path) -> None:
    names = ["nowhere", "x" * 5000, "nul\0", "https://a.example/"]
    told = found(names, folder)
    assert list(told) == names
    assert all("--pages" in why for why in told.values())


def test_a_page_is_yielded_once_however_many_pairs_name_it(folder: Path) -> None:
    assert len(list(find_pages(["one", "one"], [folder]))) == 1
