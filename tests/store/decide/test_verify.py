"""Verification of matches: the signatures of the two pages must agree as well."""

from __future__ import annotations

import psycopg

from pgsimhash import Store
from pgsimhash.hashing.signature import SAME_BITS_MAX
from pgsimhash.pages.policies import MatchSettings
from pgsimhash.pages.records import PageRecord, Verdict
from pgsimhash.store.collection import find_collection
from pgsimhash.store.ingest import add_batch, draw_run

LIKE = (1 << SAME_BITS_MAX) - 1
UNLIKE = (1 << (SAME_BITS_MAX + 1)) - 1
KNOWN = 2**63 + 5


def write(dsn: str, *records: PageRecord, verify: bool = True) -> list[Verdict]:
    with psycopg.connect(dsn) as connection:
        collection = find_collection(connection, "default")
        assert collection is not None
        run = draw_run(connection, "test")
        settings = [MatchSettings(12, verify=verify)] * len(records)
        made = add_batch(connection, collection, records, settings, run, by_policies=False)
    return made


def page(name: str, bits: int, signature: int | None) -> PageRecord:
    return PageRecord(f"https://a.example/{name}", KNOWN ^ ((1 << bits) - 1), signature=signature)


def test_find_takes_the_signature_that_belongs_to_the_simhash(store: Store, dsn: str) -> None:
    write(dsn, page("known", 0, 0))
    near, far = KNOWN ^ 0x1F, KNOWN ^ 0x3F
    assert len(store.find(near, 12, signature=UNLIKE)) == 1
    assert len(store.find(far, 12, signature=UNLIKE)) == 0
    assert len(store.find(far, 12, signature=LIKE)) == 1
    assert len(store.find(far, 12)) == 1


def test_an_agreeing_page_counts_although_another_with_its_simhash_does_not(
    store: Store, dsn: str
) -> None:
    write(dsn, page("other", 0, 2**128 - 1), page("same", 0, 0), verify=False)
    assert write(dsn, page("far", 12, LIKE))[0].duplicate_of == "https://a.example/same"
    (match,) = store.find(KNOWN ^ ((1 << 11) - 1), 11, signature=LIKE)[1:]
    assert match.url == "https://a.example/same"
