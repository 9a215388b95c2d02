"""The store and how to connect to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg
    import sqlalchemy
    from psycopg_pool import ConnectionPool
    from sqlalchemy.orm import Session, scoped_session

    from pgsimhash.schemes import Scheme
    from pgsimhash.store.store import Store

__all__ = ["Store", "connect"]


def connect(
    where: str
    | psycopg.Connection[Any]
    | ConnectionPool[Any]
    | sqlalchemy.URL
    | sqlalchemy.Engine
    | sqlalchemy.Connection
    | Session
    | scoped_session[Any]
    | None = None,
    *,
    collection: str = "default",
    create: bool = True,
    scheme: str | Scheme | None = None,
    layout: str | None = None,
    keep_markdown: bool | None = None,
    normalize_urls: bool | None = None,
    schema: str | None = None,
) -> Store:
    """Open the store.

    Over a DSN, a URL, a pool or an Engine it has a connection of its own until it is closed, and
    commits batch by batch. Over a connection or a session of the caller's it neither commits nor
    closes, and what the caller rolls back is gone. Only where such a connection is on autocommit
    each batch is a transaction.

    Args:
        where: where PostgreSQL is: a DSN in any form libpq understands, or a URL as SQLAlchemy has
            them (of ``postgresql+psycopg://`` and its like the driver is left out); a connection or
            a pool of psycopg 3; an Engine, a Connection or a Session of SQLAlchemy with psycopg 3
            under it. None means PGSIMHASH_DSN, else "embedded": the embedded server, whose schema
            is deployed and upgraded on the way.
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

    Raises:
        NoServerError: no server answers, or it refuses the login; or the embedded server is wanted
            and does not start.
        SchemaError: the schema is missing, or older or newer than this package.
        CollectionError: the collection is missing and ``create`` is false, or it has another
            scheme, layout, ``keep_markdown`` or ``normalize_urls``.
        ArgumentError: ``where`` is none of these; no scheme is registered under that name in this
            process, or there is no such layout; or ``schema`` is no name that the schema can have.
        StoreError: what is given is closed, or stands on another driver than psycopg 3; or a store
            over it works with another schema.
    """
    # A command that says its --help has no use for them, and they are half of what loads.
    from pgsimhash.store.leases import lease
    from pgsimhash.store.store import Store

    lent = lease(where, schema)
    try:
        return Store(
            lent,
            collection,
            create=create,
            scheme=scheme,
            layout=layout,
            keep_markdown=keep_markdown,
            normalize_urls=normalize_urls,
            schema=schema,
        )
    except BaseException:
        lent.close()
        raise


def __getattr__(name: str) -> Any:
    if name != "Store":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pgsimhash.store.store import Store

    return Store
