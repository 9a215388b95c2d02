"""What holds for the pages of some hosts in place of what holds for the collection.

A policy is for a pattern: a host, which stands for its subdomains too, or ``*`` for all, and
perhaps a path in which ``*`` stands for anything. Of several that fit a URL the most specific one
decides, setting by setting: the longer host first, then the longer path. Which fit, and what they
come to, is for the database to say (``_settings_for`` in ``sql/policies.sql``). What a caller asks
for counts before any policy, and what a policy does not say is left to the collection.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final

from pgsimhash.matching import MatchOptions, MatchSettings, Scope, check_options

EVERYWHERE: Final = "*"
"""The host, or the path, of a pattern that fits all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """What a policy says; None where it says nothing.

    Those of :class:`pgsimhash.matching.MatchSettings`, and one more.

    Attributes:
        expire_after: after how long a version that was not seen again is deleted, when
            ``expire`` goes by policies.
    """

    distance: int | None = None
    verify: bool | None = None
    scope: Scope | None = None
    newest: int | None = None
    max_age: timedelta | None = None
    canonical_link: bool | None = None
    keep_first: int | None = None
    min_tokens: int | None = None
    expire_after: timedelta | None = None

    def given(self) -> dict[str, Any]:
        """Return the settings that are not None, by name."""
        return {name: value for name in SETTINGS if (value := getattr(self, name)) is not None}

    def for_matching(self) -> dict[str, Any]:
        """Return those of them that are fields of :class:`pgsimhash.matching.MatchSettings`."""
        return {name: value for name, value in self.given().items() if name != "expire_after"}

    def as_json(self) -> dict[str, Any]:
        """Return the settings that are not None as JSON values, ages in seconds."""
        return {
            name: value.total_seconds() if isinstance(value, timedelta) else value
            for name, value in self.given().items()
        }


SETTINGS: Final = tuple(setting.name for setting in fields(PolicySettings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(PolicySettings):
    """The settings for one pattern, and when they were set last."""

    host: str
    path: str = EVERYWHERE
    set_at: datetime | None = field(default=None, compare=False)

    @property
    def pattern(self) -> str:
        """The pattern as one text, such as ``example.com/shop/*``."""
        return self.host if self.path == EVERYWHERE else self.host + self.path

    def as_json(self) -> dict[str, Any]:
        """Return the pattern and the settings as JSON values, ages in seconds."""
        # Zero-argument super() fails in a dataclass with slots, which is another class.
        return {"pattern": self.pattern, **PolicySettings.as_json(self)}


class Rules:
    """What a call asks for, over what policies say, over what the collection has.

    Attributes:
        plain: the settings where no policy says anything.

    Args:
        options: what the caller asks for; None and what is missing leave it to the policies.
        default_distance: the collection's distance.

    Raises:
        TypeError: there is no such option.
        ArgumentError: there is no such scope, or a number is below 1; or the age is none.
    """

    def __init__(self, options: MatchOptions, default_distance: int) -> None:
        check_options(options)
        self._asked: dict[str, Any] = {
            name: value for name, value in options.items() if value is not None
        }
        self._default_distance = default_distance
        self.plain = MatchSettings(**{"distance": default_distance, **self._asked})

    def settings(self, said: PolicySettings) -> MatchSettings:
        """Return by what settings a page counts as a duplicate where policies say ``said``."""
        return MatchSettings(
            **{"distance": self._default_distance, **said.for_matching(), **self._asked}
        )
