"""The settings that make a page a duplicate, and the policies that override them for some hosts.

A policy applies to a pattern: a host and its subdomains, or ``*`` for all hosts, optionally with a
path in which ``*`` matches anything. Of several policies for a URL the most specific one decides,
setting by setting: the longer host first, then the longer path. The database decides this
(``_settings_for`` in ``sql/policies.sql``). Options override policies, policies the collection.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypedDict

from pgsimhash.errors import check_number, check_type, invalid_argument
from pgsimhash.pages.records import json_values
from pgsimhash.pages.selectors import Selectors
from pgsimhash.pages.values import check_age

__all__ = ["MatchOptions", "PolicySettings"]

Scope = Literal["host", "collection", "global"]

NUMBER_MAX: Final = 2**31 - 1  # SQL's largest integer
SCOPES: Final[tuple[Scope, ...]] = ("host", "collection", "global")

_PARAMETERS: Final = re.compile(r"([^\s,&=#?]+(, *[^\s,&=#?]+)*)?")


class MatchOptions(TypedDict, total=False):
    """The :class:`PolicySettings` of a page as keyword arguments; policies decide missing ones."""

    distance: int | None
    verify: bool | None
    scope: Scope | None
    window_size: int | None
    max_age: timedelta | None
    canonical_link: bool | None
    max_copies: int | None
    min_tokens: int | None
    content: str | None
    ignore: str | None


class PolicyOptions(MatchOptions, total=False):
    """The :class:`PolicySettings` of a pattern as keyword arguments; missing ones stay."""

    expire_after: timedelta | None
    refetch_after: timedelta | None
    ignore_parameters: str | None
    sample_every: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """What makes a page a duplicate, and how long pages stay known; None for what is not set.

    Attributes:
        distance: the largest number of differing bits, by default the collection's, whose layout
            checks it.
        verify: whether the signatures of two pages have to confirm a match (see
            :mod:`pgsimhash.hashing.signature`), by default yes.
        scope: ``host`` compares with the pages of the same host, ``collection`` (the default) with
            all pages of the collection, ``global`` with those of every collection of the same
            scheme.
        window_size: the number of eligible originals: those of the scope that were stored last, by
            default all. Originals duplicate no other page. All copies since the oldest eligible
            original are eligible too, and do not count. A page kept only because of ``max_copies``
            is a copy. The window moves between batches: the pages of a batch come on top.
        max_age: how long before the page an eligible original was fetched at most.
        canonical_link: whether a page duplicates the page that its ``rel=canonical`` names, at any
            distance. The latter must be known before, on the same host or registered domain. Off by
            default: many sites name their front page everywhere.
        max_copies: the number of near-duplicates worth keeping, by default 1: a duplicate is, while
            it has fewer eligible originals.
        min_tokens: the fewest words of a page that is stored, if the scheme does not need more.
        expire_after: how long after it was last seen a version is deleted, if ``expire`` uses
            policies.
        refetch_after: how long after it was last seen ``should_fetch`` answers yes again; 0 is
            always.
        content: CSS selectors of the part of a page that counts, by default all. If they select
            nothing, the page is read whole. Empty for none, also below a policy that has some.
        ignore: CSS selectors of what does not count; empty likewise.
        ignore_parameters: the names of URL parameters that do not matter, with commas between them,
            such as ``ref,utm_*``; ``should_fetch`` answers for all URLs of one
            :func:`~pgsimhash.pages.urls.page_address`. Empty for none.
        sample_every: of how many URLs whose address is fresh one is fetched all the same, by
            default 100, so that exceptions can show.
    """

    distance: int | None = None
    verify: bool | None = None
    scope: Scope | None = None
    window_size: int | None = None
    max_age: timedelta | None = None
    canonical_link: bool | None = None
    max_copies: int | None = None
    min_tokens: int | None = None
    expire_after: timedelta | None = None
    refetch_after: timedelta | None = None
    content: str | None = None
    ignore: str | None = None
    ignore_parameters: str | None = None
    sample_every: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.scope, str | None) or self.scope not in (None, *SCOPES):
            raise invalid_argument(f"a scope is one of {', '.join(SCOPES)}, not {self.scope!r}")
        for name in ("window_size", "max_copies", "min_tokens", "sample_every"):
            number = getattr(self, name)
            if number is not None:
                object.__setattr__(self, name, check_number(name, number))
        for name in ("verify", "canonical_link"):
            check_type(getattr(self, name), bool | None, f"{name} is True or False")
        Selectors(self.content, self.ignore).checked()
        names = "ignore_parameters are names with commas, such as 'ref,utm_*'"
        check_type(self.ignore_parameters, str | None, names)
        given = self.ignore_parameters or ""
        if len(given) > 1_000 or not _PARAMETERS.fullmatch(given):
            raise invalid_argument(f"{names}, not {self.ignore_parameters!r}")
        for age in (self.max_age, self.expire_after):
            check_age(age)
        check_age(self.refetch_after, always=True)

    def given(self) -> dict[str, Any]:
        """Return the settings that are not None, by name."""
        return {name: value for name in SETTINGS if (value := getattr(self, name)) is not None}

    def as_json(self) -> dict[str, Any]:
        """Return the settings that are not None as JSON values, ages in seconds."""
        return json_values(self, *self.given())


SETTINGS: Final = tuple(setting.name for setting in fields(PolicySettings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(PolicySettings):
    """The settings for one pattern, and when they were last set."""

    host: str
    path: str = "*"
    set_at: datetime | None = field(default=None, compare=False)

    @property
    def pattern(self) -> str:
        """The pattern as one text, such as ``example.com/shop/*``."""
        return self.host if self.path == "*" else self.host + self.path

    def as_json(self) -> dict[str, Any]:
        """Return the pattern and the settings as JSON values, ages in seconds."""
        # Zero-argument super() fails in a dataclass with slots, which is another class.
        return {"pattern": self.pattern, **PolicySettings.as_json(self)}


def checked_settings(options: Mapping[str, Any], known: type = MatchOptions) -> PolicySettings:
    """Return options as settings; raise TypeError for one that the TypedDict ``known`` lacks."""
    for name in options:
        if name not in known.__annotations__:
            names = ", ".join(known.__annotations__)
            raise TypeError(f"there is no option {name!r}; there are: {names}")
    return PolicySettings(**options)
