"""Each call is broken at each of its statements, or lines; then the same store repeats it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

from pgsimhash import NoServerError, Store, connect
from pgsimhash.store import session
from pgsimhash.testing import fresh_database
from tests.database import run_sql
from tests.proxy import STATEMENTS, Proxy
from tests.store.calls import CHANGES, READS, A, B
from tests.store.connect.conftest import behind_proxy

# Without ids and times.
STATE = """
SELECT c.name, c.keep_markdown, p.url, p.simhash, p.distance, o.url
FROM pgsimhash.collections AS c
LEFT JOIN pgsimhash.pages AS p USING (collection_id)
LEFT JOIN pgsimhash.pages AS o ON o.collection_id = p.collection_id AND o.page_id = p.duplicate_of
ORDER BY c.name, p.page_id
"""
COUNTERS = """
SELECT c.name, r.label, r.pages, r.new, r.duplicates, r.updated, r.unchanged
FROM pgsimhash.runs AS r JOIN pgsimhash.collections AS c USING (collection_id)
ORDER BY c.name, r.run_id
"""


def fill(store: Store) -> None:
    list(store.add_pages([(A, 7), (B, 6)]))
    store.mark(A, B, same=False)
    store.set_policy("*", content="p")


def losses(between: Proxy, call: Callable[[Store], object], store: Store) -> Iterator[str]:
    """Cut before the first statement of a call, then before the second one, until it succeeds.

    Yields the reasons of the errors.
    """
    number = 1
    while True:
        between.cut_before = between.commits + number
        try:
            call(store)
        except NoServerError as error:
            yield error.reason
        else:
            return
        # Some calls have a statement for each slice of the collection.
        number += 1 + number // 8


def states(dsn: str) -> list[Any]:
    return [run_sql(dsn, STATE), run_sql(dsn, COUNTERS)]


def test_each_call_can_be_repeated_by_the_same_store(
    dsn: str, pgsimhash_server: str, pgsimhash_template: str
) -> None:
    with connect(dsn) as plain:
        fill(plain)
        for change in CHANGES.values():
            change(plain)
    with (
        fresh_database(pgsimhash_server, pgsimhash_template) as broken,
        behind_proxy(broken) as (between, there),
    ):
        with connect(there, retry_seconds=0) as store:
            fill(store)
            between.counts = STATEMENTS
            reasons = set[str]()
            for call in (*READS.values(), *CHANGES.values()):
                reasons.update(losses(between, call, store))
            between.cut_before = None
            assert reasons == {"connection_lost", "no_server"}
            assert store.collection.name == plain.collection.name
            assert list(store.check()) == []
        assert states(broken) == states(dsn)


def interrupted(call: Callable[[], object], number: int) -> bool:
    """Raise KeyboardInterrupt before a line of session.py; return whether there are so many."""
    left = number

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename != session.__file__:
            return None
        left -= event == "line"
        if left == 0:
            sys.settrace(before)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(KeyboardInterrupt):
            call()
    finally:
        sys.settrace(before)
    return left <= 0


def test_a_store_is_usable_after_an_interrupt_at_any_line_of_its_session(store: Store) -> None:
    lines = 0
    while interrupted(lambda: store.add_page(A, 7), lines + 1):
        lines += 1
        assert store.add_page(B, 7).page_id is not None
    assert lines > 30
