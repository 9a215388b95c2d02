"""Evaluations as HTML pages: one file, no requests, no scripts, everything escaped."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

import numpy as np
import pytest
from lxml import etree, html

from pgsimhash.analysis.labels import LabelledPair
from pgsimhash.analysis.measures import Score, Unseen, measure
from pgsimhash.analysis.near_pairs import NearSample, Unlabelled
from pgsimhash.html_reports import evaluation_page, near_pairs_page
from pgsimhash.html_reports.charts import curve_chart, curve_floor, histogram_chart
from pgsimhash.pages.records import PageFailure

HOSTILE = "<script>alert('x')</script>&\"onload=x"


def score(scheme: str = "a scheme", kind: str = "") -> Score:
    pairs = [
        LabelledPair("1", "2", "copy", kind),
        LabelledPair("1", "3", "copy", "other"),
        LabelledPair("1", "4", "distinct"),
    ]
    simhashes = {"1": 0, "2": 1, "3": 0b111111, "4": 2**40 - 1}
    return measure(scheme, pairs, simhashes, unseen=Unseen(0.1, 0.2, scheme))


def xpath(tree: etree._Element, query: str) -> list[Any]:
    found = tree.xpath(query)
    assert isinstance(found, list)
    return found


def reports(name: str = HOSTILE) -> list[str]:
    """Both kinds of pages, with ``name`` in every possible place."""
    failures = [PageFailure(name, "unreadable", name)]
    near = NearSample(9, np.arange(17), [Unlabelled(name, name, 8, name, None)], Unseen(0, 0, name))
    return [
        evaluation_page(name, [score(name, name)], 0.999, [name], failures),
        near_pairs_page(name, [(name, near)], 8, [name], failures),
    ]


@pytest.mark.parametrize("report", reports())
def test_text_from_outside_is_escaped(report: str) -> None:
    tree = html.document_fromstring(report)
    assert not xpath(tree, "//script")
    assert not xpath(tree, "//@*[starts-with(name(), 'on')]")
    assert HOSTILE in "".join(str(text) for text in tree.itertext())


@pytest.mark.parametrize("report", reports())
def test_pages_load_and_run_nothing(report: str) -> None:
    tree = html.document_fromstring(report)
    assert not xpath(tree, "//@src | //@href | //link | //img | //iframe")
    assert "url(" not in report
    assert "@import" not in report
    (policy,) = xpath(tree, "//meta[@http-equiv='Content-Security-Policy']/@content")
    (style,) = re.findall("<style>(.*?)</style>", report, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert not xpath(tree, "//@style")


@pytest.mark.parametrize("report", reports())
def test_pages_fit_a_phone_and_follow_light_and_dark(report: str) -> None:
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in report
    assert "prefers-color-scheme: dark" in report


@pytest.mark.parametrize("report", reports())
def test_pictures_of_evaluations_are_well_formed(report: str) -> None:
    pictures = re.findall(r"<svg.*?</svg>", report, re.DOTALL)
    assert pictures
    for picture in pictures:
        etree.fromstring(picture)


def test_schemes_stand_side_by_side() -> None:
    tree = html.document_fromstring(
        evaluation_page("pairs", [score("first"), score("second")], 0.999, [], [])
    )
    assert xpath(tree, "//section/h2/text()") == ["first", "second"]
    assert len(xpath(tree, "//section//svg")) == 4
    assert not xpath(tree, "//details")


def test_the_recommended_row_stands_out_and_each_kind_has_its_recall() -> None:
    tree = html.document_fromstring(evaluation_page("pairs", [score(kind="print")], 0.999, [], []))
    assert xpath(tree, "//tr[@class='best']/td[1]/text()") == ["6"]
    assert xpath(tree, "//tr[td='print']/td/text()") == ["print", "1.0000", "1 of 1"]


def test_a_bar_for_each_distance_that_occurs_tells_its_count() -> None:
    above, below = np.zeros(65, dtype=np.int64), np.zeros(65, dtype=np.int64)
    above[[0, 3]] = 5000, 1
    below[32] = 20_000
    tree = etree.fromstring(histogram_chart(("copies", above), ("others", below), 3))
    assert xpath(tree, "//rect/title/text()") == [
        "5,000 copies at 0 bits",
        "1 copies at 3 bits",
        "20,000 others at 32 bits",
    ]
    assert all(float(height) >= 2 for height in xpath(tree, "//rect/@height"))


def test_the_axis_of_a_curve_begins_below_its_lowest_point() -> None:
    curve = score().curve
    floor = curve_floor([curve])
    assert floor <= min(at.recall for at in curve if at.recall is not None) < 1
    tree = etree.fromstring(curve_chart(curve, curve[3], floor))
    heights = [float(y) for y in xpath(tree, "//circle/@cy")]
    assert min(heights) >= 0
    assert max(heights) <= float(tree.attrib["viewBox"].split()[3])
