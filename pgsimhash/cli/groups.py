"""Commands that print all pairs of near-duplicates, and clusters."""

from __future__ import annotations

import click

from pgsimhash import analysis
from pgsimhash.cli.options import (
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


@click.command()
@distance_option("the collection's")
@click.option("--urls", is_flag=True, help="Print pairs of pages: their URLs and titles.")
@collection_option
@dsn_option
def pairs(distance: int | None, urls: bool, collection: str, dsn: str | None) -> None:
    """Find all pairs of near-duplicates in a collection, a JSON line each, in no order.

    Pairs are of simhashes. With --urls they are of pages, present versions only: the first page of
    a simhash represents it, and forms a pair at distance 0 with each other page that shares it.
    """
    with (
        connect(dsn, collection=collection, create=False) as store,
        progress_bar(people(), "pairs", pages=False, prints=True) as progress,
    ):
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
@click.option(
    "--save",
    is_flag=True,
    help="Replace the collection's rows of the table clusters instead of printing.",
)
@parquet_option("the pages of clusters to this file instead of stdout")
@collection_option
@dsn_option
def clusters(
    distance: int | None,
    linkage: Linkage,
    canonical: tuple[str, ...],
    save: bool,
    parquet: str | None,
    collection: str,
    dsn: str | None,
) -> None:
    """Group the near-duplicates of a collection, a JSON line for each cluster."""
    if save and parquet:
        raise click.UsageError("give --save or --parquet, not both")
    console = people()
    with (
        connect(dsn, collection=collection, create=False) as store,
        progress_bar(
            console, "clusters", pages=False, prints=not save and parquet is None
        ) as progress,
    ):
        if save:
            count = store.save_clusters(
                distance, linkage=linkage, canonical=canonical, progress=progress
            )
            console.print(f"{count:,} clusters saved")
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
