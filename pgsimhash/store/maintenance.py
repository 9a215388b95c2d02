"""Change, check and delete a collection: its name, settings, policies, marks and runs."""

import dataclasses
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final, Unpack

import psycopg
from psycopg.rows import dict_row

from pgsimhash.db.schema_names import in_schema, read_sql, schema_of
from pgsimhash.db.statements import execute
from pgsimhash.errors import NotFoundError, check_type
from pgsimhash.pages.policies import (
    SETTINGS,
    Policy,
    PolicyOptions,
    PolicySettings,
    checked_settings,
)
from pgsimhash.pages.records import CollectionStatus, Deletion, Mark, RunRecord, Violation
from pgsimhash.pages.selectors import Selectors
from pgsimhash.pages.urls import lowered
from pgsimhash.pages.values import check_age, text_size
from pgsimhash.runtime import no_progress
from pgsimhash.store.collection import Collection, follow
from pgsimhash.store.lookups import Calls, read_status, record_values
from pgsimhash.store.rebuilding import Rebuilding
from pgsimhash.store.session import retried

_SLICE: Final = 20_000  # approximate rows per statement
BATCH: Final = 1000  # deleted pages per transaction, which blocks writers for some tens of ms

Deleted = Callable[[int], None]
"""Receives the number of versions deleted so far."""


