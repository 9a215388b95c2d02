"""Commands that print all pairs of near-duplicates, and clusters."""

from __future__ import annotations

import click

from pgsimhash import analysis
from pgsimhash.cli.options import (
    Command,
    cluster_options,
    collection_option,
    distance_option,
    dsn_option,
    parquet_option,
)
from pgsimhash.cli.printing import people, print_json
from pgsimhash.cli.work import progress_bar
from pgsimhash.hashing.bits import format_simhash
from pgsimhash.search.clusters import Linkage
from pgsimhash.store import connect


def _table_options(command: Command) -> Command:
    table = click.option(
        "--table", metavar="NAME", help="Write to a new table (schema.name) instead of stdout."
    )
    replace = click.option(
        "--replace",
        is_flag=True,
        help="With --table: replace the rows of an existing table, in one transaction.",
    )
    return table(replace(command))


def _check(table: str | None, replace: bool) -> None:
    if replace and table is None:
        raise click.UsageError("--replace needs --table")


@click.command()
@distance_option("the collection's")
@click.option("--urls", is_flag=True, help="Print pairs of pages: their URLs and titles.")
@_table_options
@collection_option
@dsn_option
def pairs(
    distance: int | None,
    urls: bool,
    table: str | None,
    replace: bool,
    collection: str,
    dsn: str | None,
) -> None:
    """Find all pairs of near-duplicates in a collection, a JSON line each, in no order.

    Pairs are of simhashes. With --urls they are of pages, present versions only: the first page of
    a simhash represents it, and forms a pair at distance 0 with each other page that shares it.
    """
    _check(table, replace)
    if urls and table is not None:
        raise click.UsageError("--urls is only for stdout; join a table of pairs by simhash")
    console = people()
    with (
        connect(dsn, collection=collection, create=False) as store,
        progress_bar(console, "pairs", pages=False, prints=table is None) as progress,
    ):
        if table is not None:
            count = analysis.save_pairs(store, table, distance, replace=replace, progress=progress)
            console.print(f"{count:,} pairs in {table}")
            return
        if urls:
            for pair in analysis.page_pairs(store, distance, progress=progress):
                print_json(pair.as_json())
            return
        for block in store.pairs(distance, progress=progress):
            for low, high, bits in zip(
                block.low.tolist(), block.high.tolist(), block.distances.tolist(), strict=True
            ):
                print_json({"a": format_simhash(low), "b": format_simhash(high), "distance": bits})


@click.command()
@distance_option("the collection's")
@cluster_options
@_table_options
@parquet_option("the pages of clusters to this file instead of stdout")
@collection_option
@dsn_option
def clusters(
    distance: int | None,
    linkage: Linkage,
    canonical: tuple[str, ...],
    table: str | None,
    replace: bool,
    parquet: str | None,
    collection: str,
    dsn: str | None,
) -> None:
    """Group the near-duplicates of a collection, a JSON line for each cluster."""
    _check(table, replace)
    if table and parquet:
        raise click.UsageError("give --table or --parquet, not both")
    console = people()
    with (
        connect(dsn, collection=collection, create=False) as store,
        progress_bar(
            console, "clusters", pages=False, prints=(table or parquet) is None
        ) as progress,
    ):
        if table is not None:
            count = analysis.save_clusters(
                store,
                table,
                distance,
                linkage=linkage,
                canonical=canonical,
                replace=replace,
                progress=progress,
            )
            console.print(f"{count:,} clusters in {table}")
            return
        clusters_ = store.clusters(
            distance, linkage=linkage, canonical=canonical, progress=progress
        )
        if parquet is not None:
            from pgsimhash.batch.parquet import write_clusters

            count = write_clusters(parquet, clusters_)
            console.print(f"{count:,} clusters in {parquet}", soft_wrap=True)
            return
        for cluster in clusters_:
            print_json(cluster.as_json())
