"""The request, the collections and the progress of a rebuild."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import class_row, tuple_row
from psycopg.types.json import Jsonb

from pgsimhash.db.schema_names import schema_of
from pgsimhash.db.statements import query
from pgsimhash.errors import ArgumentError, CollectionError, StoreError
from pgsimhash.pages.match_settings import MatchOptions
from pgsimhash.reading.kept_markdown import Rereading, rereading
from pgsimhash.schemes import Scheme, get_scheme
from pgsimhash.search.layout import get_layout
from pgsimhash.store import Store
from pgsimhash.store.collection import (
    Collection,
    check_writable,
    create_collection,
    find_collection,
    follow,
    lock_collections,
)
from pgsimhash.store.policies import rules_of
from pgsimhash.store.session import Session

_TABLES: Final = ("policies", "marks", "runs")
"""Tables whose rows are copied unchanged."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The caller's request."""

    layout: str | None
    scheme: str | Scheme | None
    reevaluate: bool
    keep_markdown: bool | None
    options: MatchOptions

    def as_json(self) -> dict[str, Any]:
        """Return the request as JSON values, without None."""
        scheme = None if self.scheme is None else get_scheme(self.scheme).name
        options = {**dataclasses.asdict(self), **self.options, "scheme": scheme}
        del options["options"]
        if self.layout is not None:
            options["layout"] = get_layout(self.layout).name
        set_options = {name: value for name, value in options.items() if value is not None}
        values: dict[str, Any] = json.loads(json.dumps(set_options, default=str))
        return values


