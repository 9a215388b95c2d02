"""Decide about records and store them, in batches: each is one statement and one transaction."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields
from itertools import count, repeat
from typing import Any, Final

from psycopg.rows import dict_row

from pgsimhash.errors import PgsimhashError, StoreError, check_number
from pgsimhash.hashing.bits import to_bigint
from pgsimhash.hashing.signature import to_halves
from pgsimhash.log import logger
from pgsimhash.pages.policies import MatchOptions, checked_settings
from pgsimhash.pages.records import (
    BITS_64,
    CAPTURE,
    UNSTORED,
    Item,
    PageFailure,
    PageRecord,
    PageStatus,
    Verdict,
    VerdictKind,
)
from pgsimhash.pages.selectors import Selectors
from pgsimhash.pages.urls import same_site
from pgsimhash.pages.values import text_size
from pgsimhash.store.batches import next_batch, with_normalized_url
from pgsimhash.store.collection import Collection
from pgsimhash.store.lookups import Calls
from pgsimhash.store.session import Session

# The reasons of pages that are intact but have too little text.
_TOO_SHORT: Final = frozenset(
    {"policy", "too_short", "cut_short", "error_page", "blocked", "needs_script"}
)
# The fields of a record, of which a status has some, that ``_add_batch`` reads under their names.
_SENT: Final = tuple(
    each.name for each in fields(PageRecord) if each.name not in ("signature", *UNSTORED)
)
# Their forms in JSON, if they have another one.
_FORMS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("simhash", *BITS_64), to_bigint),
    "fetched_at": lambda moment: moment.isoformat(),
    "html_digest": lambda digest: f"\\x{digest.hex()}",
}
# The fields of a record that its verdict repeats; ``_add_batch`` returns the others.
_SHOWN: Final = (
    "url", "simhash", "html_bytes", "truncated", "content_missing", "title", "markdown",
)  # fmt: skip
_DECIDED: Final = (
    *("number", "detail", "sighting"),
    *(
        f"decided.{each.name}"
        for each in fields(Verdict)
        if each.name not in (*_SHOWN, *CAPTURE, "detail")
    ),
)


@dataclass(slots=True)
class Run:
    """The run of batches that follow one another; without a label, they belong to no run."""

    label: str | None
    is_dry: bool = False  # decided, but not stored
    run_id: int | None = None  # None before the first batch
    sighting: int | None = None  # the number of what its last batch saw
    # The verdicts of a batch whose commit is in doubt.
    unsure: list[Verdict] | None = None

    def draw_id(self, calls: Calls) -> int:
        """Return the id of the run; its row is inserted with the first batch."""
        if self.run_id is None:
            ((self.run_id,),) = calls.fetch("draw_run")
        return self.run_id


class Ingest:
    """Decides about incoming records and stores them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # The name of the run that the caller started, if any.
        self._label: str | None = None
        # Runs that no thread or task uses; threads have different ones.
        self._idle: list[Run] = []

    def start_run(self, label: str) -> int:
        """Start a run for everything that is stored from now on, and return its id."""
        text_size("label", label)
        run = Run(label)
        self.end_runs()
        with self._session.calls_to_write() as calls:
            run_id = run.draw_id(calls)
        self._label, self._idle = label, [run]
        return run_id

    def end_runs(self, run: Run | None = None) -> None:
        """Record the end of a run, or of those that the caller started.

        Over a connection of the caller it belongs to the present transaction; it begins none.
        """
        runs, connections = [run] if run else self._idle, self._session.connections
        if run is None:
            self._label, self._idle = None, []
        run_ids = [each.run_id for each in runs if each.run_id is not None]

        def end() -> None:
            with self._session.calls_to_write() as calls:
                calls.fetch("end_runs", run_ids=run_ids)

        # Without it, the run counts as unfinished. But callers must not commit what failed here.
        is_callers = run is not None and not connections.owned
        with nullcontext() if is_callers else suppress(PgsimhashError):
            if run_ids and (
                connections.in_transaction() or not self._session.is_in_callers_transaction()
            ):
                self._session.retry(end)

    def see(self, calls: Calls, page_ids: list[int]) -> None:
        """Record that versions were seen again, by the run that the caller started, if any."""
        with self._idle_run() as run:
            if run.label is not None:
                _count_cuts(calls, run, 0, 0)  # it may be the first batch
            given: Any = dict.fromkeys(("times", "are_gone", "etags", "modified", "are_stored"))
            calls.fetch("see_pages", page_ids=page_ids, batch_run=run.run_id, **given)

    def decide_batch(
        self, items: Sequence[Item], options: MatchOptions, *, dry_run: bool = False
    ) -> list[Verdict]:
        """Return the verdict of each item, stored in one transaction unless it is a dry run."""
        with nullcontext(Run(None, is_dry=True)) if dry_run else self._idle_run() as run:
            return self._verdicts(items, options, run)

    def decide_each(
        self,
        items: Iterable[Item],
        size: int,
        options: MatchOptions,
        *,
        dry_run: bool = False,
        batch_size: int | None = None,
        label: str = "ingest_many",
    ) -> Iterator[Verdict]:
        """Yield a verdict for each item, decided in batches.

        Stored items form a run, unless the caller started one. It ends after the last verdict. A
        batch has ``size`` items. Items that are stored in the caller's transaction are decided one
        by one, when their verdicts are consumed, unless the caller gave a ``batch_size``.
        """
        sent_options(self._session.collection, options)
        if batch_size is not None:
            check_number("batch_size", batch_size)
        own = Run(None, is_dry=True) if dry_run else Run(label) if self._label is None else None
        rest = iter(items)
        in_transaction = self._session.connections.in_transaction

        def verdicts() -> Iterator[Verdict]:
            while True:
                in_callers = not dry_run and self._session.is_in_callers_transaction()
                batch = next_batch(rest, batch_size or (1 if in_callers else size))
                if not batch:
                    break
                with nullcontext(own) if own else self._idle_run() as run:
                    decided = self._verdicts(batch, options, run)
                    stored = run.run_id, run.sighting
                may_end = in_callers and in_transaction()
                for number, verdict in enumerate(decided, 1):
                    is_last = number == len(decided)
                    if may_end and is_last and number > 1 and not self._is_kept(*stored, decided):
                        raise _ended("a savepoint was rolled back in the middle", decided)
                    yield verdict
                    if may_end and not is_last and not in_transaction():
                        raise _ended(f"the transaction ended after {number}", decided)
            if own is not None:
                self.end_runs(own)

        return verdicts()

    @contextmanager
    def _idle_run(self) -> Iterator[Run]:
        """Lend a run that the caller started, or none; no other thread or task has it meanwhile."""
        idle = self._idle
        try:
            run = idle.pop()
        except IndexError:
            run = Run(self._label)
        try:
            yield run
        finally:
            idle.append(run)

    def _verdicts(self, items: Sequence[Item], options: MatchOptions, run: Run) -> list[Verdict]:
        """Return a verdict for each item; retries are safe, because the batch is stored once."""
        run.unsure = None
        verdicts = self._session.attempt(
            "decide" if run.is_dry else "ingest",
            len(items),
            lambda: self._in_transaction(items, options, run),
            lambda decided: Counter(each.kind for each in decided),
            lambda: run.run_id,
        )
        records = sum(each.kind not in ("too_short", "failed") for each in verdicts)
        name = self._session.collection.name
        logger.debug(
            "%d pages %s %r, %d without a simhash", records,
            "compared with" if run.is_dry else "stored in", name, len(items) - records,
            extra={"collection": name, "run_id": run.run_id},
        )  # fmt: skip
        return verdicts

    def _in_transaction(
        self, items: Sequence[Item], options: MatchOptions, run: Run
    ) -> list[Verdict]:
        """Decide about one batch in one transaction, and store it unless the run is dry."""
        failures = [item for item in items if isinstance(item, PageFailure)]
        cut_short = sum(item.reason == "cut_short" for item in failures)
        if len(failures) == len(items) and not cut_short:
            return list(map(_verdict_of_failure, failures))
        session = self._session
        with session.calls_to_read() if run.is_dry else session.calls_to_write() as calls:
            if run.unsure is not None:
                # A server process that is still committing the batch holds this lock.
                calls.lock()
                if _is_stored(calls, run.run_id, run.sighting, run.unsure):
                    return run.unsure
                run.unsure = None
            if calls.collection.normalize_urls:
                items = list(map(with_normalized_url, items))
            verdicts = add_batch(calls, items, options, run)
            if not run.is_dry:
                content_missing = sum(each.content_missing for each in verdicts)
                if run.label is not None and content_missing + cut_short:
                    _count_cuts(calls, run, content_missing, cut_short)
                run.unsure = verdicts
        return verdicts

    def _is_kept(self, run_id: int | None, sighting: int | None, verdicts: list[Verdict]) -> bool:
        """Return whether a batch is still stored in the caller's transaction."""
        if not any(each.page_id for each in verdicts):
            return True
        with self._session.calls_to_read() as calls:
            return _is_stored(calls, run_id, sighting, verdicts)