class Maintenance(Rebuilding):
    """The methods of a store that delete pages, or concern its collection as a whole."""

    @property
    def collection(self) -> Collection:
        """The collection as last read: its ``name``, ``scheme``, ``layout`` and settings."""
        return self._session.collection

    @retried
    def change_settings(
        self, *, distance: int | None = None, keep_markdown: bool | None = None
    ) -> None:
        """Change settings of the collection; None keeps a value.

        They apply to this store immediately, and to others from their next batch or lookup.
        Existing verdicts stay: :meth:`rebuild` repeats them.
        """
        with self._session.calls_to_write() as calls:
            calls.lock()
            calls.collection.checked_distance(distance)
            calls.fetch("set_collection", distance=distance, keep_markdown=keep_markdown)
            changed = follow(*calls)
        self._session.collection = changed

    def rename(self, name: str, *, swap: bool = False) -> None:
        """Rename the collection; ``swap`` exchanges its name with another collection.

        It waits for writers to finish their batches. Other stores keep the old name: they raise
        ``CollectionError``, or after a swap use the other collection if its scheme is the same.

        Raises:
            CollectionError: the new name is empty or taken or, with ``swap``, does not exist.
        """
        text_size("the name", name)
        with self._session.calls_to_write() as calls:
            old_name = calls.collection.name
            calls.fetch("rename_collection", old_name=old_name, new_name=name, swap=swap)
        self._session.collection = dataclasses.replace(calls.collection, name=name)

    def set_policy(self, pattern: str, **settings: Unpack[PolicyOptions]) -> Policy:
        """Set the policy of the pages that match ``pattern``, and return it.

        ``settings`` are those of :class:`~pgsimhash.pages.policies.PolicySettings`; others keep
        their values. The policy applies to future verdicts of all processes; other processes read
        by ``content`` and ``ignore`` from their second batch on, or a minute later. ``pattern`` is
        a host, including its subdomains, or ``*``; optionally followed by a path in which ``*``
        matches anything: ``example.com/shop/*``. With ``ignore_parameters``, the addresses of all
        stored pages are set, in batches of 2,000; call it again if that was interrupted.
        """
        checked = checked_settings(settings, PolicyOptions)
        self.collection.checked_distance(checked.distance)
        selectors = Selectors(checked.content, checked.ignore)
        if any(selectors):
            from pgsimhash.schemes.registry import checked_selectors

            checked_selectors(self.collection.scheme, selectors)
        values = {name: getattr(checked, name) for name in SETTINGS}
        with self._session.calls_to_write() as calls:
            policy = calls.records("set_policy", Policy, pattern=pattern, **values)[0]
            changed = follow(*calls)
        self._session.collection = changed
        if checked.ignore_parameters is not None:
            self._fill_addresses()
        return policy

    def remove_policy(self, pattern: str) -> bool:
        """Remove the policy of ``pattern``; return whether there was one."""
        with self._session.calls_to_write() as calls:
            before = calls.records("policies", Policy)
            removed = bool(calls.fetch("remove_policy", pattern=pattern)[0][0])
            changed = follow(*calls)
        self._session.collection = changed
        if removed and any(policy.ignore_parameters is not None for policy in before):
            self._fill_addresses()
        return removed

    def _fill_addresses(self) -> None:
        last_page: int | None = 0
        while last_page is not None:
            with self._session.calls_to_write() as calls:
                ((last_page,),) = calls.fetch("fill_addresses", after_page=last_page)

    def count_reread(self, pattern: str = "*") -> int:
        """Return how many pages of a pattern's host were read by other selectors than today's.

        This many can have the verdict ``selectors_changed`` when they are fetched again.
        """
        with self._session.calls_to_read() as calls:
            return int(calls.fetch("count_reread", pattern=pattern)[0][0])

    def policies(self) -> list[Policy]:
        """Return the policies of the collection, by host and path."""
        with self._session.calls_to_read() as calls:
            return calls.records("policies", Policy)

    def policy_for(self, url: str) -> PolicySettings:
        """Return the settings that policies define for the page at ``url``."""
        with self._session.calls_to_read() as calls:
            page_url = calls.collection.page_url(url)
            return calls.records("policy_for", PolicySettings, url=page_url)[0]

    def mark(self, a: str, b: str, *, same: bool) -> None:
        """Mark the pages at two URLs as same (must-link) or different (cannot-link).

        It replaces an earlier mark of the pair. The two pages are decided again in the transaction,
        by the policies; copies of them still point to them. Contradictory marks are refused.

        Raises:
            NotFoundError: one of the URLs is unknown.
        """
        with self._session.calls_to_write() as calls:
            page_url = calls.collection.page_url
            calls.fetch("mark", a=page_url(a), b=page_url(b), same=same)

    def unmark(self, a: str, b: str) -> bool:
        """Remove the mark of two URLs, and decide them again; return whether there was one."""
        with self._session.calls_to_write() as calls:
            page_url = calls.collection.page_url
            return bool(calls.fetch("unmark", a=page_url(a), b=page_url(b))[0][0])

    def marks(self) -> list[Mark]:
        """Return all marks, in the order in which they were set."""
        with self._session.calls_to_read() as calls:
            return calls.records("marks", Mark)

    def runs(self) -> list[RunRecord]:
        """Return the runs that added pages, the last one first."""
        with self._session.calls_to_read() as calls:
            return calls.records("runs", RunRecord)

    def undo_run(self, run_id: int, *, progress: Deleted = no_progress) -> Deletion:
        """Delete the versions that a run added, and the run.

        URLs revert to their previous versions. Versions that the run only saw again stay, and were
        last seen when the other runs and single pages saw them. Pages that its writer adds later
        stay too. Pages of single calls belong to no run, unless :meth:`start_run` began one.

        Raises:
            NotFoundError: the collection has no such run.
        """
        if run_id not in (run.run_id for run in self.runs()):
            raise NotFoundError(
                "unknown_run",
                f"collection {self.collection.name!r} has no run {run_id}; runs() lists them",
            )
        return self._delete_in_batches(progress, run_id=run_id)

    def expire(
        self, older_than: timedelta | None = None, *, progress: Deleted = no_progress
    ) -> Deletion:
        """Delete every version that was last seen longer ago, by default as policies say.

        A version is seen at its ``fetched_at``, whenever its URL is ingested unchanged, and by
        :meth:`seen`. Policies have ``expire_after``.
        """
        check_age(older_than)
        return self._delete_in_batches(progress, "expire_batch", older_than=older_than)

    def delete_page(self, url: str) -> Deletion:
        """Delete all versions of the page at ``url``."""
        return self._delete_in_batches(no_progress, url=self.collection.page_url(url))

    def delete_host(self, host: str, *, progress: Deleted = no_progress) -> Deletion:
        """Delete all pages of a host, such as ``example.com``, without its subdomains."""
        text_size("the host", host)
        return self._delete_in_batches(progress, host=lowered(host))

    def _delete_in_batches(
        self, progress: Deleted, function: str = "delete_batch", **pages: Any
    ) -> Deletion:
        """Delete the ``pages`` of a function in batches: its ``url``, ``host`` or ``run_id``."""
        check_type(progress, Callable, "progress is a function")
        which = {"url": None, "host": None, "run_id": None, **pages}
        after_page: int | None = 0
        versions = 0
        gone, reverted = urls = dict[str, None](), dict[str, None]()
        promoted, originals = list[int](), list[str]()
        while after_page is not None:
            with self._session.calls_to_write() as calls:
                ((after_page, deleted, *lists, more_promoted),) = calls.fetch(
                    function, after_page=after_page, batch=BATCH, **which
                )
                promoted += more_promoted or ()
                if after_page is None and promoted:
                    # A later batch may have deleted what one promoted.
                    found = calls.fetch("versions", columns=("url", "distance"), page_ids=promoted)
                    originals = [url for url, distance in found if distance is None]
            if deleted is not None:
                versions += deleted
                for known, more in zip(urls, lists, strict=True):
                    known.update(dict.fromkeys(more))
                progress(versions)
        remaining = [url for url in reverted if url not in gone]
        return Deletion(versions, list(gone), remaining, list(dict.fromkeys(originals)))

    @retried
    def status(self) -> CollectionStatus:
        """Return the statistics of the collection."""
        with self._session.calls_to_read() as calls:
            return read_status(calls.connection, calls.collection.name)[0]

    @retried
    def collections(self) -> list[CollectionStatus]:
        """Return the statistics of every collection of the schema, by name."""
        with self._session.connection_to_read() as connection:
            return read_status(connection)

    def delete_collection(self) -> int:
        """Delete the collection and all its rows; return the number of versions of pages.

        Until its transaction ends, readers see everything, and writers wait. Rows of yours that
        refer to its pages prevent it (StoreError).
        """
        with self._session.calls_to_write() as calls:
            return calls.delete_collection()

    def _delete_if_empty(self) -> None:
        with self._session.calls_to_write() as calls:
            calls.lock(loaders=True)
            if not calls.count_pages():
                calls.delete_collection()

    def check(self, *, repair: bool = False) -> Iterator[Violation]:
        """Yield every row that contradicts the others, after objects that run code of other roles.

        The latter are triggers, rules and other objects of the schema, and grants with which such a
        role can create them; no repair changes them. Each slice of the collection is checked in one
        snapshot, so concurrent writers cause no false alarm, and locked only for a repair.

        Raises:
            StoreError: row security may hide rows from the role.
        """
        session = self._session
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
