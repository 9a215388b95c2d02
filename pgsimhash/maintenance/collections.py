"""Change, check and delete collections: name, settings, policies, marks and runs."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Unpack

import psycopg
from psycopg.rows import dict_row

from pgsimhash.db.schema_names import bound_to_schema, in_schema, read_sql, schema_of
from pgsimhash.db.server_errors import translated_errors
from pgsimhash.db.statements import execute, fetch, is_idle, transaction
from pgsimhash.errors import NotFoundError, check_type
from pgsimhash.pages.policies import SETTINGS, Policy, PolicyOptions, PolicySettings
from pgsimhash.pages.records import CollectionStatus, Deletion, JsonRecord, Mark, RunRecord
from pgsimhash.pages.selectors import NO_SELECTORS, Selectors
from pgsimhash.runtime import no_progress
from pgsimhash.schemes.registry import checked_selectors
from pgsimhash.store import Store, deleting
from pgsimhash.store.collection import Collection, follow, open_collection
from pgsimhash.store.deleting import Deleted
from pgsimhash.store.lookups import Calls, read_status, record_values
from pgsimhash.store.session import LOCK_TIMEOUT, retried

_SLICE: Final = 20_000  # approximate rows per statement


@retried
def change_settings(
    store: Store, *, distance: int | None = None, keep_markdown: bool | None = None
) -> None:
    """Change settings of the collection; None keeps a value.

    They apply to this store immediately, and to others from their next batch or lookup. Existing
    verdicts stay: :func:`~pgsimhash.maintenance.rebuild` repeats them. ``distance`` is the default
    distance, ``keep_markdown`` whether to store the main content of new pages.
    """
    with store._session.calls_to_write() as calls:
        calls.lock()
        connection, collection = calls
        if distance is not None:
            collection.checked_distance(distance)
        changed = {"distance": distance, "keep_markdown": keep_markdown}
        kept = {"scheme": None, "normalize_urls": None}
        fetch(connection, "put_collection", {"name": collection.name, **changed, **kept})
        store._session.collection = follow(connection, collection)


def rename(store: Store, name: str, *, swap: bool = False) -> None:
    """Rename the collection; ``swap`` exchanges its name with another collection.

    It waits for writers to finish their batches. Other stores keep the old name: they raise
    ``CollectionError``, or after a swap use the other collection if its scheme is the same.

    Raises:
        CollectionError: the new name is empty or taken or, with ``swap``, does not exist.
    """
    with store._session.calls_to_write() as calls:
        old_name = calls.collection.name
        calls.fetch("rename_collection", old_name=old_name, new_name=name, swap=swap)
        store._session.collection = dataclasses.replace(calls.collection, name=name)


def set_policy(store: Store, pattern: str, **settings: Unpack[PolicyOptions]) -> Policy:
    """Set the policy of the pages that match ``pattern``, and return it.

    ``settings`` are those of :class:`~pgsimhash.pages.policies.PolicySettings`; others keep their
    values. The policy applies to future verdicts of all processes; other processes read by
    ``content`` and ``ignore`` from their second batch on, or a minute later. With
    ``ignore_parameters``, :func:`fill_addresses` follows. ``pattern`` is a host, including its
    subdomains, or ``*``; optionally followed by a path in which ``*`` matches anything:
    ``example.com/shop/*``.
    """
    checked = PolicySettings(**settings)
    store.collection.checked_distance(checked.distance)
    selectors = Selectors(checked.content, checked.ignore)
    if any(selectors):
        checked_selectors(store.collection.scheme, selectors)
    values = {name: getattr(checked, name) for name in SETTINGS}
    with store._session.calls_to_write() as calls:
        policy = calls.records("set_policy", Policy, pattern=pattern, **values)[0]
        if selectors != NO_SELECTORS:
            store._session.collection = follow(*calls)
    if checked.ignore_parameters is not None:
        fill_addresses(store)
    return policy


def fill_addresses(store: Store) -> None:
    """Set the addresses of all stored pages, in batches of 2,000.

    :func:`set_policy` does it if ``ignore_parameters`` is given; call it if that was interrupted.
    """
    last_page: int | None = 0
    while last_page is not None:
        with store._session.calls_to_write() as calls:
            ((last_page,),) = calls.fetch("fill_addresses", after_page=last_page)


def remove_policy(store: Store, pattern: str) -> bool:
    """Remove the policy of ``pattern``; return whether there was one."""
    with store._session.calls_to_write() as calls:
        removed = bool(calls.fetch("remove_policy", pattern=pattern)[0][0])
        if calls.collection.selectors is not None:
            store._session.collection = follow(*calls)
    return removed


def count_reread(store: Store, pattern: str = "*") -> int:
    """Return how many pages that match ``pattern`` were read by other selectors than today's.

    When they are fetched again, they are read differently: see the reason ``selectors_changed`` of
    :class:`~pgsimhash.pages.records.Verdict`.
    """
    with store._session.calls_to_read() as calls:
        return int(calls.fetch("count_reread", pattern=pattern)[0][0])


def policies(store: Store) -> list[Policy]:
    """Return the policies of the collection, by host and path."""
    with store._session.calls_to_read() as calls:
        return calls.records("policies", Policy)


def policy_for(store: Store, url: str) -> PolicySettings:
    """Return the settings that policies define for the page at ``url``."""
    with store._session.calls_to_read() as calls:
        page_url = calls.collection.page_url(url)
        return calls.records("policy_for", PolicySettings, url=page_url)[0]


def mark(store: Store, a: str, b: str, *, same: bool) -> None:
    """Mark the pages at two URLs as same (must-link) or different (cannot-link).

    It replaces an earlier mark of the pair. The two pages are decided again in the same
    transaction, by the policies; copies of them still point to them.

    Raises:
        NotFoundError: one of the URLs is unknown.
        ArgumentError: the URLs are equal, or the mark contradicts other marks.
    """
    with store._session.calls_to_write() as calls:
        calls.fetch("mark", same=same, **_two(calls.collection, a, b))


def unmark(store: Store, a: str, b: str) -> bool:
    """Remove the mark of two URLs, and decide them again; return whether there was one."""
    with store._session.calls_to_write() as calls:
        return bool(calls.fetch("unmark", **_two(calls.collection, a, b))[0][0])


def marks(store: Store) -> list[Mark]:
    """Return all marks, in the order in which they were set."""
    with store._session.calls_to_read() as calls:
        return calls.marks()


def _two(collection: Collection, a: str, b: str) -> dict[str, Any]:
    return {"a": collection.page_url(a), "b": collection.page_url(b)}


def runs(store: Store) -> list[RunRecord]:
    """Return the runs that added pages, the last one first."""
    with store._session.calls_to_read() as calls:
        return calls.records("runs", RunRecord)


def undo_run(
    store: Store, run_id: int | None = None, *, progress: Deleted = no_progress
) -> tuple[RunRecord, Deletion]:
    """Delete the versions that a run added, by default the last one; return the run too.

    URLs revert to their previous versions. Versions that the run only saw again stay, and were last
    seen when the other runs and single pages saw them. Pages that its writer adds later stay too.

    Raises:
        NotFoundError: the collection has no such run.
    """
    name = store.collection.name
    run = next((run for run in runs(store) if run_id in (None, run.run_id)), None)
    if run is None:
        missing = "to undo: all were undone, or pages were added by single calls without start_run"
        raise NotFoundError(
            "unknown_run",
            f"collection {name!r} has no run {missing if run_id is None else run_id}; "
            f"pgsimhash run list --collection {name} lists them",
        )
    return run, deleting.delete(store._session, progress, run_id=run.run_id)


@retried
def status(store: Store) -> list[CollectionStatus]:
    """Return the statistics of every collection of the schema, by name."""
    with store._session.connection_to_read() as connection:
        return read_status(connection)


def delete_collection(connection: psycopg.Connection[Any], name: str) -> int:
    """Delete a collection and all its rows; return the number of versions of pages.

    It is one transaction: until it ends, readers see everything, and writers wait. The schema is
    that of a store over the connection, else PGSIMHASH_SCHEMA, else ``pgsimhash``.

    Raises:
        CollectionError: the collection does not exist.
        StoreError: the database refuses it, as for rows of yours that refer to its pages.
    """
    check_type(connection, psycopg.Connection, "a collection is deleted over a psycopg.Connection")
    alone = is_idle(connection)
    with bound_to_schema(connection), translated_errors(connection), transaction(connection):
        # In the caller's transaction, other statements keep the caller's timeout.
        bounds = {"otherwise": LOCK_TIMEOUT if alone else "0"}
        calls = Calls(connection, open_collection(connection, name, bounds, create=False))
        calls.lock(loaders=True)
        return int(calls.fetch("delete_collection")[0][0])


def delete_if_empty(store: Store) -> None:
    """Delete the collection of a store if it has no page."""
    with store._session.calls_to_write() as calls:
        calls.lock(loaders=True)
        if not calls.count_pages():
            calls.fetch("delete_collection")


@dataclass(frozen=True, slots=True)
class Violation(JsonRecord):
    """A row that contradicts the others, or an object that runs code of another role.

    ``reason`` is a code; ``docs/maintain.md`` lists them. A row has the ``collection`` and its
    values; ``repair`` says how a repair changes it, if it does. An ``object`` of the schema is
    named together with the other role.
    """

    collection: str | None
    reason: str
    page_id: int | None = None
    url: str | None = None
    simhash: int | None = None
    repair: str | None = None
    repaired: bool = False
    object: str | None = None


def check(store: Store, *, repair: bool = False) -> Iterator[Violation]:
    """Yield every row of the collection that contradicts the others, and objects of other roles.

    First come triggers, rules and other objects of the schema that run code of a role other than
    its owner, and grants with which such a role can create them. No repair changes them.

    The collection is checked in slices, each in one snapshot. So memory is bounded, and concurrent
    writers cause no false alarm. Only slices with a violation are locked, and only for a repair.

    Raises:
        StoreError: row security may hide rows from the role.
    """
    session = store._session
    with session.calls_to_read() as calls:
        slices = 1 + calls.count_pages() // _SLICE
        objects = foreign_objects(calls.connection)
    yield from objects
    for number in range(slices):
        with session.calls_to_read() as calls:
            violations = _slice(calls, number, slices, repair=False)
        if violations and repair:
            with session.calls_to_write() as calls:
                violations = _slice(calls, number, slices, repair=True)
        yield from violations


def foreign_objects(connection: psycopg.Connection[Any]) -> list[Violation]:
    """Return the objects of the schema that run code of another role."""
    query = in_schema(read_sql("foreign_objects.sql"), schema_of(connection))
    return [
        Violation(None, reason, object=f"{described}, of the role {role}")
        for reason, described, role in execute(connection, query)
    ]


def _slice(calls: Calls, number: int, slices: int, *, repair: bool) -> list[Violation]:
    values: dict[str, Any] = {"repair": repair, "slice": number, "slices": slices}
    rows = calls.fetch("check_collection", dict_row, **values)
    name = calls.collection.name
    return [Violation(name, **record_values(row), repaired=repair) for row in rows]
