"""The sample crawl in examples/ matches its tables."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pgsimhash.sources import SourcePage, read_pages

EXAMPLES = Path(__file__).parents[2] / "examples"


def expected() -> dict[str, dict[str, str]]:
    with (EXAMPLES / "expected.csv").open(newline="", encoding="utf-8") as file:
        return {row["page"]: row for row in csv.DictReader(file)}


def test_every_page_is_in_the_table_and_can_be_read() -> None:
    pages = list(read_pages([EXAMPLES / "pages"]))
    assert all(isinstance(page, SourcePage) for page in pages)
    assert {page.url.rpartition("/")[2] for page in pages} == set(expected())


def test_an_original_is_read_before_its_copies() -> None:
    order = [page.url.rpartition("/")[2] for page in read_pages([EXAMPLES / "pages"])]
    for name, row in expected().items():
        if row["original"]:
            assert order.index(row["original"]) < order.index(name)


def test_a_copy_s_original_is_an_original() -> None:
    rows = expected()
    for row in rows.values():
        if row["original"]:
            assert rows[row["original"]]["why"] == "original"
        else:
            assert row["why"] in ("original", "too_short")


def test_the_readme_names_every_original() -> None:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for name, row in expected().items():
        original = row["original"] or name
        assert f"`{original}`" in readme
        if row["original"]:
            suffix = name.removeprefix(original.removesuffix(".html")).removesuffix(".html")
            assert f"`{suffix}`" in readme


@pytest.mark.parametrize(
    ("name", "charset"),
    [("seilfaehre-windows-1252", "cp1252"), ("morning-market-ja-shift-jis", "cp932")],
)
def test_the_pages_in_legacy_charsets_are_still_in_them(name: str, charset: str) -> None:
    content = (EXAMPLES / "pages" / f"{name}.html").read_bytes()
    content.decode(charset)
    with pytest.raises(UnicodeDecodeError):
        content.decode()
