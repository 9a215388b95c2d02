"""A real headless Chromium that reports all requests and messages."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def missing() -> str | None:
    """Return a sentence about what is not installed, or None."""
    if not any(map(shutil.which, PROGRAMS)):
        return "no Chromium; on Debian: apt-get install chromium chromium-driver"
    if not shutil.which("chromedriver"):
        return "no chromedriver; on Debian: apt-get install chromium-driver"
    return None


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """Start Chromium; nothing is downloaded."""
    assert missing() is None, missing()
    options = Options()
    options.binary_location = next(path for name in PROGRAMS if (path := shutil.which(name)))
    # Root has no sandbox, and containers have a small /dev/shm.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


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
    smallest_text: Math.min(...texts.map(e => e.closest('svg')
        ? parseFloat(getComputedStyle(e).fontSize) * e.closest('svg').getBoundingClientRect().width
            / e.closest('svg').viewBox.baseVal.width
        : parseFloat(getComputedStyle(e).fontSize))),
    title: document.title,
};
"""


def look(
    driver: webdriver.Chrome, page: Path, size: tuple[int, int], scheme: str, phone: bool = False
) -> Look:
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


def _log(driver: webdriver.Chrome, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = driver.get_log(kind)  # type: ignore[no-untyped-call]
    return found
