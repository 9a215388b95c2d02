"""Options for when a page counts as a duplicate."""

from __future__ import annotations

from datetime import timedelta

import click

from pgsimhash.cli.options import Command, distance_option
from pgsimhash.errors import ArgumentError
from pgsimhash.pages.match_settings import NUMBER_MAX, SCOPES
from pgsimhash.pages.times import parse_age


def as_age(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> timedelta | None:
    """Return the age in an option, as its callback."""
    try:
        return None if value is None else parse_age(value)
    except ArgumentError as error:
        raise click.BadParameter(str(error)) from error


def match_options(command: Command) -> Command:
    """Add the options of ``MatchOptions``; None keeps a setting."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_COUNT = click.IntRange(1, NUMBER_MAX)

_OPTIONS = (
    distance_option("the collection's, 8"),
    click.option(
        "--verify/--no-verify",
        default=None,
        show_default="verify",
        help="Whether the signatures of both pages must also agree.",
    ),
    click.option(
        "--scope",
        type=click.Choice(SCOPES),
        show_default="collection",
        help="Compare with the page's host, the collection, or all collections of its scheme.",
    ),
    click.option(
        "--window-size",
        type=_COUNT,
        metavar="N",
        help="Compare only with the last N originals, and with pages that arrived since.",
    ),
    click.option(
        "--max-age",
        metavar="AGE",
        callback=as_age,
        help="Compare only with pages fetched at most this long before: 90d, 12h.",
    ),
    click.option(
        "--canonical-link/--no-canonical-link",
        default=None,
        show_default="no-canonical-link",
        help="Whether the page in rel=canonical, on the same site, is the original.",
    ),
    click.option(
        "--max-copies",
        type=_COUNT,
        metavar="N",
        show_default="1",
        help="How many near-duplicates are worth keeping, including the original.",
    ),
    click.option(
        "--min-tokens",
        type=_COUNT,
        metavar="N",
        show_default="the scheme's, 12",
        help="A page with fewer words is too short.",
    ),
)
