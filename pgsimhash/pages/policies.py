"""Override settings of the collection for some hosts.

A policy applies to a pattern: a host and its subdomains, or ``*`` for all hosts, optionally with a
path in which ``*`` matches anything. Of several policies for a URL the most specific one decides,
setting by setting: the longer host first, then the longer path. The database decides this
(``_settings_for`` in ``sql/policies.sql``). Options of the caller override policies; policies
override the collection.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final

from pgsimhash.pages.match_settings import MatchOptions, MatchSettings, Scope, check_options


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """The settings of a policy; None for those it does not set.

    They are those of :class:`pgsimhash.pages.match_settings.MatchSettings`, and two more.

    Attributes:
        expire_after: how long after it was last seen a version is deleted, if ``expire`` uses
            policies.
        refetch_after: how long after it was last seen ``should_fetch`` answers yes again.
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

    def given(self) -> dict[str, Any]:
        """Return the settings that are not None, by name."""
        return {name: value for name in SETTINGS if (value := getattr(self, name)) is not None}

    def for_matching(self) -> dict[str, Any]:
        """Return the settings that :class:`~pgsimhash.pages.match_settings.MatchSettings` has."""
        others = ("expire_after", "refetch_after")
        return {name: value for name, value in self.given().items() if name not in others}

    def as_json(self) -> dict[str, Any]:
        """Return the settings that are not None as JSON values, ages in seconds."""
        return {
            name: value.total_seconds() if isinstance(value, timedelta) else value
            for name, value in self.given().items()
        }


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


class Rules:
    """Combine the caller's options, then policies, then the collection's settings.

    Attributes:
        plain: the settings without policies.

    Args:
        options: the caller's options; policies decide those that are None or missing.
        default_distance: the collection's distance.

    Raises:
        TypeError: an option is unknown.
        ArgumentError: a value is invalid, see :class:`MatchSettings`.
    """

    def __init__(self, options: MatchOptions, default_distance: int) -> None:
        check_options(options)
        self._options: dict[str, Any] = {
            name: value for name, value in options.items() if value is not None
        }
        self._default_distance = default_distance
        self.plain = self.settings(PolicySettings())

    def settings(self, policy: PolicySettings) -> MatchSettings:
        """Return the settings of a page to which ``policy`` applies."""
        return MatchSettings(
            **{"distance": self._default_distance, **policy.for_matching(), **self._options}
        )
