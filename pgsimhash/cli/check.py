"""The command that verifies collections."""

from __future__ import annotations

import click

from pgsimhash import maintenance
from pgsimhash.cli import database
from pgsimhash.cli.options import dsn_option
from pgsimhash.cli.printing import print_json, tell
from pgsimhash.store import connect


@click.command()
@click.option("--collection", help="Only this one; by default all.")
@click.option("--repair", is_flag=True, help="Mend what can be mended without losing anything.")
@click.option(
    "--verdicts",
    is_flag=True,
    help="Also look for near-copies that both count as originals by the present settings: certain"
    " where nothing was deleted and no settings changed.",
)
@dsn_option
@click.pass_context
def check(
    context: click.Context, collection: str | None, repair: bool, verdicts: bool, dsn: str | None
) -> None:
    """Verify collections, and repair them with --repair.

    Prints a JSON line for each thing that is not as it has to be: "reason" is a code, "what" says
    it in words, "where" names the page, index or run, and "repair" what --repair does about it, or
    what is left to do. Writers may go on meanwhile; memory is bounded, and each table is read a few
    times.

    Exit code 1: something is wrong, and was not repaired.
    """
    found = left = 0
    with database.checked_connection(dsn) as connection:
        asked = {"repair": repair, "verdicts": verdicts}
        if collection is None:
            violations = maintenance.check_all(connection, **asked)
        else:
            store = connect(connection, collection=collection, create=False)
            violations = maintenance.check(store, **asked)
        for violation in violations:
            print_json(violation.as_json())
            found += 1
            left += not violation.repaired
    tell(f"{found} found, {found - left} repaired." if found else "Sound: nothing was found.")
    if left:
        context.exit(1)
