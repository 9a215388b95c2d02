"""Commands about a whole collection: all pairs of near-copies, and clusters."""

from __future__ import annotations

import click

from pgsimhash import analysis
from pgsimhash.bits import format_simhash
from pgsimhash.cli.options import (
    cluster_options,
    collection_option,
    distance_option,
    dsn_option,
    parquet_option,
)
from pgsimhash.cli.printing import people, print_json
from pgsimhash.cli.work import progress_bar
from pgsimhash.clusters import Linkage
from pgsimhash.store import connect

_table_option = click.option(
    "--table", metavar="NAME", help="Write to a new table (schema.name) instead of stdout."
)


@click.command()
@distance_option("the collection's")
@_table_option
@collection_option
@dsn_option
def pairs(distance: int | None, table: str | None, collection: str, dsn: str | None) -> None:
    """Find all pairs of near-copies in a collection, a JSON line each, in no order."""
    console = people()
    with (
        connect(dsn, collection=collection, create=False) as store,
        progress_bar(console, "pairs", pages=False, prints=table is None) as progress,
    ):
        if table is not None:
            count = analysis.save_pairs(store, table, distance, progress=progress)
            console.print(f"{count:,} pairs in {table}")
            return
        for block in store.pairs(distance, progress=progress):
            for low, high, bits in zip(
                block.low.tolist(), block.high.tolist(), block.distances.tolist(), strict=True
            ):
                print_json({"a": format_simhash(low), "b": format_simhash(high), "distance": bits})


@click.command()
@distance_option("the collection's")
@cluster_options
@_table_option
@parquet_option("the pages of clusters, not to stdout")
@collection_option
@dsn_option
def clusters(
    distance: int | None,
    linkage: Linkage,
    canonical: tuple[str, ...],
    table: str | None,
    parquet: str | None,
    collection: str,
    dsn: str | None,
) -> None:
    """Group the pages of a collection that are near-copies, a JSON line for each cluster."""
    if table and parquet:
        raise click.UsageError("name a table or a Parquet file, not both")
    console = people()
    with (
        connect(dsn, collection=collection, create=False) as store,
        progress_bar(
            console, "clusters", pages=False, prints=(table or parquet) is None
        ) as progress,
    ):
        if table is not None:
            count = analysis.save_clusters(
                store, table, distance, linkage=linkage, canonical=canonical, progress=progress
            )
            console.print(f"{count:,} clusters in {table}")
            return
        found = store.clusters(distance, linkage=linkage, canonical=canonical, progress=progress)
        if parquet is not None:
            from pgsimhash.parquet import write_clusters

            count = write_clusters(parquet, found)
            console.print(f"{count:,} clusters in {parquet}", soft_wrap=True)
            return
        for cluster in found:
            print_json(cluster.as_json())
