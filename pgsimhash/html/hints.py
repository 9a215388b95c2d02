"""Select the main content of pages by the caller's selectors for hosts.

A host has one selector, in CSS (the subset that cssselect translates) or XPath 1.0. The selected
elements are the content, without scripts and controls. If a selector selects no text, for example
after a redesign of the site, the page is read like any other.
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
"""The longest selector, in characters."""

HOSTS_MAX: Final = 100_000
"""The most hosts."""

SELECTED_MAX: Final = 1000
"""How many selected elements of a page count."""


class SiteHints:
    """The checked and compiled selectors of hosts.

    Args:
        selectors: a mapping from host to selector. ``"bay.example"`` includes its subdomains,
            unless they have their own. A selector that begins with ``/`` or ``(`` is XPath.

    Raises:
        ArgumentError: a host or selector is invalid, or there are too many hosts.
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
        # Compiled selectors cannot be pickled; their sources can.
        return SiteHints, (self.selectors,)

    def select(self, root: HtmlElement, url: str | None) -> list[HtmlElement]:
        """Return the selected elements of a page that contain text, in document order.

        None of them is inside another. The list is empty without a hint for the host.
        """
        selector = self._for(url)
        selected = selector(root) if selector is not None else []
        if not isinstance(selected, list):
            return []
        chosen = {node for node in selected[:SELECTED_MAX] if isinstance(node, HtmlElement)}
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
            f"{host!r} is not a host; write it like 'bay.example', without scheme and path",
        )
    return named


def _compile(host: str, selector: str) -> etree.XPath:
    if not selector.strip() or len(selector) > SELECTOR_MAX:
        raise ArgumentError(
            "invalid_hint",
            f"the selector for {host} has {len(selector)} characters; 1 to {SELECTOR_MAX} are "
            "allowed",
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
