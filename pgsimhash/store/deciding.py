"""From pages that come to verdicts: read, sorted by scheme, and decided batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from pgsimhash.extraction import extract_many
from pgsimhash.policies import Rules
from pgsimhash.records import PageRecord, Verdict
from pgsimhash.schemes import Scheme
from pgsimhash.store.batches import (
    BATCH_PAGES,
    Page,
    as_source,
    verdicts_of,
    with_checked_time,
    with_enough_words,
    write_in_batches,
)
from pgsimhash.store.boilerplates import find_scheme
from pgsimhash.store.branches import find_branch, open_branch
from pgsimhash.store.policing import Policing, StalePoliciesError
from pgsimhash.store.runs import Run, draw_run
from pgsimhash.store.writer import judge_batch, write_batch
from pgsimhash.terms import Options

Work = Callable[[str, Rules, list[PageRecord]], list[Verdict]]
"""Decides about records of a scheme by rules."""


class Deciding(Policing):
    """What deciding about pages and remembering them have in common."""

    _what: str = "a store"
    _runs: dict[int, Run]

    def _ingest(
        self, pages: Iterable[Page], jobs: int, max_bytes: int, options: Options, work: Work
    ) -> Iterator[Verdict]:
        self._session.check()
        rules = self._rules(options)

        def scheme_for(url: str) -> Scheme | None:
            # A collection that policies opened for a scheme takes no page of another one.
            named = None if self._collection.policies_of else rules.scheme_for(url)
            if named is None:
                return None
            with self._session.read() as connection:
                return find_scheme(connection, named)

        records = extract_many(
            map(as_source, pages),
            jobs,
            self._collection.scheme,
            scheme_for,
            markdown=self._collection.keep_markdown,
            max_bytes=max_bytes,
        )
        decide = self._by_scheme(work, rules)
        return write_in_batches(map(with_checked_time, records), decide, BATCH_PAGES)

    def _by_scheme(self, work: Work, rules: Rules) -> Callable[[list[PageRecord]], list[Verdict]]:
        """Return what decides about a batch: the records of each scheme in their collection."""

        def decide(records: list[PageRecord]) -> list[Verdict]:
            verdicts: dict[int, Verdict] = {}
            places: dict[str, list[int]] = {}
            for at, record in enumerate(records):
                places.setdefault(record.scheme or self._collection.scheme, []).append(at)
            for scheme, numbers in places.items():
                some = [records[at] for at in numbers]
                long_enough = partial(self._long_enough, partial(work, scheme, rules), some, rules)
                made = self._with_policies(long_enough)
                verdicts.update(zip(numbers, made, strict=True))
            return [verdicts[at] for at in range(len(records))]

        return decide

    def _long_enough(
        self,
        work: Callable[[list[PageRecord]], list[Verdict]],
        records: list[PageRecord],
        rules: Rules,
    ) -> list[Verdict]:
        """Let ``work`` decide about the records that policies do not find too short.

        Raises:
            StalePoliciesError: policies were changed meanwhile, and nothing was decided.
        """
        version = rules.version
        items = [with_enough_words(record, rules) for record in records]
        if not any(isinstance(item, PageRecord) for item in items):
            # Nobody else asks whether the policies are still those.
            self._read_policies()
            if rules.version != version:
                raise StalePoliciesError
        return list(verdicts_of(items, work))

    def _judge(self, scheme: str, rules: Rules, records: list[PageRecord]) -> list[Verdict]:
        with self._session.read() as connection:
            collection = find_branch(connection, self._collection, scheme)
            return judge_batch(connection, collection, records, rules)

    def _write(self, scheme: str, rules: Rules, records: list[PageRecord]) -> list[Verdict]:
        with self._session.transaction() as connection:
            collection = open_branch(connection, self._collection, scheme)
            run = self._runs.get(collection.collection_id)
            if run is None:
                run = draw_run(connection, self._what)
                self._runs[collection.collection_id] = run
            made = write_batch(connection, collection, records, rules, run)
        return [decision.verdict for decision in made]
