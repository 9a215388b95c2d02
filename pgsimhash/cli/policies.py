"""Commands that set, list and remove policies."""

from __future__ import annotations

from datetime import timedelta
from typing import Unpack

import click

from pgsimhash import maintenance
from pgsimhash.cli.options import (
    DEFAULT_COLLECTION,
    as_age,
    collection_option,
    dsn_option,
    match_options,
)
from pgsimhash.cli.printing import print_json
from pgsimhash.pages.policies import MatchOptions, PolicySettings
from pgsimhash.pages.urls import check_url
from pgsimhash.store import connect


@click.command("set")
@click.argument("pattern", metavar="PATTERN")
@match_options
@click.option(
    "--expire-after",
    metavar="AGE",
    callback=as_age,
    help="Delete versions that were not seen for this long, if expire follows policies.",
)
@click.option(
    "--refetch-after",
    metavar="AGE",
    callback=as_age,
    help="How long after it was last seen should-fetch answers yes again.",
)
@collection_option
@dsn_option
def set_policy(
    pattern: str,
    expire_after: timedelta | None,
    refetch_after: timedelta | None,
    collection: str,
    dsn: str | None,
    **options: Unpack[MatchOptions],
) -> None:
    """Set the policy of a pattern; other settings stay unchanged.

    Prints the policy as a JSON line.
    """
    settings = PolicySettings(**options, expire_after=expire_after, refetch_after=refetch_after)
    create = collection == DEFAULT_COLLECTION
    with connect(dsn, collection=collection, create=create) as store:
        print_json(maintenance.set_policy(store, pattern, settings).as_json())


@click.command("list")
@click.argument("url", metavar="[URL]", required=False)
@collection_option
@dsn_option
def list_policies(url: str | None, collection: str, dsn: str | None) -> None:
    """List the policies as JSON lines, ages in seconds; or the settings of a URL."""
    with connect(dsn, collection=collection, create=False) as store:
        if url is not None:
            print_json({"url": check_url(url), **maintenance.policy_for(store, url).as_json()})
            return
        for policy in maintenance.policies(store):
            print_json(policy.as_json())


@click.command("remove")
@click.argument("pattern", metavar="PATTERN")
@collection_option
@dsn_option
@click.pass_context
def remove(context: click.Context, pattern: str, collection: str, dsn: str | None) -> None:
    """Remove the policy of a pattern; exits with 1 if there is none."""
    with connect(dsn, collection=collection, create=False) as store:
        removed = maintenance.remove_policy(store, pattern)
    print_json({"pattern": pattern, "removed": removed})
    context.exit(0 if removed else 1)