def sent_options(collection: Collection, options: MatchOptions) -> dict[str, Any]:
    """Return the given options as ``_add_batch`` reads them, if all are valid.

    Selectors are for the reader, see :meth:`pgsimhash.store.store.Store._selected`.
    """
    given = checked_settings(options).given()
    for name in Selectors._fields:
        given.pop(name, None)
    if "distance" in given:
        given["distance"] = collection.checked_distance(given["distance"])
    if (age := given.get("max_age")) is not None:
        given["max_age"] = f"{24 * age.days} hours {age.seconds}.{age.microseconds:06} seconds"
    return given


def add_batch(
    calls: Calls,
    items: Sequence[Item],
    options: MatchOptions,
    run: Run,
    own_values: Sequence[dict[str, Any]] = (),
) -> list[Verdict]:
    """Decide about items, and store them in the connection's present transaction.

    ``_add_batch`` in sql/batch.sql first looks up near simhashes. Then it locks the compared
    collections until the transaction ends, and compares only the pages that other writers added
    meanwhile. So of several writers with near-duplicates only one gets the verdict ``new``, and
    writers wait for each other's inserts, not for lookups. Items with ``own_values``, a ``page_id``
    and ``run_id``, are decided as if they had arrived with them.
    """
    collection = calls.collection
    sent = sent_options(collection, options)
    numbers = count(1)
    pages = [
        _sent(collection, item, next(numbers)) | own
        for item, own in zip(items, own_values or repeat({}), strict=False)
        if not isinstance(item, PageFailure)
    ]
    rows: list[dict[str, Any]] = []
    if pages:
        if run.label is not None:
            run.draw_id(calls)
        rows = calls.fetch(
            "add_batch",
            dict_row,
            columns=_DECIDED,
            pages=json.dumps(pages, ensure_ascii=False),
            options=json.dumps(sent),
            dry_run=run.is_dry,
            run_id=run.run_id,
            label=run.label,
        )
    decisions = {row.pop("number"): row for row in rows}
    numbers = count(1)
    verdicts = []
    for item in items:
        if isinstance(item, PageFailure):
            verdicts.append(_verdict_of_failure(item))
            continue
        decision = decisions[next(numbers)]
        run.sighting = decision.pop("sighting") or run.sighting
        has_page = decision["kind"] != "too_short" and isinstance(item, PageRecord)
        shown = _SHOWN if has_page else ("url",)
        verdicts.append(Verdict(**{name: getattr(item, name) for name in shown}, **decision))
    return verdicts