@dataclass(frozen=True, slots=True)
class Work:
    """One rebuild: ``reread`` is the new scheme's fingerprinting, None if simhashes stay.

    ``evaluated`` says whether pages are evaluated again.
    """

    session: Session
    source: Collection
    target: Collection
    reread: Rereading | None
    evaluated: bool
    options: MatchOptions

    @property
    def scope(self) -> dict[str, int]:
        """The ids of the two collections, as statement parameters."""
        return {
            "collection_id": self.target.collection_id,
            "source_id": self.source.collection_id,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """The progress of a rebuild."""

    source_id: int
    asked: Mapping[str, Any]
    last_page: int


def begin(store: Store, into: str, asked: Asked) -> Work:
    """Return the rebuild to continue; start it if necessary; see ``rebuild``."""
    session = store.session
    with session.read() as connection:
        check_autocommit(connection, "a rebuild")
        source = follow(connection, store.opened)
        check_writable(connection, source)
        reread = _rereading(source, into, asked)
    evaluated = (
        asked.reevaluate
        or reread is not None
        or any(value is not None for value in asked.options.values())
    )
    with session.transaction() as connection:
        target = find_collection(connection, into)
        if target is None:
            target = _create(connection, source, into, asked, reread, indexed=evaluated)
        rules_of(target, asked.options)
        work = Work(session, source, target, reread, evaluated, asked.options)
        lock_collections(connection, [target])
        _check_asked(read_row(connection, work), work, asked)
        copy_tables(connection, work)
    return work


def check_autocommit(connection: psycopg.Connection[Any], what: str) -> None:
    """Check that a connection is in autocommit mode and in no transaction.

    Raises:
        StoreError: it is not.
    """
    if not connection.autocommit or connection.info.transaction_status != TransactionStatus.IDLE:
        raise StoreError(
            "needs_autocommit",
            f"{what} needs many transactions; use a connection with autocommit=True that is in "
            "none",
        )


def _rereading(source: Collection, into: str, asked: Asked) -> Rereading | None:
    """Return how another scheme fingerprints pages, None if simhashes stay."""
    scheme = get_scheme(source.scheme if asked.scheme is None else asked.scheme)
    if scheme.name == source.scheme:
        return None
    reread = rereading(source.scheme, scheme)
    if not source.keep_markdown:
        raise CollectionError(
            "no_markdown",
            f"collection {source.name!r} stores no Markdown, so another scheme needs the pages: "
            f"pgsimhash ingest --collection {into} --scheme {scheme.name} PATH",
        )
    return reread


def _create(
    connection: psycopg.Connection[Any],
    source: Collection,
    into: str,
    asked: Asked,
    reread: Rereading | None,
    *,
    indexed: bool,
) -> Collection:
    layout = get_layout(asked.layout or source.layout)
    distance = asked.options.get("distance")
    if distance is None and reread is None:
        distance = source.default_distance
        if distance not in layout.distances:
            raise CollectionError(
                "layout_distance",
                f"layout {layout.name!r} supports distances up to {layout.distances[-1]}, and the "
                f"collection's is {distance}; give a smaller one with --distance",
            )
    keep_markdown = source.keep_markdown if asked.keep_markdown is None else asked.keep_markdown
    target = create_collection(
        connection,
        into,
        scheme=get_scheme(source.scheme) if reread is None else reread.scheme,
        layout=layout.name,
        distance=distance,
        keep_markdown=keep_markdown,
        normalize_urls=source.normalize_urls,
        indexed=indexed,
    )
    values = {
        "collection_id": target.collection_id,
        "source_id": source.collection_id,
        "asked": Jsonb(asked.as_json()),
    }
    # The foreign key would wait for the same lock, but without naming its holder.
    connection.execute(query("hold_collection", connection), {"collection": source.name})
    try:
        connection.execute(query("begin_rebuild", connection), values)
    except psycopg.errors.UniqueViolation as error:
        raise CollectionError(
            "being_built",
            f"another process has just begun the rebuild into {into!r}; wait until it ends, or run "
            "again if it was stopped",
        ) from error
    return dataclasses.replace(target, source_id=source.collection_id)


def _check_asked(row: Row | None, work: Work, asked: Asked) -> None:
    into = work.target.name
    if row is None or row.source_id != work.source.collection_id:
        raise CollectionError(
            "taken",
            f"collection {into!r} exists already and is not being built from "
            f"{work.source.name!r}; name another with into= (--into)",
        )
    wanted = asked.as_json()
    differing = sorted(
        key for key in {*wanted, *row.asked} if wanted.get(key) != row.asked.get(key)
    )
    if differing:
        raise CollectionError(
            "other_settings",
            f"the rebuild into {into!r} began with another {' and '.join(differing)}; repeat "
            f"those, or give it up: pgsimhash collection delete {into}",
        )


def read_row(connection: psycopg.Connection[Any], work: Work) -> Row | None:
    """Return the progress of a rebuild, None if it has ended."""
    with connection.cursor(row_factory=class_row(Row)) as cursor:
        return cursor.execute(query("rebuild", connection), work.scope).fetchone()


def under_lock(connection: psycopg.Connection[Any], work: Work) -> Row:
    """Lock out other rebuilds into the new collection until the commit; return the progress."""
    lock_collections(connection, [work.target])
    row = read_row(connection, work)
    if row is None:
        raise CollectionError(
            "not_being_built",
            f"collection {work.target.name!r} is not being built any more: someone else finished "
            "or deleted it",
        )
    return row


def copy_tables(connection: psycopg.Connection[Any], work: Work) -> None:
    """Replace policies, marks and runs of the new collection by those of the old one."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        beyond = cursor.execute(query("policies_beyond", connection), work.scope).fetchone()
    if beyond is not None:
        pattern, distance, layout, largest = beyond
        raise ArgumentError(
            "invalid_policy",
            f"layout {layout!r} supports distances up to {largest}, and the policy for {pattern} "
            f"has {distance}; set another: pgsimhash policy set '{pattern}' "
            f"--distance {largest}",
        )
    for table in _TABLES:
        statement = sql.SQL(query("delete_rows", connection)).format(
            table=sql.Identifier(schema_of(connection), table)
        )
        connection.execute(statement, work.scope)
        connection.execute(query(f"copy_{table}", connection), work.scope)
