"""What the store knows about a batch before it is decided: matches, versions and marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
import psycopg
from psycopg.rows import scalar_row, tuple_row

from pgsimhash.bits import from_bigint, to_bigint
from pgsimhash.connection import server_words
from pgsimhash.errors import ArgumentError
from pgsimhash.marks import MarksOf
from pgsimhash.matching import MatchSettings
from pgsimhash.records import PageRecord
from pgsimhash.sketch import to_halves
from pgsimhash.statements import query
from pgsimhash.store.arrays import as_columns, as_texts
from pgsimhash.store.collection import Collection
from pgsimhash.store.decisions import (
    ArrivedPage,
    Known,
    KnownVersion,
    Look,
    look_for,
    versions_before,
)
from pgsimhash.store.memory import NO_MEMORY, Memory
from pgsimhash.store.search_scope import SearchScope
from pgsimhash.store.verdicts import KnownMatch

ALL_PAGES: Final = 2**63 - 1
"""Above the ids of all pages: what counts are the pages before it."""


_COLUMNS: Final = (
    "simhashes",
    "sketch_high",
    "sketch_low",
    "hosts",
    "since",
    "keep_first",
    "own_urls",
    "versions_before",
)
"""What ``ask`` takes of each page."""


class Question(NamedTuple):
    """What the records that one statement asks about have in common."""

    distance: int
    everywhere: bool
    newest: int | None


def ask(
    connection: psycopg.Connection[Any],
    reach: SearchScope,
    records: Sequence[PageRecord],
    settings: Sequence[MatchSettings],
    now: datetime,
    memory: Memory = NO_MEMORY,
    before_page: int = ALL_PAGES,
) -> tuple[list[KnownMatch | None], Known]:
    """Return the nearest match in the store for each record, and what is known of their URLs.

    Pages from ``before_page`` on do not count. One round trip for all records whose settings ask
    for the same distance, collections and window.

    Raises:
        ArgumentError: the layout does not answer a distance that a policy asks for.
    """
    nearest: list[KnownMatch | None] = [None] * len(records)
    versions: dict[str, KnownVersion] = {}
    marks: dict[str, MarksOf] = {}
    policies = False
    before = versions_before(records)
    questions: dict[Question, list[int]] = {}
    for at, wanted in enumerate(settings):
        question = Question(wanted.distance, wanted.scope == "global", wanted.newest)
        questions.setdefault(question, []).append(at)
    for question, places in questions.items():
        some = [records[at] for at in places]
        urls = urls_of(some, [settings[at] for at in places])
        remembered = _remembered(connection, reach, memory, some, question)
        if remembered["near_to"] is not None:
            # Of the others there is no more to ask.
            near_to = set(map(from_bigint, remembered["near_to"]))
            places = [at for at in places if records[at].simhash in near_to]
        asked = [(records[at], settings[at], before[at]) for at in places]
        parameters = {
            **_parameters(connection, reach, asked, question, now, before_page),
            **remembered,
            "urls": as_texts(urls),
        }
        looking_up = memory.looking_up(reach.collection)
        with looking_up, connection.cursor(row_factory=tuple_row) as cursor:
            try:
                cursor.execute(query("ask", connection), parameters)
            except psycopg.errors.InvalidParameterValue as error:
                raise ArgumentError("invalid_distance", server_words(error)) from error
            for number, *row in cursor:
                page_id, url, distance, html_digest, copies, *about, there = row
                if there is not None:
                    policies = there
                elif number is None:
                    _note(versions, marks, url, page_id, *about)
                else:
                    nearest[places[number - 1]] = KnownMatch(
                        distance, page_id, url, html_digest, copies=copies
                    )
    return nearest, Known(versions, marks, policies)


def known_pages(
    connection: psycopg.Connection[Any], collection: Collection, urls: Iterable[str]
) -> Known:
    """Return what is known about URLs, and about those that marks join to them."""
    parameters = {
        "collection_id": collection.collection_id,
        "before_page": ALL_PAGES,
        "urls": list(urls),
    }
    versions: dict[str, KnownVersion] = {}
    marks: dict[str, MarksOf] = {}
    marked = False
    with connection.cursor(row_factory=tuple_row) as cursor:
        for *about, there in cursor.execute(query("known_pages", connection), parameters):
            if there is None:
                _note(versions, marks, *about)
            else:
                marked = there
    return Known(versions, marks, marked=marked)


def known_now(
    connection: psycopg.Connection[Any],
    collection: Collection,
    urls: Sequence[str],
    asked: Known,
    arrived: Sequence[ArrivedPage],
) -> Known:
    """Return under the lock what is known about URLs that were asked about before it.

    Versions may have gone since, and marks may have come. Of what nothing was known, and nothing
    arrived, nothing is known now: a plain INSERT that drew its page's id before that and committed
    since is as one that commits after this batch.
    """
    maybe = {*asked.versions, *map(attrgetter("url"), arrived)}
    known = known_pages(connection, collection, filter(maybe.__contains__, urls))
    return known_pages(connection, collection, urls) if known.marked else known


def urls_of(records: Sequence[PageRecord], settings: Sequence[MatchSettings]) -> list[str]:
    """Return the URLs whose versions matter: those of the records, and the ones they name."""
    named = [
        record.canonical_url
        for record, wanted in zip(records, settings, strict=True)
        if wanted.canonical_link and record.canonical_url is not None
    ]
    return [record.url for record in records] + named


def _note(
    versions: dict[str, KnownVersion],
    marks: dict[str, MarksOf],
    url: str,
    page_id: int | None,
    simhash: int | None,
    text_digest: int | None,
    first_id: int,
    same: list[str] | None,
    different: list[str] | None,
) -> None:
    """Take down what one row says about a URL."""
    if page_id is not None and simhash is not None:
        digest = None if text_digest is None else from_bigint(text_digest)
        versions[url] = KnownVersion(page_id, from_bigint(simhash), first_id, digest)
    if same or different:
        marks[url] = MarksOf(tuple(same or ()), tuple(different or ()))


def _parameters(
    connection: psycopg.Connection[Any],
    reach: SearchScope,
    asked: Sequence[tuple[PageRecord, MatchSettings, int | None]],
    question: Question,
    now: datetime,
    before_page: int,
) -> dict[str, Any]:
    scope = {**reach.scope(everywhere=question.everywhere), "before_page": before_page}
    looks = [look_for(record, wanted, now, before) for record, wanted, before in asked]
    rows = [_asked_about(look, wanted) for look, (_, wanted, _) in zip(looks, asked, strict=True)]
    columns = as_columns(_COLUMNS, rows)
    hosts = [look.host for look in looks]
    return {
        **scope,
        **columns,
        "oldest": _oldest(connection, scope, hosts, question.newest),
        "distance": question.distance,
    }


def _asked_about(look: Look, wanted: MatchSettings) -> tuple[Any, ...]:
    return (
        to_bigint(look.simhash),
        *to_halves(look.sketch),
        look.host,
        look.since,
        wanted.keep_first,
        look.url,
        None if look.before is None else to_bigint(look.before),
    )


def _remembered(
    connection: psycopg.Connection[Any],
    reach: SearchScope,
    memory: Memory,
    records: Sequence[PageRecord],
    question: Question,
) -> dict[str, Any]:
    """Return what is near to the records by what is remembered of their own collection."""
    near = None
    if not question.everywhere or len(reach.compared) == 1:
        simhashes = np.unique(np.array([one.simhash for one in records], dtype=np.uint64))
        near = memory.near(connection, reach.collection, simhashes, question.distance)
    if near is None:
        return {"near_to": None, "near_simhashes": None}
    return {
        "near_to": simhashes[near.queries].view(np.int64).tolist(),
        "near_simhashes": near.simhashes.view(np.int64).tolist(),
    }


def _oldest(
    connection: psycopg.Connection[Any],
    scope: dict[str, Any],
    hosts: Sequence[str | None],
    newest: int | None,
) -> list[int] | None:
    """Return for each host, None for any, the oldest page that counts; None where all do.

    That is the oldest of the ``newest`` originals: pages that were found to duplicate no other.
    """
    if newest is None:
        return None
    asked = list(dict.fromkeys(hosts))
    with connection.cursor(row_factory=scalar_row) as cursor:
        parameters = {**scope, "hosts": asked, "newest": newest}
        found = cursor.execute(query("window", connection), parameters).fetchall()
    oldest = dict(zip(asked, found, strict=True))
    return [oldest[host] for host in hosts]
