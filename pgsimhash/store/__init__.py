"""The store and how to connect to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pgsimhash.runtime.lazy_names import loaded_later

if TYPE_CHECKING:
    import psycopg
    import sqlalchemy
    from psycopg_pool import ConnectionPool
    from sqlalchemy.orm import Session, scoped_session

    from pgsimhash.schemes import Scheme
    from pgsimhash.store.events import Event, OnEvent
    from pgsimhash.store.store import Store
else:
    __getattr__, __dir__ = loaded_later(__name__)

__all__ = ["Event", "OnEvent", "Store", "connect"]


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
    lookup_memory: int | None = None,
    prepare: bool | None = None,
    lock_timeout: float | None = None,
    statement_timeout: float | None = None,
    retry_seconds: float | None = None,
    on_event: OnEvent | None = None,
) -> Store:
    """Open the store.

    Over a DSN, a URL, a pool or an Engine each call checks out a connection, and batches are
    committed one by one; threads may share the store. Over a connection or a session of the
    caller's it neither commits nor closes, and what the caller rolls back is gone. Only where such
    a connection is on autocommit each batch is a transaction.

    Args:
        where: where PostgreSQL is: a DSN in any form libpq understands, or a URL as SQLAlchemy has
            them (of ``postgresql+psycopg://`` and its like the driver is left out); a connection or
            a pool of psycopg 3; an Engine, a Connection or a Session of SQLAlchemy, scoped or not,
            with psycopg 3 under it. None means PGSIMHASH_DSN, else "embedded": the embedded server,
            whose schema is deployed and upgraded on the way.
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
            :func:`pgsimhash.pages.urls.normalized_url`; by default one that is created takes them
            as they are.
        schema: the schema that the tables are in; None means PGSIMHASH_SCHEMA, else "pgsimhash".
        lookup_memory: how many bytes the store may take, with those of others in this process, to
            hold the collection's simhashes, 64 for each, once that is faster than to ask the
            database about one batch after the other; 0 is none. None means
            PGSIMHASH_LOOKUP_MEMORY, in megabytes, else an eighth of the machine's memory.
        prepare: whether statements that are sent often are prepared, on a connection that is opened
            here. A pooler of transactions may not bear it. None means unless a pooler is met.
        lock_timeout: how many seconds a transaction waits for other writers before it raises a
            StoreError that names them; 0 is for ever. None means five minutes in transactions of
            the store's own, unless the role or the DSN has a ``lock_timeout``, and in those of the
            caller what is set there. What is given holds until the transaction ends.
        statement_timeout: how many seconds the server works at one statement of a lookup or of a
            batch before it raises a StoreError, with what it waits; 0 is for ever. None means five
            minutes more than ``lock_timeout`` for what writes, unless the role or the DSN has a
            timeout, and for lookups what is set there.
        retry_seconds: for how long a lookup or a batch is tried again whose connection was lost or
            whose transaction the server gave up for others, each with its effect once; 0 is not
            at all, None a minute. In transactions of the caller's nothing is tried again.
        on_event: a function that takes an :class:`~pgsimhash.store.events.Event` after each batch
            and each lookup. An exception of it is logged.

    Raises:
        NoServerError: no server answers, or it refuses the login; or the embedded server is wanted
            and does not start.
        SchemaError: the schema is missing, or older or newer than this package.
        CollectionError: the collection is missing and ``create`` is false, or it has another
            scheme, layout, ``keep_markdown`` or ``normalize_urls``.
        ArgumentError: ``where`` is none of these; no scheme is registered under that name in this
            process, or there is no such layout; ``schema`` is no name that the schema can have; or
            ``prepare`` is given for a connection that is not opened here.
        StoreError: what is given is closed, or stands on another driver than psycopg 3; or a store
            over it works with another schema.
    """
    # A command that says its --help has no use for them, and they are half of what loads.
    from pgsimhash.db.opening import source_of
    from pgsimhash.store.store import Store

    source = source_of(where, schema, prepare=prepare)
    try:
        return Store(
            source,
            collection,
            create=create,
            scheme=scheme,
            layout=layout,
            keep_markdown=keep_markdown,
            normalize_urls=normalize_urls,
            schema=schema,
            lookup_memory=lookup_memory,
            lock_timeout=lock_timeout,
            statement_timeout=statement_timeout,
            retry_seconds=retry_seconds,
            on_event=on_event,
        )
    except BaseException:
        source.close()
        raise