def _count_cuts(calls: Calls, run: Run, content_missing: int, cut_short: int) -> None:
    """Count the pages of a run that selectors do not fit, so that a redesign is not missed."""
    counts: dict[str, Any] = {"content_missing": content_missing, "cut_short": cut_short}
    calls.fetch("count_cuts", run_id=run.draw_id(calls), label=run.label, **counts)


def _is_stored(
    calls: Calls, run_id: int | None, sighting: int | None, verdicts: list[Verdict]
) -> bool:
    """Return whether a batch was committed: its run has the sighting, or its pages exist.

    Without a run, one that added no page counts as not committed: repeating it is harmless.
    """
    ((stored,),) = calls.fetch(
        "batch_stored",
        run_id=run_id,
        sighting=sighting,
        page_ids=[each.page_id for each in verdicts if each.kind not in ("unchanged", "gone")],
        urls=[each.url for each in verdicts],
    )
    return bool(stored)


def _ended(what: str, batch: list[Verdict]) -> StoreError:
    return StoreError(
        "wrong_transaction",
        f"{what} of the {len(batch)} verdicts of a batch, which is stored as a whole; do so "
        "between two batches, or omit batch_size: then each page is stored when its verdict is "
        "consumed",
    )


def _verdict_of_failure(item: PageFailure) -> Verdict:
    kind: VerdictKind = "too_short" if item.reason in _TOO_SHORT else "failed"
    return Verdict(item.url, kind, item.reason, detail=item.detail)


def _sent(collection: Collection, item: PageRecord | PageStatus, number: int) -> dict[str, Any]:
    """Return a page as ``_add_batch`` reads it; None is omitted."""
    page: dict[str, Any] = {"number": number}
    for name in (*_SENT, "is_gone"):
        if (value := getattr(item, name, None)) is not None:
            page[name] = _FORMS[name](value) if name in _FORMS else value
    if isinstance(item, PageRecord):
        if item.signature is not None:
            page["signature_high"], page["signature_low"] = to_halves(item.signature)
        if not collection.keep_markdown:
            page.pop("markdown", None)
        link = item.canonical_url
        if link not in (None, item.url) and same_site(link, item.url):
            page["canonical"] = link
    return page
