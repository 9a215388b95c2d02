"""By what settings a page counts as a duplicate: how near, among which pages, how old at most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, TypedDict

from pgsimhash.errors import ArgumentError
from pgsimhash.times import check_age

Scope = Literal["host", "collection", "global"]

NUMBER_MAX: Final = 2**31 - 1
"""The largest ``newest``, ``keep_first`` and ``min_tokens``, that of an integer in SQL."""

SCOPES: Final[tuple[Scope, ...]] = ("host", "collection", "global")


class MatchOptions(TypedDict, total=False):
    """The settings as keyword arguments; what is None or left out is for policies to say."""

    distance: int | None
    verify: bool | None
    scope: Scope | None
    newest: int | None
    max_age: timedelta | None
    canonical_link: bool | None
    keep_first: int | None
    min_tokens: int | None


def check_options(options: Mapping[str, object]) -> None:
    """Check the names of keyword arguments that are to be :class:`MatchOptions`.

    Raises:
        TypeError: there is no such option.
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
        verify: whether a match counts only if the sketches of the two pages agree as well (see
            :mod:`pgsimhash.sketch`).
        scope: ``host`` compares with the pages of the same host, ``collection`` with all of the
            collection, ``global`` with those of every collection of the same scheme.
        newest: only so many originals of the scope count, the ones stored last, and what came
            since the oldest of them. Originals were found to duplicate no other page; of copies
            any number fits, and one that came since stands in for an older original. A page that
            only ``keep_first`` let in is a copy: its row does not say that it was kept. The window
            moves with each batch, not within it: the pages of a batch count beside it.
        max_age: an original counts only if it was fetched at most so long before the page.
        canonical_link: whether a page is a duplicate of the page that its ``rel=canonical`` names,
            at any distance, if that was known before it and is on the same host, a subdomain of
            it or the other way round. Off unless asked for: many sites name their front page
            everywhere.
        keep_first: how many pages of a kind are worth keeping: a duplicate is, as long as fewer
            known pages count as its originals.
        min_tokens: a page of fewer words is not remembered.
    """

    distance: int
    verify: bool = True
    scope: Scope = "collection"
    newest: int | None = None
    max_age: timedelta | None = None
    canonical_link: bool = False
    keep_first: int = 1
    min_tokens: int = 1

    def __post_init__(self) -> None:
        """Check the values, all but the distance, which is for the layout to check.

        Raises:
            ArgumentError: there is no such scope, or a number is none from 1 to NUMBER_MAX; or
                ``max_age`` is not more than nothing.
        """
        if self.scope not in SCOPES:
            raise ArgumentError(
                "unknown_scope", f"a scope is one of {', '.join(SCOPES)}, not {self.scope!r}"
            )
        for name in ("newest", "keep_first", "min_tokens"):
            number = getattr(self, name)
            if number is None:
                continue
            if not isinstance(number, int) or number < 1:
                raise ArgumentError(
                    "invalid_number", f"{name} is a number, 1 or more, not {number!r}"
                )
            if number > NUMBER_MAX:
                raise ArgumentError(
                    "invalid_number", f"{name} is at most {NUMBER_MAX:,}, not {number:,}"
                )
        if self.max_age is not None:
            check_age(self.max_age)
