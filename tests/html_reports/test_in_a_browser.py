"""The HTML pages in a real headless Chromium: they fit, run nothing, and send no requests.

Without a browser these tests are skipped, unless PGSIMHASH_TEST_BROWSER is "required".
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.html_reports.test_pages import hostile_pages

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PROGRAM = next(filter(None, map(shutil.which, PROGRAMS)), None)
DRIVER = shutil.which("chromedriver")
REQUIRED = os.environ.get("PGSIMHASH_TEST_BROWSER") == "required"
pytestmark = pytest.mark.skipif(
    not (PROGRAM and DRIVER) and not REQUIRED,
    reason="no Chromium; on Debian: apt-get install chromium chromium-driver",
)

SIZES = {"small phone": (320, 640), "phone": (400, 844), "desktop": (1280, 800)}
SCHEMES = ("light", "dark")


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """Chromium that reports all requests and messages; nothing is downloaded."""
    assert PROGRAM, "no Chromium"
    assert DRIVER, "no chromedriver"
    options = webdriver.ChromeOptions()
    options.binary_location = PROGRAM
    # Root has no sandbox, and containers have a small /dev/shm.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield started
    started.quit()


@dataclass(frozen=True)
class Look:
    """The state of a page in a window of one size, light or dark."""

    console: list[str]
    requests: list[str]
    hacked: Any
    width: int
    window: int
    paper: str
    ink: str
    smallest_text: float
    title: str


_MEASURE = """
const texts = [...document.querySelectorAll('body *')].filter(
    e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && e.checkVisibility());
return {
    hacked: window.hacked ?? null,
    width: document.scrollingElement.scrollWidth,
    window: document.documentElement.clientWidth,
    paper: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color,
    smallest_text: Math.min(...texts.map(e => parseFloat(getComputedStyle(e).fontSize))),
    title: document.title,
};
"""


def look(driver: Any, page: Path, size: tuple[int, int], scheme: str, phone: bool = False) -> Look:
    """Open ``page``, open all its details, hover over its links, and return what happened."""
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": phone}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    _log(driver, "browser")
    _log(driver, "performance")
    driver.get(page.as_uri())
    driver.execute_script(
        "for (const e of document.querySelectorAll('details')) e.open = true;"
        "for (const e of document.querySelectorAll('a, bdi, summary'))"
        "  for (const kind of ['mouseover', 'focus']) e.dispatchEvent(new Event(kind));"
    )
    measured = driver.execute_script(_MEASURE)
    events = [json.loads(entry["message"])["message"] for entry in _log(driver, "performance")]
    sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    console = [entry["message"] for entry in _log(driver, "browser")]
    return Look(console, [one["request"]["url"] for one in sent], **measured)


def _log(driver: Any, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = driver.get_log(kind)
    return found


@pytest.fixture
def pages(dsn: str, tmp_path: Path) -> dict[str, Path]:
    texts = hostile_pages(dsn)
    for name, text in texts.items():
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8", errors="backslashreplace")
    return {name: tmp_path / f"{name}.html" for name in texts}


def test_hostile_pages_fit_and_nothing_in_them_runs(pages: dict[str, Path], driver: Any) -> None:
    for (size, window), scheme, page in product(SIZES.items(), SCHEMES, pages.values()):
        seen = look(driver, page, window, scheme, "phone" in size)
        assert seen.width <= seen.window <= window[0], page
        assert (seen.console, seen.hacked, seen.requests) == ([], None, [page.as_uri()])
        assert seen.smallest_text >= 10, page
        shades = [brightness(seen.paper), 400, brightness(seen.ink)]
        assert shades == sorted(shades, reverse=scheme == "light")
        assert abs(shades[0] - shades[2]) > 400


def brightness(colour: str) -> float:
    return sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(",")))


def test_an_injected_style_or_script_does_nothing(pages: dict[str, Path], driver: Any) -> None:
    """The content security policy stops what escaping missed."""
    bad = (
        "<style>body { background: rgb(1, 2, 3) !important }</style>"
        "<script>window.hacked = 1</script><svg onload='window.hacked = 2'></svg>"
        "<p id=injected style='position: fixed; color: rgb(4, 5, 6)'>text"
    )
    for page in pages.values():
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("</body>", f"{bad}</body>"), encoding="utf-8")
        seen = look(driver, page, SIZES["desktop"], "light")
        assert (seen.hacked, seen.requests) == (None, [page.as_uri()])
        assert seen.paper != "rgb(1, 2, 3)"
        assert len(seen.console) >= 4  # each of them was stopped, and reported


def test_the_test_detects_a_bad_page(driver: Any, tmp_path: Path) -> None:
    """A page without escaping and policy fails every check."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<body style='width: 3000px'><img src=https://tracker.invalid/x.png>"
        "<script>window.hacked = 1; console.error('x')</script><p>text"
    )
    seen = look(driver, page, SIZES["desktop"], "light")
    assert seen.width > seen.window
    assert seen.hacked == 1
    assert seen.console
    assert len(seen.requests) == 2


def violations(driver: Any, page: Path, scheme: str) -> list[tuple[str, list[str]]]:
    """The rules of axe that a page violates with all its details open, and where."""
    look(driver, page, SIZES["desktop"], scheme)
    axe = files("selenium_axe_python") / "axe-core" / "axe.min.js"
    driver.execute_script(axe.read_text(encoding="utf-8"))
    tags = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]
    found = driver.execute_async_script(
        "axe.run({runOnly: arguments[0]}).then(arguments[1])", tags
    )["violations"]
    return [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found]


def test_the_pages_are_accessible_in_light_and_dark(pages: dict[str, Path], driver: Any) -> None:
    for page, scheme in product(pages.values(), SCHEMES):
        assert violations(driver, page, scheme) == [], (page.name, scheme)


def test_a_spoilt_colour_is_found(pages: dict[str, Path], driver: Any) -> None:
    page = pages["report"]
    text = page.read_text(encoding="utf-8")
    # Without the policy, which has the hash of the style.
    start = text.index("<meta http-equiv")
    text = text[:start] + text[text.index(">", start) + 1 :]
    page.write_text(text.replace("--quiet:#9da7b3", "--quiet:#3a4149"), encoding="utf-8")
    assert [rule for rule, _ in violations(driver, page, "light")] == []
    assert [rule for rule, _ in violations(driver, page, "dark")] == ["color-contrast"]
