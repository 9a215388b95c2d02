"""The policies of a collection, combined with the caller's options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import psycopg

from pgsimhash.db.statements import fetch, fetch_records
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


Groups = list[tuple[PolicySettings, list[int]]]
"""Settings by policies, each with the indexes of the URLs that they apply to."""


def read_policies(connection: psycopg.Connection[Any], collection: Collection) -> list[Policy]:
    """Return the policies of a collection, by host and path."""
    scope = {"collection_id": collection.collection_id}
    return fetch_records(connection, "policies", scope, Policy)


def groups_by_policy(
    connection: psycopg.Connection[Any], collection: Collection, urls: Sequence[str]
) -> Groups:
    """Return the settings by policies for the URLs; nothing if the collection has no policies."""
    parameters = {"own_id": collection.collection_id, "urls": list(urls)}
    rows = fetch(connection, "settings_for", parameters)
    return [
        (
            PolicySettings(**dict(zip(SETTINGS, values, strict=True))),
            [number - 1 for number in numbers],
        )
        for numbers, *values in rows
    ]


def settings_by(rules: Rules, groups: Groups, count: int) -> list[MatchSettings]:
    """Return the settings of each of the ``count`` URLs."""
    settings = [rules.plain] * count
    for by_policy, places in groups:
        made = rules.settings(by_policy)
        for at in places:
            settings[at] = made
    return settings


def settings_for(
    connection: psycopg.Connection[Any], collection: Collection, rules: Rules, urls: Iterable[str]
) -> list[MatchSettings]:
    """Return the settings of each URL under the present policies."""
    url_list = list(urls)
    return settings_by(rules, groups_by_policy(connection, collection, url_list), len(url_list))


def rules_of(collection: Collection, options: MatchOptions) -> Rules:
    """Return the rules made of ``options`` and the collection's settings."""
    rules = Rules(options, collection.default_distance)
    checked_distance(collection, options.get("distance"))
    return rules
