"""Decide about records in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import psycopg

from pgsimhash.errors import ArgumentError, StoreError
from pgsimhash.log import logger
from pgsimhash.pages.policies import MatchOptions, MatchSettings, Rules
from pgsimhash.pages.records import PageRecord, Verdict
from pgsimhash.pages.values import text_size
from pgsimhash.store.batches import Item, next_batch, sorted_out, with_normalized_url
from pgsimhash.store.collection import Collection, lock_collections
from pgsimhash.store.policies import StalePoliciesError, groups_by_policy, rules_of, settings_by
from pgsimhash.store.runs import Run, draw_run, is_stored
from pgsimhash.store.session import Session
from pgsimhash.store.writer import write_batch


class Ingest:
    """Decides about incoming records and stores them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # The run that the caller started, if any.
        self._label: str | None = None
        self._writers: list[_Writer] = []

    def start_run(self, label: str) -> int:
        """Start a run for everything that is stored from now on, and return its id."""
        text_size("label", label)
        writer = _Writer(self._session, label)
        number = writer.start_run()
        self._label, self._writers = label, [writer]
        return number

    @contextmanager
    def _writer(self) -> Iterator[_Writer]:
        """Lend a writer for one batch; no other thread or task uses it meanwhile.

        Its pages belong to the run that the caller started, if any.
        """
        idle = self._writers
        try:
            writer = idle.pop()
        except IndexError:
            writer = _Writer(self._session, self._label)
        try:
            yield writer
        finally:
            idle.append(writer)

    def check(self, options: MatchOptions) -> None:
        """Raise ArgumentError if an option is invalid."""
        rules_of(self._session.collection, options)

    def decide_batch(
        self, items: Sequence[Item], options: MatchOptions, *, remember: bool
    ) -> list[Verdict]:
        """Return the verdict of each item; ``remember`` stores them in one transaction."""
        with self._writer() as writer:
            return writer.decide(items, options, remember)

    def decide(
        self,
        items: Iterable[Item],
        size: int,
        options: MatchOptions,
        *,
        remember: bool,
        asked: int | None = None,
        label: str = "ingest_many",
    ) -> Iterator[Verdict]:
        """Yield a verdict for each item, decided in batches.

        Stored items form a run, unless the caller started one. Options are checked immediately.

        Args:
            items: records and failures.
            size: the number of items per batch, if each batch is committed.
            options: the match settings.
            remember: whether to store the items.
            asked: the caller's batch size. Without it, items that are stored in the caller's
                transaction are decided one by one, when their verdicts are consumed.
            label: the name of the run.
        """
        self.check(options)
        if asked is not None and asked < 1:
            raise ArgumentError("invalid_argument", f"batch_size must be at least 1, not {asked}")
        own = _Writer(self._session, label) if remember and self._label is None else None
        return self._batch_by_batch(iter(items), size, options, own, remember, asked)

    def _batch_by_batch(
        self,
        items: Iterator[Item],
        size: int,
        options: MatchOptions,
        own: _Writer | None,
        remember: bool,
        asked: int | None,
    ) -> Iterator[Verdict]:
        while True:
            theirs = remember and self._session.is_in_callers_transaction()
            batch = next_batch(items, asked or (1 if theirs else size))
            if not batch:
                return
            with nullcontext(own) if own else self._writer() as writer:
                verdicts = writer.decide(batch, options, remember)
            yield from _told(verdicts, self._session, theirs=theirs)


