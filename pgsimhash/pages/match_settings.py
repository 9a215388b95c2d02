"""Define the settings that make a page a duplicate: distance, scope, age and more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, TypedDict

from pgsimhash.errors import ArgumentError
from pgsimhash.pages.times import check_age

Scope = Literal["host", "collection", "global"]

NUMBER_MAX: Final = 2**31 - 1
"""The largest ``window_size``, ``max_copies`` and ``min_tokens``: SQL's largest integer."""

SCOPES: Final[tuple[Scope, ...]] = ("host", "collection", "global")


class MatchOptions(TypedDict, total=False):
    """The settings as keyword arguments; policies decide those that are None or missing."""

    distance: int | None
    verify: bool | None
    scope: Scope | None
    window_size: int | None
    max_age: timedelta | None
    canonical_link: bool | None
    max_copies: int | None
    min_tokens: int | None


def check_options(options: Mapping[str, object]) -> None:
    """Check that the names of keyword arguments are those of :class:`MatchOptions`.

    Raises:
        TypeError: an option is unknown.
    """
    for name in options:
        if name not in MatchOptions.__annotations__:
            known = ", ".join(MatchOptions.__annotations__)
            raise TypeError(f"there is no option {name!r}; there are: {known}")


@dataclass(frozen=True, slots=True)
class MatchSettings:
    """What makes a page a duplicate.

    Attributes:
        distance: the largest number of differing bits.
        verify: whether the signatures of two pages have to confirm a match (see
            :mod:`pgsimhash.hashing.signature`).
        scope: ``host`` compares with the pages of the same host, ``collection`` with all pages of
            the collection, ``global`` with those of every collection of the same scheme.
        window_size: the number of eligible originals: those of the scope that were stored last.
            Originals duplicate no other page. All copies since the oldest eligible original are
            eligible too, and do not count. A page kept only because of ``max_copies`` is a copy.
            The window moves between batches: the pages of a batch come on top.
        max_age: how long before the page an eligible original was fetched at most.
        canonical_link: whether a page duplicates the page that its ``rel=canonical`` names, at any
            distance. The latter must be known before, on the same host, a subdomain of it, or the
            reverse. Off by default: many sites name their front page everywhere.
        max_copies: the number of near-duplicates worth keeping: a duplicate is, while it has fewer
            eligible originals.
        min_tokens: the fewest words of a page that is stored.
    """

    distance: int
    verify: bool = True
    scope: Scope = "collection"
    window_size: int | None = None
    max_age: timedelta | None = None
    canonical_link: bool = False
    max_copies: int = 1
    min_tokens: int = 1

    def __post_init__(self) -> None:
        """Check all values except the distance, which the layout checks.

        Raises:
            ArgumentError: the scope is unknown, a number is not in 1..NUMBER_MAX, or ``max_age`` is
                not positive.
        """
        if self.scope not in SCOPES:
            raise ArgumentError(
                "invalid_argument", f"a scope is one of {', '.join(SCOPES)}, not {self.scope!r}"
            )
        for name in ("window_size", "max_copies", "min_tokens"):
            number = getattr(self, name)
            if number is None or (isinstance(number, int) and 1 <= number <= NUMBER_MAX):
                continue
            raise ArgumentError(
                "invalid_argument", f"{name} is a number from 1 to {NUMBER_MAX:,}, not {number!r}"
            )
        if self.max_age is not None:
            check_age(self.max_age)
