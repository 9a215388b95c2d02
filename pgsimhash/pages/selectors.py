"""Which part of a page counts: CSS selectors, checked by a grammar that SQL has too.

``sql/policies.sql`` has the same grammar, digest and order of policies.
:mod:`pgsimhash.html.cut` applies selectors.
"""

import hashlib
import json
import re
from fnmatch import translate
from functools import lru_cache
from itertools import count
from typing import Final, NamedTuple, Self

from pgsimhash.errors import check_type, invalid_argument
from pgsimhash.pages.urls import host_of

SELECTORS_MAX: Final = 20
SELECTOR_CHARS_MAX: Final = 500

_NEVER: Final = r"\\\x00-\x1f\ud800-\udfff\ufffe\uffff"  # XPath or cssselect fails at these
_OTHER: Final = rf"[^\x00-\x7f{_NEVER}]|\\[^0-9a-fA-F{_NEVER}]"
_CHARACTER: Final = rf"(?:[-_a-zA-Z0-9]|{_OTHER})"
_NAME: Final = rf"-?(?:[_a-zA-Z]|{_OTHER}){_CHARACTER}*"
_VALUE: Final = rf"""(?:{_NAME}|"[^"{_NEVER}]*"|'[^'{_NEVER}]*')"""
_ATTRIBUTE: Final = rf"\[\s*{_NAME}\s*(?:[~|^$*]?=\s*{_VALUE}\s*)?\]"
_SIMPLE: Final = rf"(?:#{_CHARACTER}+|\.{_NAME}|{_ATTRIBUTE})"
_TAG: Final = rf"(?:{_NAME}|\*)"
# cssselect takes no white space before the last bracket, and no vertical tab.
_NOT: Final = rf":not\(\s*(?:{_TAG}{_SIMPLE}*|{_SIMPLE}+)\)"
_COMPOUND: Final = rf"(?:{_TAG}(?:{_SIMPLE}|{_NOT})*|(?:{_SIMPLE}|{_NOT})+)"
# Compiling it takes a fifth of a command's start, so only the first selector does it.
_WHITE: Final = r"[ \t\n\r\f]"
_SELECTOR: Final = rf"{_COMPOUND}(?:(?:\s*>\s*|\s+){_COMPOUND})*".replace(r"\s", _WHITE)
_BETWEEN: Final = re.compile(rf"{_WHITE}*,{_WHITE}*")


class Selectors(NamedTuple):
    """The selectors of a page: None for those that are not set, empty for none."""

    content: str | None = None
    ignore: str | None = None

    @property
    def digest(self) -> int:
        """31 bits, equal to ``_selectors_digest`` in SQL; a row has them."""
        text = f"{self.content or ''}\n{self.ignore or ''}"
        digest = hashlib.sha256(text.encode()).digest()
        return int.from_bytes(digest[:4]) & 0x7FFFFFFF

    def __str__(self) -> str:
        given = (f"{name} {value!r}" for name, value in self._asdict().items() if value)
        return " and ".join(given)

    def checked(self) -> Self:
        """Return these, if both are valid; raise ArgumentError otherwise."""
        for name, value in self._asdict().items():
            check_selectors(name, value)
        return self

    def otherwise(self, other: Self) -> Self:
        """Return these, and the other's selectors for those that are not set."""
        return type(self)(*(a if b is None else b for a, b in zip(other, self, strict=True)))


NO_SELECTORS: Final = Selectors()


def check_selectors(name: str, text: str | None) -> None:
    """Raise ArgumentError unless a text is None, empty, or a list of supported selectors."""
    check_type(text, str | None, f"{name} is CSS selectors as a str")
    if text and (problem := _problem(text)):
        raise invalid_argument(f"{name}: {problem}")


@lru_cache
def _problem(text: str) -> str | None:
    """Return what is wrong with a list of selectors, and where."""
    text, place, pattern = text.strip(" \t\n\r\f"), 0, re.compile(_SELECTOR)
    for number in count(1):
        selector = pattern.match(text, place)
        if selector is None or len(selector[0]) > SELECTOR_CHARS_MAX or number > SELECTORS_MAX:
            break
        place = selector.end()
        if place == len(text):
            return None
        if (comma := _BETWEEN.match(text, place)) is None:
            break
        place = comma.end()
    return (
        f"selector {number} of {text[:100]!r} is not supported, at character {place + 1} "
        f"({text[place : place + 20]!r}); up to {SELECTORS_MAX} selectors of {SELECTOR_CHARS_MAX} "
        "characters have tags, classes, ids, attributes, descendants, children (>), and :not of "
        "one of the first four"
    )


def policy_selectors(rules: str, url: str) -> Selectors:
    """Return the selectors that policies define for a URL, as ``_settings_for`` in SQL does.

    ``rules`` are those of :class:`pgsimhash.store.collection.Collection`.
    """
    by_host = _rules_by_host(rules)
    host, selectors = host_of(url) or "", NO_SELECTORS
    labels = host.split(".") if host else []
    names = [".".join(labels[start:]) for start in range(len(labels))]
    if known := [rule for name in (*names, "*") for rule in by_host.get(name, ())]:
        path = _PATH.match(url)
        rest = path[1] if path else ""
        rest = rest if rest.startswith("/") else f"/{rest}"
        for pattern, own in known:
            if _like(pattern).fullmatch(rest):
                selectors = selectors.otherwise(own)
    return selectors


_PATH: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*(.*)", re.DOTALL)


@lru_cache(maxsize=8)
def _rules_by_host(rules: str) -> dict[str, list[tuple[str, Selectors]]]:
    """Return the paths and selectors of each host; those of one are in order, the first decides."""
    by_host: dict[str, list[tuple[str, Selectors]]] = {}
    for host, path, *selectors in json.loads(rules):
        by_host.setdefault(host, []).append((path, Selectors(*selectors)))
    return by_host


@lru_cache
def _like(pattern: str) -> re.Pattern[str]:
    """Return a pattern in which only ``*`` is special, and matches anything, in linear time."""
    return re.compile(translate(re.sub(r"[?[]", r"[\g<0>]", pattern)))