class _Writer:
    """Decides about batches of one run, or of no run."""

    def __init__(self, session: Session, label: str | None) -> None:
        self._session = session
        # The name of the run, or None without a run.
        self._label = label
        # Whether there may be policies. If not, batches skip the lookup of policies; `_add_batch`
        # reports when there are some.
        self._policies = True
        self._run: Run | None = None
        # The verdicts of a batch whose commit is in doubt.
        self._unsure: list[Verdict] | None = None

    def start_run(self) -> int:
        """Start the run, and return its id."""
        with self._session.transaction() as connection:
            run = self._run_of_batch(connection)
        return 0 if run is None else run.run_id

    def _run_of_batch(self, connection: psycopg.Connection[Any]) -> Run | None:
        if self._run is None and self._label is not None:
            self._run = draw_run(connection, self._label)
        return self._run

    def decide(self, batch: Sequence[Item], options: MatchOptions, remember: bool) -> list[Verdict]:
        """Return a verdict for each item; retries are safe, because the batch is stored once."""
        self._unsure = None
        return self._session.attempt(
            "ingest" if remember else "decide",
            len(batch),
            lambda: self._stored() or self._verdicts(batch, options, remember),
            lambda: self._run_id(remember),
        )

    def _run_id(self, remember: bool) -> int | None:
        return self._run.run_id if remember and self._run is not None else None

    def _verdicts(
        self, batch: Sequence[Item], options: MatchOptions, remember: bool
    ) -> list[Verdict]:
        while True:
            try:
                verdicts = self._decide_batch(batch, options, remember)
            except StalePoliciesError:
                self._policies = True
            else:
                decided = sum(verdict.simhash is not None for verdict in verdicts)
                done = "stored in" if remember else "compared with"
                name, failed = self._session.collection.name, len(verdicts) - decided
                logger.debug(
                    "%d pages %s %r, %d without a simhash", decided, done, name, failed,
                    extra={"collection": name, "run_id": self._run_id(remember)},
                )  # fmt: skip
                return verdicts

    def _decide_batch(
        self, items: Sequence[Item], options: MatchOptions, remember: bool
    ) -> list[Verdict]:
        """Decide about one batch in one transaction; ``remember`` stores it."""
        if not any(isinstance(item, PageRecord) for item in items):
            return sorted_out(items, []).verdicts([])
        session = self._session
        with session.writing() if remember else session.reading() as (connection, collection):
            if collection.normalize_urls:
                items = list(map(with_normalized_url, items))
            urls = [item.url for item in items if isinstance(item, PageRecord)]
            by_policies = self._policies
            rules = rules_of(collection, options)
            batch = sorted_out(items, self._settings(connection, collection, urls, rules))
            verdicts = batch.verdicts(
                write_batch(
                    connection,
                    collection,
                    batch.records,
                    batch.settings,
                    self._run_of_batch(connection) if remember and batch.records else None,
                    by_policies=by_policies,
                    remember=remember,
                )
            )
            if remember:
                self._unsure = verdicts
        return verdicts

    def _stored(self) -> list[Verdict] | None:
        """Return the verdicts of the batch if it was committed although the connection was lost."""
        unsure = self._unsure
        if unsure is None:
            return None
        with self._session.writing() as (connection, collection):
            # A server process that is still committing the batch holds this lock.
            lock_collections(connection, [collection])
            stored = is_stored(connection, collection, unsure, self._run)
        self._unsure = None
        return unsure if stored else None

    def _settings(
        self,
        connection: psycopg.Connection[Any],
        collection: Collection,
        urls: list[str],
        rules: Rules,
    ) -> list[MatchSettings]:
        if not self._policies:
            return [rules.plain] * len(urls)
        groups = groups_by_policy(connection, collection, urls)
        self._policies = bool(groups)
        return settings_by(rules, groups, len(urls))


def _told(verdicts: list[Verdict], session: Session, *, theirs: bool) -> Iterator[Verdict]:
    """Yield the verdicts of a batch that was stored, if ``theirs``, in the caller's transaction."""
    in_transaction = session.source.in_transaction
    goes_on = theirs and in_transaction()
    for number, verdict in enumerate(verdicts, 1):
        yield verdict
        if goes_on and number < len(verdicts) and not in_transaction():
            raise StoreError(
                "wrong_transaction",
                f"the transaction ended after {number} of the {len(verdicts)} verdicts of a batch, "
                "which is stored as a whole; end it between two batches, or omit batch_size: then "
                "each page is stored when its verdict is consumed",
            )
