"""What a caller knows about sites: where on the pages of a host the main content is.

One selector for each host, in CSS (the subset that cssselect translates) or XPath 1.0. A hint is
believed: what it selects is the content as it stands, without scripts and controls. Where it
selects no text, which is what a site's next redesign comes to, the page is read as any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from cssselect import SelectorError
from lxml import etree
from lxml.cssselect import CSSSelector
from lxml.html import HtmlElement

from pgsimhash.errors import ArgumentError
from pgsimhash.html.names import NEVER_TEXT

SELECTOR_MAX: Final = 500
"""How long a selector may be, in characters."""

HOSTS_MAX: Final = 100_000
"""How many hosts may have one."""

SELECTED_MAX: Final = 1000
"""How many elements of a page count, the first ones."""


class SiteHints:
    """The selectors of some hosts, checked and compiled.

    Args:
        selectors: from host to selector. ``"bay.example"`` stands for its subdomains too, unless
            they have their own. A selector that begins with ``/`` or ``(`` is XPath.

    Raises:
        ArgumentError: a host is none, a selector is none, or there are too many.
    """

    def __init__(self, selectors: Mapping[str, str]) -> None:
        if len(selectors) > HOSTS_MAX:
            raise ArgumentError(
                "invalid_hint", f"there are hints for more than {HOSTS_MAX:,} hosts"
            )
        self.selectors = dict(selectors)
        self._compiled = {
            _checked_host(host): _compile(host, selector) for host, selector in selectors.items()
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SiteHints) and self.selectors == other.selectors

    def __hash__(self) -> int:
        return hash(frozenset(self.selectors.items()))

    def __reduce__(self) -> tuple[type[SiteHints], tuple[dict[str, str]]]:
        # Compiled selectors cannot go to other processes; what they were compiled from can.
        return SiteHints, (self.selectors,)

    def select(self, root: HtmlElement, url: str | None) -> list[HtmlElement]:
        """Return the elements of a page that the hint for its host selects and that hold text.

        They are in order and none is inside another; none at all without a hint.
        """
        selector = self._for(url)
        found = selector(root) if selector is not None else []
        if not isinstance(found, list):
            return []
        chosen = {node for node in found[:SELECTED_MAX] if isinstance(node, HtmlElement)}
        outermost: list[HtmlElement] = []
        inside: set[HtmlElement] = set()
        for node in root.iter():
            parent = node.getparent()
            if parent in inside:
                inside.add(node)
            elif node in chosen and node.tag not in NEVER_TEXT:
                inside.add(node)
                outermost.append(node)
        return [node for node in outermost if any(text.strip() for text in node.itertext())]

    def _for(self, url: str | None) -> etree.XPath | None:
        try:
            host = (urlsplit(url).hostname or "") if url else ""
        except ValueError:
            return None
        while host:
            if host in self._compiled:
                return self._compiled[host]
            host = host.partition(".")[2]
        return None


def _checked_host(host: str) -> str:
    try:
        named = urlsplit(f"//{host}").hostname
    except ValueError:
        named = None
    if not host or named != host.lower():
        raise ArgumentError(
            "invalid_hint",
            f"{host!r} is no host; a hint is for one such as 'bay.example', without scheme and "
            "path",
        )
    return named


def _compile(host: str, selector: str) -> etree.XPath:
    if not selector.strip() or len(selector) > SELECTOR_MAX:
        raise ArgumentError(
            "invalid_hint",
            f"the selector for {host} has {len(selector)} characters; 1 to {SELECTOR_MAX} are "
            "taken",
        )
    try:
        if selector.lstrip().startswith(("/", "(")):
            return etree.XPath(selector)
        return CSSSelector(selector, translator="html")
    except (SelectorError, etree.XPathError) as error:
        raise ArgumentError(
            "invalid_hint",
            f"the selector for {host} is neither CSS nor XPath: {selector!r} ({error})",
        ) from error
