"""From records that come to verdicts, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import psycopg

from pgsimhash.policies import Rules
from pgsimhash.records import PageRecord, Verdict
from pgsimhash.store.batches import Item, in_batches, sorted_out
from pgsimhash.store.policing import Policing, StalePoliciesError
from pgsimhash.store.runs import Run, draw_run
from pgsimhash.store.writer import judge_batch, write_batch
from pgsimhash.terms import Options


class Deciding(Policing):
    """What deciding about pages and remembering them have in common."""

    _what: str = "a store"
    _run: Run | None = None

    def _decide_all(
        self, items: Iterable[Item], size: int, options: Options, *, remember: bool
    ) -> Iterator[Verdict]:
        """Return what decides about items as they come; wrong options are refused at once."""
        return self._batch_by_batch(
            in_batches(items, size), options, self._rules(options), remember
        )

    def _batch_by_batch(
        self, batches: Iterable[list[Item]], options: Options, rules: Rules, remember: bool
    ) -> Iterator[Verdict]:
        for items in batches:
            verdicts = None
            while verdicts is None:
                try:
                    verdicts = self._decide_batch(items, rules, remember)
                except StalePoliciesError:
                    self._read_policies()
                    rules = self._rules(options)
            yield from verdicts

    def _decide_batch(self, items: list[Item], rules: Rules, remember: bool) -> list[Verdict]:
        """Decide about one batch, and with ``remember`` store it, in one transaction.

        Raises:
            StalePoliciesError: policies were changed meanwhile, and nothing was decided.
        """
        batch = sorted_out(items, rules)
        collection, records, terms = self._collection, batch.records, batch.terms
        if not records:
            if any(isinstance(item, PageRecord) for item in items):
                # Policies refused them all, and nobody else asks whether they are still those.
                self._check_policies(rules)
            return batch.verdicts([])
        if not remember:
            with self._session.read() as connection:
                return batch.verdicts(
                    judge_batch(connection, collection, records, terms, rules.version)
                )
        with self._session.transaction() as connection:
            run = self._present_run(connection)
            made = write_batch(connection, collection, records, terms, rules.version, run)
        return batch.verdicts(decision.verdict for decision in made)

    def _check_policies(self, rules: Rules) -> None:
        self._read_policies()
        if self._policies.version != rules.version:
            raise StalePoliciesError

    def _present_run(self, connection: psycopg.Connection[Any]) -> Run:
        if self._run is None:
            self._run = draw_run(connection, self._what)
        return self._run
