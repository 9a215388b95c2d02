"""Commands for what people say about pairs of pages."""

from __future__ import annotations

import click

from pgsimhash import maintenance
from pgsimhash.cli.options import collection_option, dsn_option
from pgsimhash.cli.printing import people, print_json
from pgsimhash.store import connect


@click.command("set")
@click.argument("a", metavar="URL")
@click.argument("b", metavar="URL")
@click.option("--same", is_flag=True, help="They are the same.")
@click.option("--different", is_flag=True, help="They are not.")
@collection_option
@dsn_option
def set_mark(a: str, b: str, same: bool, different: bool, collection: str, dsn: str | None) -> None:
    """Mark two pages as the same, or as different, by their URLs, which are known.

    It overrides what their simhashes say, in verdicts and clusters from now on, and holds for
    new versions of the pages.
    """
    if same == different:
        raise click.UsageError("say --same or --different, one of them")
    with connect(dsn, collection=collection, create=False) as store:
        maintenance.mark(store, a, b, same=same)
    people().print(f"Marked as {'same' if same else 'different'}.")


@click.command("remove")
@click.argument("a", metavar="URL")
@click.argument("b", metavar="URL")
@collection_option
@dsn_option
@click.pass_context
def remove(context: click.Context, a: str, b: str, collection: str, dsn: str | None) -> None:
    """Take back the mark of two pages; exits with 1 if there is none."""
    with connect(dsn, collection=collection, create=False) as store:
        removed = maintenance.unmark(store, a, b)
    people().print("Taken back." if removed else "Nothing was said about these two.")
    context.exit(0 if removed else 1)


@click.command("list")
@collection_option
@dsn_option
def list_marks(collection: str, dsn: str | None) -> None:
    """List the marks, a JSON line each."""
    with connect(dsn, collection=collection, create=False) as store:
        for said in maintenance.marks(store):
            print_json(said.as_json())
