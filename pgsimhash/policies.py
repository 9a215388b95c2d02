"""What holds for the pages of some hosts in place of what holds for the collection.

A policy is for a pattern: a host, which stands for its subdomains too, or ``*`` for all, and
perhaps a path in which ``*`` stands for anything. Of several that fit a URL the most specific one
decides, setting by setting: the longer host first, then the longer path. What a caller asks for
counts before any policy, and what a policy does not say is left to the collection.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final

from pgsimhash.terms import Options, Scope, Terms, check_options
from pgsimhash.urls import host_of, path_of

EVERYWHERE: Final = "*"
"""The host, or the path, of a pattern that fits all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a policy says; None where it says nothing.

    Those of :class:`pgsimhash.terms.Terms`, and one more.

    Attributes:
        expire_after: after how long a version that was not seen again is forgotten, when
            ``expire`` goes by policies.
    """

    distance: int | None = None
    verify: bool | None = None
    scope: Scope | None = None
    newest: int | None = None
    max_age: timedelta | None = None
    canonical_link: bool | None = None
    keep_first: int | None = None
    min_words: int | None = None
    expire_after: timedelta | None = None

    def given(self) -> dict[str, Any]:
        """Return the settings that are not None, by name."""
        values = ((name, getattr(self, name)) for name in SETTINGS)
        return {name: value for name, value in values if value is not None}

    def terms(self) -> dict[str, Any]:
        """Return those of them that are fields of :class:`pgsimhash.terms.Terms`."""
        return {name: value for name, value in self.given().items() if name != "expire_after"}

    def as_json(self) -> dict[str, Any]:
        """Return the settings that are not None as JSON values, ages in seconds."""
        return {
            name: value.total_seconds() if isinstance(value, timedelta) else value
            for name, value in self.given().items()
        }


SETTINGS: Final = tuple(setting.name for setting in fields(Settings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(Settings):
    """The settings for one pattern, and when they were set last."""

    host: str
    path: str = EVERYWHERE
    set_at: datetime | None = field(default=None, compare=False)

    @property
    def pattern(self) -> str:
        """The pattern as one text, such as ``example.com/shop/*``."""
        return self.host if self.path == EVERYWHERE else self.host + self.path

    def fits_path(self, path: str) -> bool:
        """Return whether the pattern fits the path of a URL, of which the host fits."""
        first, *others = self.path.split("*")
        if not others:
            return path == first
        if not path.startswith(first):
            return False
        at, last = len(first), others.pop()
        for part in others:
            found = path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return path.endswith(last) and len(path) - len(last) >= at

    def as_json(self) -> dict[str, Any]:
        """Return the pattern and the settings as JSON values, ages in seconds."""
        # Zero-argument super() fails in a dataclass with slots, which is another class.
        return {"pattern": self.pattern, **Settings.as_json(self)}


class Policies:
    """All policies of a collection, as of a version of them."""

    def __init__(self, policies: Iterable[Policy] = (), version: int = 0) -> None:
        self.version = version
        self.all = list(policies)
        self._by_host: dict[str, list[Policy]] = {}
        for policy in sorted(self.all, key=_most_specific_first):
            self._by_host.setdefault(policy.host, []).append(policy)

    def fitting(self, url: str) -> tuple[Policy, ...]:
        """Return the policies that fit a URL, the most specific first."""
        if not self._by_host:
            return ()
        path = path_of(url)
        return tuple(
            policy
            for host in _hosts(url)
            for policy in self._by_host.get(host, ())
            if policy.fits_path(path)
        )


class Rules:
    """What a call asks for, over what policies say, over what the collection has.

    Args:
        policies: those of the collection.
        options: what the caller asks for; None and what is missing leave it to the policies.
        default_distance: the collection's distance.

    Raises:
        TypeError: there is no such option.
        ArgumentError: there is no such scope, or a number is below 1; or the age is none.
    """

    def __init__(self, policies: Policies, options: Options, default_distance: int) -> None:
        check_options(options)
        self._policies = policies
        self._asked = {name: value for name, value in options.items() if value is not None}
        self._default_distance = default_distance
        self._made: dict[tuple[Policy, ...], Terms] = {}
        self._make(())

    @property
    def version(self) -> int:
        """The version of the policies."""
        return self._policies.version

    def terms_for(self, url: str) -> Terms:
        """Return on what terms the page at ``url`` counts as a duplicate."""
        fitting = self._policies.fitting(url)
        return self._made.get(fitting) or self._make(fitting)

    def _make(self, fitting: tuple[Policy, ...]) -> Terms:
        said = merged(fitting).terms()
        terms = Terms(**{"distance": self._default_distance, **said, **self._asked})
        self._made[fitting] = terms
        return terms


def merged(policies: Iterable[Settings]) -> Settings:
    """Return for each setting what the first of the policies says that says anything."""
    said: dict[str, Any] = {}
    for policy in policies:
        said = {**policy.given(), **said}
    return Settings(**said)


def _most_specific_first(policy: Policy) -> tuple[Any, ...]:
    path = policy.path
    return (policy.host, path == EVERYWHERE, -len(path), path)


def _hosts(url: str) -> Iterator[str]:
    """The hosts of policies that fit a URL: its own, those it is a subdomain of, all."""
    host = host_of(url) or ""
    while host:
        yield host
        host = host.partition(".")[2]
    yield EVERYWHERE
