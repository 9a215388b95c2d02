"""The policies of a collection, and what they make of what a caller asks for."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import dict_row

from pgsimhash.policies import Policies, Policy, Rules
from pgsimhash.statements import query
from pgsimhash.store.collection import Collection, checked_distance
from pgsimhash.terms import Options


class StalePoliciesError(Exception):
    """Policies were changed since this store read them; nothing was decided yet."""


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


def rules_of(collection: Collection, policies: Policies, options: Options) -> Rules:
    """Return what holds for each URL: what ``options`` ask for, policies, the collection's own.

    Raises:
        ArgumentError: the layout does not answer the distance; or there is no such scope, or a
            number is below 1; or the age is none.
    """
    rules = Rules(policies, options, collection.default_distance)
    checked_distance(collection, options.get("distance"))
    return rules
