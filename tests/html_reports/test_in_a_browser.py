"""The HTML pages in a real browser: they fit, run nothing, and send no requests.

Without a browser these tests are skipped, unless PGSIMHASH_TEST_BROWSER is "required".
"""

import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.html_reports import hostile

browser = pytest.importorskip("tests.html_reports.browser", reason="selenium is not installed")
MISSING = browser.missing()
REQUIRED = os.environ.get("PGSIMHASH_TEST_BROWSER") == "required"
pytestmark = pytest.mark.skipif(MISSING is not None and not REQUIRED, reason=str(MISSING))

SIZES = {"phone": (390, 844), "desktop": (1280, 800)}
SCHEMES = ("light", "dark")


@pytest.fixture(scope="module")
def driver() -> Iterator[object]:
    with browser.chromium() as started:
        yield started


@pytest.fixture
def pages(dsn: str, tmp_path: Path) -> dict[str, Path]:
    """Each kind of page with hostile content."""
    texts = hostile.pages(dsn)
    for name, text in texts.items():
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8", errors="backslashreplace")
    return {name: tmp_path / f"{name}.html" for name in texts}


def test_hostile_pages_fit_and_nothing_in_them_runs(pages: dict[str, Path], driver: object) -> None:
    for (size, window), scheme, page in product(SIZES.items(), SCHEMES, pages.values()):
        seen = browser.look(driver, page, window, scheme, size == "phone")
        assert seen.width <= seen.window <= window[0], page
        assert (seen.console, seen.hacked, seen.requests) == ([], None, [page.as_uri()])
        assert seen.smallest_text >= 10, page
        shades = [brightness(seen.paper), 400, brightness(seen.ink)]
        assert shades == sorted(shades, reverse=scheme == "light")
        assert abs(shades[0] - shades[2]) > 400


def brightness(colour: str) -> float:
    return sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(",")))


def test_an_injected_style_or_script_does_nothing(pages: dict[str, Path], driver: object) -> None:
    """The content security policy stops what escaping missed."""
    bad = (
        "<style>body { background: rgb(1, 2, 3) !important }</style>"
        "<script>window.hacked = 1</script><svg onload='window.hacked = 2'></svg>"
        "<p id=injected style='position: fixed; color: rgb(4, 5, 6)'>text"
    )
    for page in pages.values():
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("</body>", f"{bad}</body>"), encoding="utf-8")
        seen = browser.look(driver, page, SIZES["desktop"], "light")
        assert (seen.hacked, seen.requests) == (None, [page.as_uri()])
        assert seen.paper != "rgb(1, 2, 3)"
        assert len(seen.console) >= 4  # each of them was stopped, and reported


def test_the_test_detects_a_bad_page(driver: object, tmp_path: Path) -> None:
    """A page without escaping and policy fails every check."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<body style='width: 3000px'><img src=https://tracker.invalid/x.png>"
        "<script>window.hacked = 1; console.error('x')</script><p>text"
    )
    seen = browser.look(driver, page, SIZES["desktop"], "light")
    assert seen.width > seen.window
    assert seen.hacked == 1
    assert seen.console
    assert len(seen.requests) == 2
