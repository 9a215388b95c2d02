"""The simhash of a page's structure: near within a template, far between templates."""

import random
from pathlib import Path

import pytest

from pgsimhash import fingerprint, hamming_distance
from pgsimhash.html.blocks import structure_of
from pgsimhash.html.parse import parse

PAGES = Path(__file__).parents[2] / "examples" / "pages"
GOLDEN = 0x6190588D046A5179
SAME_TEMPLATE = 12
"""The documented distance of two pages of one template."""


def shape(html: str) -> int:
    root = parse(html)
    assert root is not None
    return structure_of(root)


def example(name: str) -> int:
    structure = fingerprint((PAGES / f"{name}.html").read_bytes()).structure
    assert structure is not None
    return structure


def page(article: str, classes: str = "main") -> str:
    return (
        f"<html><head><title>x</title><meta name=a></head><body class={classes}><header><nav><ul>"
        f"<li><a href=/>Home</a></ul></nav></header><main class={classes}><div id={classes}>"
        f"<article>{article}</article></div><aside><section><form><input></form></section></aside>"
        "</main><footer><div><p>Imprint</div></footer></body></html>"
    )


LONG = "<h2>more</h2><p>some <b>bold</b> text</p><ul><li>x</ul><pre><code>y</code></pre>" * 500
RICH = "<figure><img><figcaption>x</figcaption></figure><table><tr><td>x</table><svg><g/></svg>"


@pytest.mark.parametrize("other", [page("<p>text", "css-1x2y3z"), page(LONG), page(RICH)])
def test_classes_length_and_pictures_change_no_structure_a_promotion_little(other: str) -> None:
    assert shape(page("<p>text")) == shape(other)
    promotion = "<div><section><button>Subscribe</button></section></div><p>text"
    assert 0 < hamming_distance(shape(other), shape(page(promotion))) <= SAME_TEMPLATE


@pytest.mark.parametrize(("one", "other", "near"), [
    ("tide-pools", "town-swifts", True), ("lighthouse", "night-train", True),
    ("night-train", "night-train-other-menu", True), ("tide-pools", "tide-pools-one-comment", True),
    ("tide-pools-redesign", "lighthouse-redesign", True),
    ("tide-pools", "tide-pools-redesign", False), ("lighthouse", "lighthouse-redesign", False),
    ("repair-cafe", "repair-cafe-syndicated", False), ("tide-pools", "seilfaehre", False),
])  # fmt: skip
def test_pages_of_one_template_are_near_and_others_far(one: str, other: str, near: bool) -> None:
    assert (hamming_distance(example(one), example(other)) <= SAME_TEMPLATE) == near


def test_the_order_of_siblings_does_not_matter_and_the_value_never_changes() -> None:
    parts = ["<div><form></form></div>", "<nav></nav>", "<section></section>"]
    shapes = set()
    for seed in range(5):
        random.Random(seed).shuffle(parts)
        shapes.add(shape("<body>" + "".join(parts)))
    assert shapes == {GOLDEN}
    # A page without an element has no shape.
    assert shape("<p>") == shape("text alone")
    assert parse("") is None
