"""The store and how to connect to it."""

from __future__ import annotations

from typing import Any

import psycopg

from pgsimhash.connection import open_deployed
from pgsimhash.schemes import Scheme
from pgsimhash.store.store import Store

__all__ = ["Store", "connect"]


def connect(
    dsn: str | None = None,
    *,
    collection: str = "default",
    create: bool = True,
    scheme: str | Scheme | None = None,
    layout: str | None = None,
    keep_markdown: bool | None = None,
    normalize_urls: bool | None = None,
    schema: str | None = None,
    connection: psycopg.Connection[Any] | None = None,
) -> Store:
    """Open the store.

    Args:
        dsn: where PostgreSQL is, in any form libpq understands; None means PGSIMHASH_DSN, else
            "embedded": the embedded server, whose schema is deployed and upgraded on the way.
        collection: the set of pages to compare with.
        create: whether to create the collection where it does not exist.
        scheme: the recipe of a collection that is created, by default "pgsimhash-article-1"; for
            one that exists, what it is expected to hold.
        layout: the layout of a collection that is created, by name; by default the database's,
            which is "22+21+21" unless that was changed; ``pgsimhash collection plan`` compares
            them.
        keep_markdown: whether the collection keeps the main content of each page as Markdown,
            compressed, for explanations and another scheme later; by default one that is created
            does not. ``maintenance.change_settings`` changes it.
        normalize_urls: whether the collection brings URLs into one spelling, as crawlers do: see
            :func:`pgsimhash.urls.normalized_url`; by default one that is created takes them as
            they are.
        schema: the schema that the tables are in; None means PGSIMHASH_SCHEMA, else "pgsimhash".
        connection: the caller's own connection, to be used instead of ``dsn``; its
            transactions stay the caller's.

    Raises:
        NoServerError: no server answers, or it refuses the login; or the embedded server is wanted
            and does not start.
        SchemaError: the schema is missing, or older or newer than this package.
        CollectionError: the collection is missing and ``create`` is false, or it has another
            scheme, layout, ``keep_markdown`` or ``normalize_urls``.
        ArgumentError: no scheme is registered under that name in this process, or there is no such
            layout; or ``schema`` is no name that the schema can have.
        StoreError: a store over ``connection`` works with another schema.
    """
    if connection is not None:
        if dsn is not None:
            raise TypeError("give connect() a dsn or a connection, not both")
        return Store(
            connection,
            collection,
            create=create,
            scheme=scheme,
            layout=layout,
            keep_markdown=keep_markdown,
            normalize_urls=normalize_urls,
            schema=schema,
        )
    own = open_deployed(dsn, schema)
    try:
        return Store(
            own,
            collection,
            create=create,
            scheme=scheme,
            layout=layout,
            keep_markdown=keep_markdown,
            normalize_urls=normalize_urls,
            schema=schema,
            owns_connection=True,
        )
    except BaseException:
        own.close()
        raise
