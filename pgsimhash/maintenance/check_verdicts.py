"""Gives pages verdicts again as when they came, to find two originals that are near-copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from pgsimhash.maintenance.check_scope import Connection, Row, Scope, rows_of
from pgsimhash.maintenance.stored import StoredRecord, stored_records
from pgsimhash.maintenance.violations import Violation, violation
from pgsimhash.store.batches import BATCH_PAGES
from pgsimhash.store.candidates import ask
from pgsimhash.store.collection import Collection
from pgsimhash.store.decisions import decide
from pgsimhash.store.policies import rules_of, settings_for
from pgsimhash.store.search_scope import SearchScope


def check_verdicts(scope: Scope) -> Iterator[Violation]:
    """Yield the pages that count as originals, and by the present settings would not.

    Nobody can tell what became of a page whose original was deleted, or which settings a call had:
    where nothing was deleted and no settings differed, each of them is wrong. What is compared with
    other collections is left out, for ids do not say in which order those came.
    """
    for collection in scope.collections:
        after_page = 0
        while True:
            with scope.read() as connection:
                pages = stored_records(
                    connection, collection, after_page, BATCH_PAGES, markdown=False
                )
                if not pages:
                    break
                after_page = pages[-1].page_id
                rows = _two_originals(connection, collection, pages)
            for row in rows:
                yield violation("two_originals", collection.name, table="pages", **row)


def _two_originals(
    connection: Connection, collection: Collection, pages: Sequence[StoredRecord]
) -> list[Row]:
    urls = [page.record.url for page in pages]
    settings = settings_for(connection, collection, rules_of(collection, {}), urls)
    kept = [at for at, wanted in enumerate(settings) if wanted.scope != "global"]
    if not kept:
        return []
    records = [pages[at].record for at in kept]
    page_ids = [pages[at].page_id for at in kept]
    wanted = [settings[at] for at in kept]
    now = datetime.now(UTC)
    reach = SearchScope(collection, (collection,))
    nearest, known = ask(connection, reach, records, wanted, now, before_page=page_ids[0])
    found = []
    for page_id, made in zip(
        page_ids, decide(records, page_ids, wanted, nearest, known, [], now), strict=True
    ):
        if made.duplicate_of is not None:
            values = {"page_id": page_id, "original": made.duplicate_of}
            scoped = {"collection_id": collection.collection_id, **values}
            found += rows_of(connection, "decided_originals", scoped)
    return found
