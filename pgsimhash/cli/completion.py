"""Shell completion for the names of collections."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from pgsimhash.db.schema_names import SCHEMA_VARIABLE

_TIMEOUT: Final = 2
"""Seconds that a server without an answer can delay the shell."""


class CollectionName(StringParamType):
    """The name of a collection."""

    name = "name"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the collections with this prefix; none if the database does not answer."""
        try:
            names = _collections(ctx.params)
        except Exception:  # completion must not print messages
            return []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _collections(options: Mapping[str, Any]) -> list[str]:
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    from pgsimhash.cli import database
    from pgsimhash.db.schema_names import bound_to_schema
    from pgsimhash.embedded import server

    dsn = database.configured_dsn(options.get("dsn"))
    if dsn in (None, database.EMBEDDED):
        # Starting the server takes longer than typing the name.
        dsn = server.running()
    if dsn is None:
        return []
    timeout = conninfo_to_dict(dsn).get("connect_timeout") or _TIMEOUT
    schema = options.get("schema") or os.environ.get(SCHEMA_VARIABLE) or None
    with (
        database.pinned(
            database.open_connection(make_conninfo(dsn, connect_timeout=timeout))
        ) as connection,
        bound_to_schema(connection, schema),
    ):
        connection.execute(f"SET statement_timeout = '{_TIMEOUT}s'")
        return database.collection_names(connection)
