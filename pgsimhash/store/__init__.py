"""The store and how to connect to it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pgsimhash.runtime import loaded_later

if TYPE_CHECKING:
    import psycopg
    import sqlalchemy
    from psycopg_pool import ConnectionPool
    from sqlalchemy import orm

    from pgsimhash.pages.records import OnEvent
    from pgsimhash.schemes import Scheme
    from pgsimhash.store.store import Store
else:
    __getattr__, __dir__ = loaded_later(__name__, {"pgsimhash.store.store": "Store"})

__all__ = ["Store", "connect"]


def connect(
    where: str
    | psycopg.Connection[Any]
    | ConnectionPool[Any]
    | sqlalchemy.URL
    | sqlalchemy.Engine
    | sqlalchemy.Connection
    | orm.Session
    | orm.scoped_session[Any]
    | None = None,
    *,
    collection: str = "default",
    create: bool | None = None,
    scheme: str | Scheme | None = None,
    keep_markdown: bool | None = None,
    normalize_urls: bool | None = None,
    schema: str | None = None,
    retry_seconds: float | None = None,
    on_event: OnEvent | None = None,
) -> Store:
    """Open the store.

    Over a DSN, a URL, a pool or an Engine, each call checks out a connection and commits batch by
    batch. Your own connection or session is neither committed nor closed, and your rollback undoes
    the store's work. If that connection is in autocommit mode, each batch is a transaction.

    Args:
        where: a DSN in any form of libpq; a URL of SQLAlchemy, whose driver is ignored; a
            connection or pool of psycopg 3; or an Engine, Connection or Session (scoped or not) of
            SQLAlchemy with psycopg 3. None means PGSIMHASH_DSN, else DATABASE_URL, else libpq's
            variables such as PGHOST, else "embedded": the embedded server, whose schema is created
            and upgraded automatically.
        collection: the name of the set of pages to compare with.
        create: whether to create the collection if it does not exist. None creates only
            "default", so that a mistyped name is an error, which lists the nearest names.
        scheme: the scheme of a new collection, by default "pgsimhash-article-1"; the expected
            scheme of an existing one.
        keep_markdown: whether the collection stores the main content of each page as compressed
            Markdown, for explanations and a later change of the scheme. A new collection does not
            by default; ``Store.change_settings`` changes it.
        normalize_urls: whether the collection normalizes URLs, see
            :func:`pgsimhash.pages.urls.normalized_url`. A new collection does not by default.
        schema: the schema of the tables; None means PGSIMHASH_SCHEMA, else "pgsimhash".
        retry_seconds: for how long to retry a lookup or batch after a lost connection or a
            transaction that the server aborted. Each takes effect once. 0 disables retries, None
            means a minute. Nothing is retried in your own transactions.
        on_event: a function that receives an :class:`~pgsimhash.pages.records.Event` after each
            batch and each lookup. Its exceptions are logged.

    Raises:
        NoServerError: no server answers, it refuses the login, or the embedded server does not
            start.
        SchemaError: the schema is missing, or older or newer than this package.
        CollectionError: the collection does not exist and is not created, or its scheme,
            ``keep_markdown`` or ``normalize_urls`` differs.
        ArgumentError: an argument is invalid, or the scheme is not registered in this process.
        StoreError: the connection is closed, does not use psycopg 3, or is in use by a store with
            another schema.
    """
    # Imported here because `--help` does not need them, and they take half of the import time.
    from pgsimhash.db.connections import connections_of
    from pgsimhash.schema.deployed import open_deployed
    from pgsimhash.store.session import Session
    from pgsimhash.store.store import Store

    connections = connections_of(where, partial(open_deployed, schema=schema))
    session = Session(
        connections,
        collection,
        create=create,
        schema=schema,
        retry_seconds=retry_seconds,
        on_event=on_event,
        scheme=scheme,
        keep_markdown=keep_markdown,
        normalize_urls=normalize_urls,
    )
    return Store(session)
