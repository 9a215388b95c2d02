"""Set, list, remove and look up policies.

:mod:`pgsimhash.pages.policies` describes which of them applies.
"""

from __future__ import annotations

import psycopg
from psycopg.rows import class_row, scalar_row

from pgsimhash.db.statements import query
from pgsimhash.db.translation import server_words
from pgsimhash.errors import ArgumentError
from pgsimhash.pages.match_settings import MatchSettings
from pgsimhash.pages.policies import SETTINGS, Policy, PolicySettings
from pgsimhash.pages.times import check_age
from pgsimhash.schemes import get_scheme
from pgsimhash.store import Store
from pgsimhash.store.collection import checked_distance
from pgsimhash.store.policies import read_policies, said_about


def set_policy(store: Store, pattern: str, settings: PolicySettings) -> Policy:
    """Set the policy of the pages that match ``pattern``, and return it.

    Settings that are None keep their values. The policy applies to future verdicts of all
    processes.

    Args:
        store: the store of the collection.
        pattern: a host, including its subdomains, or ``*``; optionally followed by a path in which
            ``*`` matches anything: ``example.com/shop/*``.
        settings: at least one setting.

    Raises:
        ArgumentError: a setting or the pattern is invalid, no setting is given, the layout does not
            support the distance, or the collection's scheme is not registered in this process.
    """
    _check(store, settings)
    parameters = {
        "collection": store.collection,
        "pattern": pattern,
        **{name: getattr(settings, name) for name in SETTINGS},
    }
    try:
        with (
            store.session.writing() as (connection, _),
            connection.cursor(row_factory=class_row(Policy), binary=True) as cursor,
        ):
            policy: Policy
            (policy,) = cursor.execute(query("set_policy", connection), parameters)
    except (psycopg.errors.InvalidParameterValue, psycopg.errors.CheckViolation) as error:
        raise ArgumentError("invalid_policy", server_words(error)) from error
    return policy


def remove_policy(store: Store, pattern: str) -> bool:
    """Remove the policy of ``pattern``; return whether there was one.

    Raises:
        ArgumentError: the pattern is invalid.
    """
    parameters = {"collection": store.collection, "pattern": pattern}
    try:
        with (
            store.session.writing() as (connection, _),
            connection.cursor(row_factory=scalar_row) as cursor,
        ):
            removed = cursor.execute(query("remove_policy", connection), parameters).fetchone()
    except psycopg.errors.InvalidParameterValue as error:
        raise ArgumentError("invalid_policy", server_words(error)) from error
    return bool(removed)


def policies(store: Store) -> list[Policy]:
    """Return the policies of the collection, by host and path."""
    with store.session.reading() as (connection, collection):
        return read_policies(connection, collection)


def policy_for(store: Store, url: str) -> PolicySettings:
    """Return the settings that policies define for the page at ``url``."""
    with store.session.reading() as (connection, collection):
        answer = said_about(connection, collection, [collection.page_url(url)])
    return answer.groups[0][0] if answer.groups else PolicySettings()


def _check(store: Store, settings: PolicySettings) -> None:
    if not settings.given():
        raise ArgumentError(
            "invalid_policy", f"a policy needs a setting, one of {', '.join(SETTINGS)}"
        )
    if settings.expire_after is not None:
        check_age(settings.expire_after)
    scheme = get_scheme(store.opened.scheme)
    if settings.min_tokens is not None and settings.min_tokens < scheme.min_tokens:
        raise ArgumentError(
            "invalid_policy",
            f"pages of fewer than {scheme.min_tokens} words have no fingerprint in scheme "
            f"{scheme.name!r}; min_tokens cannot be {settings.min_tokens}, give a larger number",
        )
    MatchSettings(
        **{**settings.for_matching(), "distance": checked_distance(store.opened, settings.distance)}
    )
