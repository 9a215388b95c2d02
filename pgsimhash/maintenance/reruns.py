"""Going through a collection again; interrupted, the same call goes on where it stopped."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Unpack

import psycopg

from pgsimhash.connection import server_words
from pgsimhash.errors import CollectionError
from pgsimhash.layout import get_layout
from pgsimhash.maintenance import layout_moves, refingerprinting, rejudging
from pgsimhash.maintenance.changes import changing
from pgsimhash.maintenance.layout_moves import Progress as LayoutProgress
from pgsimhash.maintenance.tasks import Progress, unheard
from pgsimhash.policies import Policies
from pgsimhash.records import Verdict
from pgsimhash.rereading import rereading
from pgsimhash.schemes import Scheme, get_scheme
from pgsimhash.statements import query
from pgsimhash.store import Store
from pgsimhash.store.collection import check_names, open_collection
from pgsimhash.store.policies import read_policies, rules_of
from pgsimhash.terms import Options


def refingerprint(
    store: Store,
    into: str,
    scheme: str | Scheme,
    *,
    layout: str | None = None,
    keep_markdown: bool = True,
    approximate: bool = False,
    progress: Progress = unheard,
    **options: Unpack[Options],
) -> Iterator[Verdict]:
    """Add every version to the collection ``into`` by another scheme, from kept Markdown.

    Lazy: versions are voted on, decided and stored in batches as the verdicts are consumed,
    in the order in which they came, each batch in a transaction. What else is known of a
    version goes along, such as when it was fetched and last seen; so do marks and policies.
    A version without Markdown fails (``no_markdown``), and one can be too short for the new
    scheme. Interrupted, the same call goes on where it stopped; called again later, it takes
    what came since, sightings and marks too. What is stored is not told again.
    :meth:`rename` then gives the collection the name of this one.

    Args:
        store: whose collection is read.
        into: the other collection, created where it is missing, else one that an earlier
            call made.
        scheme: the recipe, or the name of one that is registered. It has to read pages as
            this collection's does: the same with other tokens, weights or hashes.
        layout: the layout of a collection that is created; by default the database's.
        keep_markdown: whether a collection that is created keeps the Markdown too.
        approximate: whether to go on where the scheme reads pages in another way, with
            simhashes of the text that this collection's made of them.
        progress: told how many versions are done of how many.
        options: on what terms; ``distance`` becomes the default of a collection that is
            created.

    Raises:
        ArgumentError: there is no such scheme, it reads pages in another way, or this
            collection's is not registered.
        CollectionError: this collection keeps no Markdown; or ``into`` is this one, has
            another scheme or layout, or holds pages from elsewhere or on other terms.
        ArgumentError: there is no such layout.
        ArgumentError: the layout does not answer ``distance``.
        ArgumentError: marks in ``into`` say the contrary of this collection's.
        ArgumentError: a policy asks for a distance that the layout does not answer.
        StoreError: the database does not answer; the batches before stay.
    """
    with store.session.transaction() as connection:
        wanted = get_scheme(scheme)
        recipe = rereading(store.opened.scheme, wanted, approximate=approximate)
        target = refingerprinting.open_target(
            connection,
            store.opened,
            into,
            recipe,
            layout=layout,
            distance=options.get("distance"),
            keep_markdown=keep_markdown,
        )
        rules_of(target, Policies(), options)
        task = refingerprinting.begin(connection, store.opened, target, options)
    return refingerprinting.refingerprint(
        store.session, store.opened, task, recipe, options, progress
    )


def rejudge(
    store: Store, *, save: bool = False, progress: Progress = unheard, **options: Unpack[Options]
) -> Iterator[Verdict]:
    """Give every stored version a verdict anew, as if all came again in the same order.

    Lazy. Each is compared with those before it only, by what is stored of them, and nothing
    is read or voted on again. Policies hold as they are when this is called, but for
    ``min_words``, which is about pages to come. On the terms on which the
    pages came the verdicts are those of that time, but for what was forgotten or marked
    since. A window of the newest pages moves with each batch of 256. Simhashes without a
    page count as if they had been there first.

    With ``save`` the verdicts replace the stored ones, in a transaction for each batch:
    reports and what a page was found to duplicate follow them. Interrupted, the same call
    goes on where it stopped, and one on other terms starts over. Without it, a page marked
    different from another is kept apart from what the stored verdicts, not the new ones, say
    to duplicate that one.

    Args:
        store: whose collection it is.
        save: whether to store the verdicts.
        progress: told how many versions are done of how many.
        options: on what terms; by default the collection's.

    Raises:
        ArgumentError: the layout does not answer ``distance``.
        ArgumentError: there is no such scope, or a number of pages is below 1.
        ArgumentError: ``max_age`` is none.
        StoreError: the database does not answer, so that the batches before stay; or someone
            else began to save verdicts on other terms.
    """
    with store.session.transaction() as connection:
        policies = read_policies(connection, store.opened)
        rules = rules_of(store.opened, policies, options)
        task = rejudging.begin(connection, store.opened, options, rules) if save else None
    if task is None:
        return rejudging.rejudge(store.session, store.opened, rules, progress)
    return rejudging.rejudge_and_save(store.session, task, rules, progress)


def rename(store: Store, name: str, *, swap: bool = False) -> None:
    """Give the collection another name; with ``swap`` the one of that name gets the old one.

    Waits for writers to finish their batches. Stores that have it open by the old name can
    write no more and say so; their lookups go on.

    Raises:
        CollectionError: another collection has the name and ``swap`` is false, or none has
            and it is true; or the name is empty, or this one was renamed since it was opened.
        StoreError: the database does not answer.
    """
    names = {"old": store.opened.name, "new": name, "swap": swap}
    try:
        with changing(store) as connection:
            connection.execute(query("rename_collection"), names)
    except (
        psycopg.errors.UndefinedObject,
        psycopg.errors.UniqueViolation,
        psycopg.errors.InvalidParameterValue,
    ) as error:
        raise CollectionError("cannot_rename", server_words(error)) from error
    store.opened = dataclasses.replace(store.opened, name=name)


def relayout(
    store: Store,
    layout: str,
    *,
    distance: int | None = None,
    progress: LayoutProgress = lambda step, done, total: None,
) -> None:
    """Move the collection to another layout, while lookups and writers go on.

    Lookups stay exact throughout. An interrupted move goes on when called again; asking
    for the present layout cancels it. Needs the rights of the tables' owner and a
    connection with ``autocommit``, such as the store's own.

    Args:
        store: whose collection it is.
        layout: the name of the layout; ``pgsimhash collection plan`` compares them.
        distance: the collection's new default distance; by default the present one.
        progress: called with the step, and how much of how much of it is done.

    Raises:
        ArgumentError: there is no such layout.
        CollectionError: the collection is on its way to another layout, or was renamed since
            it was opened; or the new layout does not answer its default distance, or that
            of a policy.
        StoreError: the connection is in a transaction, or another process is at it.
    """
    with store.session.read() as connection:
        check_names(connection, [store.opened])
        layout_moves.relayout(
            connection,
            store.collection,
            get_layout(layout),
            distance=distance,
            progress=progress,
        )
        store.opened = open_collection(connection, store.collection, create=False)
