"""The policies of a collection, combined with the caller's options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import class_row

from pgsimhash.db.statements import fetch
from pgsimhash.pages.policies import (
    SETTINGS,
    MatchOptions,
    MatchSettings,
    Policy,
    PolicySettings,
    Rules,
)
from pgsimhash.store.collection import Collection, checked_distance


class StalePoliciesError(Exception):
    """Policies were added that were not applied; nothing was decided yet."""


class Said(NamedTuple):
    """The policies that apply to some URLs.

    Attributes:
        policies: whether the collection has any policies.
        groups: settings, with the indexes of the URLs that they apply to; URLs without a policy are
            in no group.
    """

    policies: bool
    groups: list[tuple[PolicySettings, list[int]]]


def read_policies(connection: psycopg.Connection[Any], collection: Collection) -> list[Policy]:
    """Return the policies of a collection, by host and path."""
    scope = {"collection_id": collection.collection_id}
    return fetch(connection, "policies", scope, class_row(Policy))


def said_about(
    connection: psycopg.Connection[Any], collection: Collection, urls: Sequence[str]
) -> Said:
    """Return the policies that apply to the URLs."""
    parameters = {"collection_id": collection.collection_id, "urls": list(urls)}
    rows = fetch(connection, "settings", parameters)
    groups = [
        (
            PolicySettings(**dict(zip(SETTINGS, values, strict=True))),
            [number - 1 for number in numbers],
        )
        for _, numbers, *values in rows
        if numbers is not None
    ]
    return Said(rows[0][0], groups)


def settings_by(rules: Rules, said: Said, count: int) -> list[MatchSettings]:
    """Return the settings of each of the ``count`` URLs."""
    settings = [rules.plain] * count
    for by_policy, places in said.groups:
        made = rules.settings(by_policy)
        for at in places:
            settings[at] = made
    return settings


def settings_for(
    connection: psycopg.Connection[Any], collection: Collection, rules: Rules, urls: Iterable[str]
) -> list[MatchSettings]:
    """Return the settings of each URL under the present policies."""
    url_list = list(urls)
    return settings_by(rules, said_about(connection, collection, url_list), len(url_list))


def rules_of(collection: Collection, options: MatchOptions) -> Rules:
    """Return the rules made of ``options`` and the collection's settings."""
    rules = Rules(options, collection.default_distance)
    checked_distance(collection, options.get("distance"))
    return rules
