"""How settings of policies and the caller's options combine; no database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pgsimhash.errors import ArgumentError
from pgsimhash.pages.policies import MatchSettings, Policy, PolicySettings, Rules


def test_options_override_policies_and_policies_the_collection() -> None:
    rules = Rules({"max_copies": 7, "window_size": None}, 8)
    said = PolicySettings(distance=5, max_copies=2, expire_after=timedelta(days=1))
    assert rules.settings(said) == MatchSettings(5, max_copies=7)
    assert rules.plain == MatchSettings(8, max_copies=7)


@pytest.mark.parametrize(("options", "message"), [
    ({"scope": "planet"}, "a scope is one of"), ({"min_tokens": -1}, "min_tokens"),
    ({"max_copies": 0}, "max_copies is a number from 1 to 2,147,483,647, not 0"),
    ({"window_size": "5"}, "window_size is a number"), ({"window_size": 2**31}, "window_size is a"),
    ({"max_age": timedelta(0)}, "an age must be above 0"),
    ({"distanse": 3}, r"no option 'distanse'; there are: distance, verify, .*"),
])  # fmt: skip
def test_invalid_options_are_refused_at_once(options: Any, message: str) -> None:
    with pytest.raises((ArgumentError, TypeError), match=message):
        Rules(options, 8)


def test_a_policy_as_json_omits_missing_settings() -> None:
    policy = Policy(host="a.example", path="/x/*", distance=3, expire_after=timedelta(days=1))
    assert policy.as_json() == {"pattern": "a.example/x/*", "distance": 3, "expire_after": 86400.0}
