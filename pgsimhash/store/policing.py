"""Policies: set, listed and taken back, and found for a URL."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import class_row, dict_row, scalar_row

from pgsimhash.connection import server_words
from pgsimhash.errors import PolicyError
from pgsimhash.policies import SETTINGS, Policies, Policy, Settings, merged
from pgsimhash.schemes import get_scheme
from pgsimhash.statements import query
from pgsimhash.store.collection import Collection
from pgsimhash.store.part import Part
from pgsimhash.terms import Terms
from pgsimhash.times import check_age


class StalePoliciesError(Exception):
    """Policies were changed since this store read them; nothing was decided yet."""


class Policing(Part):
    """Settings by host and path; see :mod:`pgsimhash.policies` for which of them counts."""

    def set_policy(self, pattern: str, settings: Settings) -> Policy:
        """Set what holds for the pages that ``pattern`` fits, and return all that does.

        What is None stays as it was. It holds for verdicts from now on, those of other processes
        too.

        Args:
            pattern: a host, which stands for its subdomains too, or ``*``, and perhaps a path in
                which ``*`` stands for anything: ``example.com/shop/*``.
            settings: at least one of them.

        Raises:
            PolicyError: there is no setting, the pattern is none, or it contradicts the scheme.
            InvalidDistanceError: the layout does not answer the distance.
            UnknownRuleError: there is no such scope, or a number is below 1.
            InvalidTimeError: an age is none.
            SchemeError: the collection's scheme is not registered in this process.
            CollectionError: the collection was renamed since it was opened.
            StoreError: the database does not answer.
        """
        self._check(settings)
        parameters = {
            "collection": self._collection.name,
            "pattern": pattern,
            **{name: getattr(settings, name) for name in SETTINGS},
        }
        try:
            with (
                self._change() as connection,
                connection.cursor(row_factory=class_row(Policy), binary=True) as cursor,
            ):
                (made,) = cursor.execute(query("set_policy"), parameters)
        except (psycopg.errors.InvalidParameterValue, psycopg.errors.CheckViolation) as error:
            raise PolicyError(server_words(error)) from error
        self._read_policies()
        return made

    def remove_policy(self, pattern: str) -> bool:
        """Take back what was set for ``pattern``; return whether anything was.

        Raises:
            PolicyError: the pattern is none.
            CollectionError: the collection was renamed since it was opened.
            StoreError: the database does not answer.
        """
        parameters = {"collection": self._collection.name, "pattern": pattern}
        try:
            with (
                self._change() as connection,
                connection.cursor(row_factory=scalar_row) as cursor,
            ):
                removed = cursor.execute(query("remove_policy"), parameters).fetchone()
        except psycopg.errors.InvalidParameterValue as error:
            raise PolicyError(server_words(error)) from error
        self._read_policies()
        return bool(removed)

    def policies(self) -> list[Policy]:
        """Return the policies of the collection, by host and path.

        Raises:
            StoreError: the database does not answer.
        """
        self._read_policies()
        return self._policies.all

    def policy_for(self, url: str) -> Settings:
        """Return the settings that policies have for the page at ``url``.

        Raises:
            StoreError: the database does not answer.
        """
        self._read_policies()
        return merged(self._policies.fitting(url))

    def _check(self, settings: Settings) -> None:
        if not settings.given():
            raise PolicyError(f"a policy needs a setting, one of {', '.join(SETTINGS)}")
        if settings.expire_after is not None:
            check_age(settings.expire_after)
        scheme = get_scheme(self._collection.scheme)
        if settings.min_words is not None and settings.min_words < scheme.min_tokens:
            raise PolicyError(
                f"pages of fewer than {scheme.min_tokens} words have no fingerprint in scheme "
                f"{scheme.name!r}; give a larger min_words than {settings.min_words}"
            )
        Terms(**{**settings.terms(), "distance": self._distance(settings.distance)})

    def _read_policies(self) -> None:
        with self._session.read() as connection:
            self._policies = read_policies(connection, self._collection)


def read_policies(connection: psycopg.Connection[Any], collection: Collection) -> Policies:
    """Return the policies that hold for a collection."""
    scope = {"collection_id": collection.collection_id}
    with connection.cursor(row_factory=dict_row, binary=True) as cursor:
        rows = cursor.execute(query("policies"), scope).fetchall()
    version = rows[0]["policies_version"] if rows else 0
    found = [
        Policy(**{name: value for name, value in row.items() if name != "policies_version"})
        for row in rows
        if row["host"] is not None
    ]
    return Policies(found, version)
