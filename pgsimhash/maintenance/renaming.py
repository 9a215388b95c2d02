"""Gives a collection another name, or lets two exchange theirs."""

from __future__ import annotations

from typing import Any

import psycopg

from pgsimhash.connection import server_words
from pgsimhash.errors import CollectionError
from pgsimhash.statements import query


def rename_collection(
    connection: psycopg.Connection[Any], old: str, new: str, *, swap: bool
) -> None:
    """Give the collection ``old`` the name ``new``, and with ``swap`` that one the name ``old``.

    Raises:
        CollectionError: there is no such collection, or the name is taken or none.
    """
    try:
        connection.execute(query("rename_collection"), {"old": old, "new": new, "swap": swap})
    except (
        psycopg.errors.UndefinedObject,
        psycopg.errors.UniqueViolation,
        psycopg.errors.InvalidParameterValue,
    ) as error:
        raise CollectionError(server_words(error)) from error
