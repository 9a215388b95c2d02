"""From records that come to verdicts, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import psycopg

from pgsimhash.policies import Policies, Rules
from pgsimhash.records import PageRecord, Verdict
from pgsimhash.store.batches import Item, in_batches, sorted_out
from pgsimhash.store.collection import Collection, MovedCollectionError
from pgsimhash.store.policies import StalePoliciesError, read_policies, rules_of
from pgsimhash.store.runs import Run, draw_run
from pgsimhash.store.session import Session
from pgsimhash.store.writer import judge_batch, write_batch
from pgsimhash.terms import Options


class Ingest:
    """Decides about what comes into a collection, and stores it, over one connection."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._policies: Policies | None = None
        self._run: Run | None = None

    def start_run(self, what: str) -> int:
        """Let what comes from now on belong to a run of its own, and return its number."""
        with self._session.transaction() as connection:
            self._run = draw_run(connection, what)
        return self._run.run_id

    def decide(
        self,
        items: Iterable[Item],
        size: int,
        options: Options,
        *,
        remember: bool,
    ) -> Iterator[Verdict]:
        """Yield a verdict for each item as they come, decided in batches of ``size``.

        Wrong options are refused at once.
        """
        with self._session.read() as connection:
            self._rules(connection, self._session.collection, options)
        return self._batch_by_batch(in_batches(items, size), options, remember)

    def _rules(
        self, connection: psycopg.Connection[Any], collection: Collection, options: Options
    ) -> Rules:
        if self._policies is None:
            self._policies = read_policies(connection, collection)
        return rules_of(collection, self._policies, options)

    def _batch_by_batch(
        self, batches: Iterable[list[Item]], options: Options, remember: bool
    ) -> Iterator[Verdict]:
        for items in batches:
            verdicts = None
            while verdicts is None:
                try:
                    verdicts = self._decide_batch(items, options, remember)
                except StalePoliciesError:
                    self._policies = None
                except MovedCollectionError:
                    continue
            yield from verdicts

    def _decide_batch(self, items: list[Item], options: Options, remember: bool) -> list[Verdict]:
        """Decide about one batch, and with ``remember`` store it, in one transaction.

        Raises:
            StalePoliciesError: policies were changed meanwhile, and nothing was decided.
            MovedCollectionError: the name went to another collection, and nothing was decided.
        """
        block = self._session.writing() if remember else self._session.reading()
        with block as (connection, collection):
            rules = self._rules(connection, collection, options)
            batch = sorted_out(items, rules)
            records, terms = batch.records, batch.terms
            if not records:
                if any(isinstance(item, PageRecord) for item in items):
                    # Policies refused them all, and nobody else asks whether they are still those.
                    _check_policies(connection, collection, rules)
                return batch.verdicts([])
            if not remember:
                return batch.verdicts(
                    judge_batch(connection, collection, records, terms, rules.version)
                )
            run = self._present_run(connection)
            made = write_batch(connection, collection, records, terms, rules.version, run)
        return batch.verdicts(decision.verdict for decision in made)

    def _present_run(self, connection: psycopg.Connection[Any]) -> Run:
        if self._run is None:
            self._run = draw_run(connection, "a store")
        return self._run


def _check_policies(
    connection: psycopg.Connection[Any], collection: Collection, rules: Rules
) -> None:
    if read_policies(connection, collection).version != rules.version:
        raise StalePoliciesError
