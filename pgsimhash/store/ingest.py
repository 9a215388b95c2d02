"""From records that come to verdicts, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import psycopg

from pgsimhash.matching import MatchOptions, MatchSettings
from pgsimhash.policies import Rules
from pgsimhash.records import PageRecord, Verdict
from pgsimhash.store.batches import Item, in_batches, sorted_out
from pgsimhash.store.collection import Collection, MovedCollectionError
from pgsimhash.store.policies import StalePoliciesError, rules_of, said_about, settings_by
from pgsimhash.store.runs import Run, draw_run
from pgsimhash.store.session import Session
from pgsimhash.store.writer import judge_batch, write_batch


class Ingest:
    """Decides about what comes into a collection, and stores it, over one connection."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # Whether there may be policies. Where there are none nobody asks again what they say: the
        # batch hears it from the lookup when there are some.
        self._policies = True
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
        options: MatchOptions,
        *,
        remember: bool,
    ) -> Iterator[Verdict]:
        """Yield a verdict for each item as they come, decided in batches of ``size``.

        Wrong options are refused at once.
        """
        self._session.check()
        rules_of(self._session.collection, options)
        return self._batch_by_batch(in_batches(items, size), options, remember)

    def _batch_by_batch(
        self, batches: Iterable[list[Item]], options: MatchOptions, remember: bool
    ) -> Iterator[Verdict]:
        for items in batches:
            verdicts = None
            while verdicts is None:
                try:
                    verdicts = self._decide_batch(items, options, remember)
                except StalePoliciesError:
                    self._policies = True
                except MovedCollectionError:
                    continue
            yield from verdicts

    def _decide_batch(
        self, items: list[Item], options: MatchOptions, remember: bool
    ) -> list[Verdict]:
        """Decide about one batch, and with ``remember`` store it, in one transaction.

        Raises:
            StalePoliciesError: there are policies that nobody asked, and nothing was decided.
            MovedCollectionError: the name went to another collection, and nothing was decided.
        """
        urls = [item.url for item in items if isinstance(item, PageRecord)]
        if not urls:
            return sorted_out(items, []).verdicts([])
        session = self._session
        with session.writing() if remember else session.reading() as (connection, collection):
            by_policies = self._policies
            rules = rules_of(collection, options)
            batch = sorted_out(items, self._settings(connection, collection, urls, rules))
            records, settings = batch.records, batch.settings
            if not records:
                return batch.verdicts([])
            if not remember:
                return batch.verdicts(
                    judge_batch(connection, collection, records, settings, by_policies=by_policies)
                )
            run = self._run = self._run or draw_run(connection, "a store")
            made = write_batch(
                connection, collection, records, settings, run, by_policies=by_policies
            )
        return batch.verdicts(made)

    def _settings(
        self,
        connection: psycopg.Connection[Any],
        collection: Collection,
        urls: list[str],
        rules: Rules,
    ) -> list[MatchSettings]:
        if not self._policies:
            return [rules.plain] * len(urls)
        said = said_about(connection, collection, urls)
        self._policies = said.policies
        return settings_by(rules, said, len(urls))
