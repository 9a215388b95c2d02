"""Policies: set, listed and taken back, and found for a URL.

See :mod:`pgsimhash.pages.policies` for which of them counts.
"""

from __future__ import annotations

import psycopg
from psycopg.rows import class_row, scalar_row

from pgsimhash.db.connection import server_words
from pgsimhash.db.statements import query
from pgsimhash.errors import ArgumentError
from pgsimhash.pages.match_settings import MatchSettings
from pgsimhash.pages.policies import SETTINGS, Policy, PolicySettings
from pgsimhash.pages.times import check_age
from pgsimhash.schemes import get_scheme
from pgsimhash.store import Store
from pgsimhash.store.collection import checked_distance
from pgsimhash.store.policies import read_policies, said_about


def set_policy(store: Store, pattern: str, settings: PolicySettings) -> Policy:
    """Set what holds for the pages that ``pattern`` fits, and return all that does.

    What is None stays as it was. It holds for verdicts from now on, those of other processes
    too.

    Args:
        store: whose collection it is for.
        pattern: a host, which stands for its subdomains too, or ``*``, and perhaps a path in
            which ``*`` stands for anything: ``example.com/shop/*``.
        settings: at least one of them.

    Raises:
        ArgumentError: there is no setting, the pattern is none, or it contradicts the scheme; the
            layout does not answer the distance; there is no such scope, or a number is below 1; an
            age is none; the collection's scheme is not registered in this process.
        CollectionError: no collection of the scheme has the name any more.
        StoreError: the database does not answer.
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
            made: Policy
            (made,) = cursor.execute(query("set_policy", connection), parameters)
    except (psycopg.errors.InvalidParameterValue, psycopg.errors.CheckViolation) as error:
        raise ArgumentError("invalid_policy", server_words(error)) from error
    return made


def remove_policy(store: Store, pattern: str) -> bool:
    """Take back what was set for ``pattern``; return whether anything was.

    Raises:
        ArgumentError: the pattern is none.
        CollectionError: no collection of the scheme has the name any more.
        StoreError: the database does not answer.
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
    """Return the policies of the collection, by host and path.

    Raises:
        StoreError: the database does not answer.
    """
    with store.session.reading() as (connection, collection):
        return read_policies(connection, collection)


def policy_for(store: Store, url: str) -> PolicySettings:
    """Return the settings that policies have for the page at ``url``.

    Raises:
        StoreError: the database does not answer.
    """
    with store.session.reading() as (connection, collection):
        said = said_about(connection, collection, [collection.page_url(url)])
    return said.groups[0][0] if said.groups else PolicySettings()


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
            f"{scheme.name!r}; give a larger min_tokens than {settings.min_tokens}",
        )
    MatchSettings(
        **{**settings.for_matching(), "distance": checked_distance(store.opened, settings.distance)}
    )
