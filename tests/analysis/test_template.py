"""Which parts pages of a host share, and what selectors would change."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pgsimhash import ArgumentError, fingerprint
from pgsimhash.analysis import selector_effects, template_parts
from pgsimhash.analysis.template import SelectorEffect, TemplatePart
from pgsimhash.pages.selectors import Selectors
from pgsimhash.sources import PageFailure, SourcePage

WORDS = (
    "harbour", "lantern", "meadow", "copper", "thistle", "anchor", "orchard", "pebble", "willow",
    "saffron", "timber", "kettle", "marble", "falcon", "ribbon", "cellar", "granite", "juniper",
)  # fmt: skip
MENU = "<ul><li>Home <li>Timetables <li>Fares <li>Islands <li>Harbour office <li>Contact us</ul>"
PROMO = "Buy ten crossings now and travel the eleventh time for nothing at all"
FOOTER = "Printed by the ferry company of the northern islands, all rights reserved"


def text(seed: int, count: int) -> str:
    choose = random.Random(seed)
    return " ".join(f"{choose.choice(WORDS)}{choose.randrange(200)}" for _ in range(count))


def page(n: int, words: int = 60, *, host: str = "a.example", rotating: bool = False) -> SourcePage:
    """A page of a site with a menu, a promo box and a footer around its own text."""
    promo = text(9_000 + n, 14) if rotating else PROMO
    return SourcePage(
        f"https://{host}/{n}",
        f"<title>Page {n}</title><body><div id=top class='bar wide'><nav class=menu>{MENU}</nav>"
        f"</div><main><h1 id=post-{n}>{text(n, 4)}</h1><div class=story><p>{text(n + 500, words)}"
        f"</p></div><aside class=promo><p>{promo}</p></aside></main>"
        f"<footer class=legal><p>{FOOTER}</footer>",
    )


def by_selector(pages: list[SourcePage]) -> dict[str, TemplatePart]:
    return {part.selector: part for part in template_parts(pages)}


def test_parts_come_with_what_pages_share_the_outermost_first() -> None:
    parts = by_selector([page(n) for n in range(10)])
    # Selectors of the same elements are one row, and parts of what is repeated are none.
    assert list(parts) == ["main", ".legal", "#top", ".story", ".promo"]
    assert {part.pages for part in parts.values()} == {10}
    assert {part.host for part in parts.values()} == {"a.example"}
    assert [part.same for part in parts.values()] == [1, 10, 10, 1, 10]
    assert parts["#top"].text == "Home Timetables Fares Islands Harbour office Contact us"
    assert parts["main"].votes > 0.8 > parts["main"].words > parts[".story"].words > 0.5
    outermost = ("main", "#top", ".legal")
    assert sum(parts[name].words for name in outermost) == pytest.approx(1, abs=0.002)
    assert sum(parts[name].votes for name in outermost) == pytest.approx(1, abs=0.002)


def test_words_in_inline_elements_count_by_their_part_of_the_block() -> None:
    pages = [
        SourcePage(
            f"https://a.example/{n}",
            f"<p>{text(n, 30)} <span class=ad>one two three four five six seven eight nine</span>",
        )
        for n in range(3)
    ]
    (part,) = template_parts(pages)
    assert (part.selector, part.same) == (".ad", 3)
    assert 0.1 < part.words < 0.3


def test_a_part_with_other_text_on_each_page_is_told_apart() -> None:
    parts = by_selector([page(n, rotating=True) for n in range(6)])
    assert (parts[".promo"].pages, parts[".promo"].same) == (6, 1)
    some = by_selector([page(n, rotating=n > 3) for n in range(6)])
    assert (some[".promo"].pages, some[".promo"].same) == (6, 4)


def test_pages_of_the_same_text_count_once_and_200_are_enough() -> None:
    copies = [SourcePage(f"https://a.example/copy/{n}", page(0).html) for n in range(20)]
    assert by_selector([*copies, page(1), page(2)])["#top"].examined == 3
    assert list(template_parts(copies)) == []
    assert by_selector([page(n, 12) for n in range(210)])["#top"].pages == 200


def test_hosts_are_examined_by_themselves() -> None:
    pages = [page(n, host=host) for n in range(4) for host in ("a.example", "b.example:81")]
    pages.append(page(1, host="alone.example"))
    assert {part.host: part.examined for part in template_parts(pages)} == {
        "a.example": 4, "b.example": 4
    }  # fmt: skip
    short = [effect.url for effect in selector_effects(pages, content=".story", ignore="p")]
    assert short[:8:2] == [f"https://a.example/{n}" for n in range(4)]


def test_a_page_without_classes_has_tags() -> None:
    pages = [
        SourcePage(
            f"https://a.example/{n}",
            f"<div><nav>{MENU}</nav></div><div><p>{text(n, 50)}</div><footer>{FOOTER}</footer>",
        )
        for n in range(4)
    ]
    assert list(by_selector(pages)) == ["footer", "nav"]
    plain = [SourcePage(f"https://a.example/{n}", text(n, 50)) for n in range(4)]
    bare = [SourcePage(f"https://a.example/{n}", f"<p>{text(n, 50)}") for n in range(4)]
    assert list(template_parts([*plain, *bare])) == []


UNNAMED = {"class": ("1a", "--x", "-", "a\\b"), "id": ("a\\b", "c1 c1 c1 ")}
"""Names without a selector: it would need a number of a character."""


@pytest.mark.parametrize("name", [
    "a\"b", "a'b", "a\\b", "ä-ö", "1a", "--x", "a:b/c", "a\xa0b", "\U0001f6a2", "a,b", "a]", "-",
    "x" * 600, "\x1b[31m", "{}", "a\u202eb", "c1 " * 3,
])  # fmt: skip
@pytest.mark.parametrize("attribute", ["class", "id"])
def test_selectors_of_hostile_names_are_valid_and_select_the_element(
    name: str, attribute: str
) -> None:
    value = name.replace('"', "&quot;")
    pages = [
        SourcePage(
            f"https://a.example/{n}",
            f'<main><p>{text(n, 40)}</main><div {attribute}="{value}">{FOOTER}</div>',
        )
        for n in range(3)
    ]
    parts = by_selector(pages)
    footers = [part for part in parts.values() if part.text == FOOTER]
    assert set(parts) - {part.selector for part in footers} == {"main"}
    assert bool(footers) == (len(name) < 500 and name not in UNNAMED[attribute])
    for part in footers:
        Selectors(ignore=part.selector).checked()
        cut = fingerprint(pages[0].html, ignore=part.selector)
        assert FOOTER not in cut.markdown
        assert cut.tokens == 40


def test_many_classes_and_elements_stay_few_rows() -> None:
    many = " ".join(f"c{n}" for n in range(500))
    boxes = "".join(f"<div class='box b{n}'><p>Box {n} of the frame</div>" for n in range(40))
    pages = [
        SourcePage(
            f"https://a.example/{n}",
            f"<div class='{many}'>{FOOTER}</div>{boxes}<div class='{many} own'>{text(n, 90)}</div>",
        )
        for n in range(3)
    ]
    parts = list(template_parts(pages))
    assert len(parts) <= 12
    assert ".box" in {part.selector for part in parts}
    deep = "<div class=d>" * 3_000
    pages = [SourcePage(f"https://a.example/{n}", f"{deep}{text(n, 40)}") for n in range(3)]
    assert list(template_parts(pages)) == []


def effects(pages: list[SourcePage], **options: Any) -> list[SelectorEffect]:
    return list(selector_effects(pages, **options))


def test_effects_are_pairs_of_pages_and_pages_that_fail() -> None:
    def frame(n: int, own: str, seed: int = 70) -> SourcePage:
        around = " ".join(f"<p>{text(seed + each, 40)}" for each in range(12))
        return SourcePage(
            f"https://a.example/{n}",
            f"<title>T {n}</title><main><p>{own}<div class=frame>{around}</div></main>",
        )

    # Two siblings in a long frame match, and two copies with other boxes do not.
    siblings = [frame(n, text(n, 14)) for n in (1, 2)]
    copies = [frame(n, text(3, 60), 100 * n) for n in (3, 4)]
    pages = [*siblings, *copies, frame(5, "Too short"), frame(6, text(6, 80), 700)]
    found = effects(pages, ignore=".frame")
    assert [(each.effect, each.title, each.other_title) for each in found] == [
        ("too_short", "T 5", None),
        ("no_match", "T 1", "T 2"),
        ("match", "T 3", "T 4"),
    ]
    short, parted, joined = (each.distance for each in found)
    assert (short, joined) == (None, 0)
    assert parted is not None
    assert parted > 8


def test_content_that_is_missing_is_an_effect() -> None:
    pages = [page(n) for n in range(3)]
    found = effects(pages, content=".old")
    assert [each.effect for each in found] == ["content_missing"] * 3
    assert effects(pages, content="main") == []


def test_selectors_to_try_are_checked() -> None:
    with pytest.raises(ArgumentError, match="give content, ignore"):
        next(selector_effects([]))
    with pytest.raises(ArgumentError, match="selector 1 of 'a:has"):
        next(selector_effects([], content="a:has(b)"))


def test_what_cannot_be_read_is_left_out() -> None:
    wrong = [SourcePage(f"https://a.example/{n}", "<p>x" if n else b"\x89PNG\r\n") for n in (0, 9)]
    failure = PageFailure("https://a.example/f", "unreadable", "no such file")
    pages: list[Any] = [*wrong, failure, page(1), page(2)]
    assert {part.examined for part in template_parts(pages)} == {2}
    (effect,) = effects(pages, ignore="main")
    assert (effect.effect, effect.url[-2:], (effect.other_url or "")[-2:]) == ("match", "/1", "/2")
