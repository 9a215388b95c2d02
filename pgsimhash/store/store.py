"""The store: what is known about pages, asked and told through one PostgreSQL connection."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import psycopg

from pgsimhash.connection import check_schema
from pgsimhash.layout import get_layout
from pgsimhash.schemes import Scheme, get_scheme
from pgsimhash.store.collection import Collection, check_names, open_collection
from pgsimhash.store.grouping import Groups
from pgsimhash.store.lookups import Lookups
from pgsimhash.store.marking import Marking
from pgsimhash.store.policing import read_policies
from pgsimhash.store.relayout import Progress, relayout
from pgsimhash.store.removal import Removal
from pgsimhash.store.reruns import Reruns
from pgsimhash.store.session import Session
from pgsimhash.store.writes import Writes


class Store(Lookups, Writes, Removal, Marking, Reruns, Groups):
    """A collection of pages in PostgreSQL; made by :func:`pgsimhash.connect`.

    A store that opened its own connection commits batch by batch and closes the connection at
    the end of its ``with`` block. One that was given a connection neither commits nor closes
    it: on a connection with ``autocommit`` each batch is a transaction, on any other the caller
    commits.

    A store belongs to the thread that opened it, and after a fork to the parent: every method
    raises :class:`~pgsimhash.errors.SharedStoreError` elsewhere, but for :meth:`close`. Open one in
    each thread and process. Of several stores over one connection, as a pool hands it from thread
    to thread, those opened last count. While a loop over :meth:`clusters` is under way, or a
    function that was passed to a method, reads are answered and all else is refused.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        collection: str = "default",
        *,
        create: bool = True,
        scheme: str | Scheme | None = None,
        layout: str | None = None,
        keep_markdown: bool = False,
        owns_connection: bool = False,
    ) -> None:
        """Open ``collection`` over ``connection``, creating it where ``create`` is true.

        Raises:
            SchemaError: the schema is missing, or older or newer than this package.
            CollectionError: the collection is missing and ``create`` is false, or it holds
                another scheme or layout.
            SchemeError: no scheme is registered under that name in this process.
            UnknownLayoutError: there is no such layout.
            SharedStoreError: another process opened ``connection``, or another thread is using it.
            StoreError: ``connection`` is in a transaction that failed, or texts would not come
                back from it as they are.
        """
        recipe = None if scheme is None else get_scheme(scheme)
        self._session = Session(connection, owned=owns_connection)
        with self._session.transaction():
            check_schema(connection)
            self._collection = open_collection(
                connection,
                collection,
                create=create,
                scheme=recipe,
                layout=layout,
                keep_markdown=keep_markdown,
            )
            self._policies = read_policies(connection, self._collection)

    def __enter__(self) -> Self:
        self._session.check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, if the store opened it; any thread may do so.

        In a forked child the parent's session goes on.

        Raises:
            SharedStoreError: another thread is in a call.
        """
        self._session.close()

    @property
    def session(self) -> Session:
        """The connection and its transactions, for functions that take a store."""
        return self._session

    @property
    def opened(self) -> Collection:
        """The row of the collection as it was when it was opened, for the same functions."""
        return self._collection

    @property
    def collection(self) -> str:
        """The name of the collection."""
        return self._collection.name

    @property
    def scheme(self) -> str:
        """The name of the scheme whose simhashes the collection holds."""
        return self._collection.scheme

    @property
    def layout(self) -> str:
        """The name of the collection's layout when the store was opened or changed it."""
        return self._collection.layout

    def relayout(
        self,
        layout: str,
        *,
        distance: int | None = None,
        progress: Progress = lambda step, done, total: None,
    ) -> None:
        """Move the collection to another layout, while lookups and writers go on.

        Lookups stay exact throughout. An interrupted move goes on when called again; asking
        for the present layout cancels it. Needs the rights of the tables' owner and a
        connection with ``autocommit``, such as the store's own.

        Args:
            layout: the name of the layout; ``pgsimhash collection plan`` compares them.
            distance: the collection's new default distance; by default the present one.
            progress: called with the step, and how much of how much of it is done.

        Raises:
            UnknownLayoutError: there is no such layout.
            CollectionError: the collection is on its way to another layout, or was renamed since
                it was opened; or the new layout does not answer its default distance, or that
                of a policy.
            StoreError: the connection is in a transaction, or another process is at it.
        """
        with self._session.read() as connection:
            check_names(connection, [self._collection])
            relayout(
                connection,
                self.collection,
                get_layout(layout),
                distance=distance,
                progress=progress,
            )
            self._collection = open_collection(connection, self.collection, create=False)
