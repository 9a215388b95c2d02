"""Every error pgsimhash raises on purpose: a base, what people catch, and codes for the reasons.

``reason`` is a short stable code for programs, the message is for people and names the fix. Each
class lists all its codes in ``reasons``; the manual's site shows them in tables.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from numbers import Integral, Real
from reprlib import repr as short_repr
from typing import Any, ClassVar, Final

INSTALL: Final = "in an up-to-date clone of pgsimhash: pip install '.{}'"
"""How to install the package, with an extra in the braces.

The first release changes this. Until then anyone can register the name on PyPI.
"""

_Codes = Mapping[str, str]


class PgsimhashError(Exception):
    """Base of all errors of this package.

    Attributes:
        reason: one of the codes in ``reasons``.
    """

    reasons: ClassVar[_Codes] = {}
    """Every code that the class is raised with, and what it means."""

    def __init__(self, reason: str, message: str) -> None:
        # Both, so that errors come back from other processes.
        super().__init__(reason, message)
        self.reason = reason

    def __str__(self) -> str:
        return str(self.args[1])


def install_command(extra: str = "") -> str:
    """Return where and how to install or upgrade the package, with an extra."""
    return INSTALL.format(f"[{extra}]" if extra else "")


class PageError(PgsimhashError, ValueError):
    """One page cannot become a fingerprint; the other pages of a batch go on.

    Verdicts and failures of pages have the same codes.
    """

    reasons: ClassVar[_Codes] = {
        "too_short": "it holds too little text: its simhash would match every other such page",
        "error_page": 'it says that there is none ("page not found"), and next to nothing else',
        "blocked": "it wants a check first: a captcha, JavaScript or cookies",
        "needs_script": "it is a shell that scripts fill in a browser",
        "policy": "it has fewer words than `min_tokens` asks for",
        "too_large": "it is larger than `max_bytes`, or has too many elements",
        "not_html": "the bytes are an image, an archive, a PDF or another binary format",
        "unreadable": "a missing file, a broken record, a bad JSON line",
        "invalid_url": "its URL is not an absolute one, or is too long",
        "invalid_time": "when it was fetched names no zone, is in the future or before 1970",
        "invalid_simhash": "what was given as its simhash is none",
        "no_markdown": "no Markdown was kept of it, and another scheme needs that",
        "unexpected": "an error that no module foresaw; the detail names it",
        "crashed": "the process that read it ended",
        "too_slow": "it took longer to read than `page_seconds`",
        "no_memory": "there is too little memory to read it",
    }


class NotFoundError(PgsimhashError, LookupError):
    """The collection does not have what was asked for by its name or number."""

    reasons: ClassVar[_Codes] = {
        "unknown_page": "it does not know the URL",
        "unknown_run": "it has no run of this number",
        "no_run": "it has no run to undo",
    }


class ArgumentError(PgsimhashError, ValueError):
    """An argument, or a file of them, says what it cannot."""

    reasons: ClassVar[_Codes] = {
        "invalid_type": "an argument has a type that it cannot have; the message says what to give",
        "invalid_simhash": "a value is not a 64-bit simhash",
        "invalid_hash": "a feature's ready hash is not one of 64 bits",
        "invalid_signature": "a value is not a 128-bit signature",
        "invalid_distance": "the layout does not answer the distance, or no level has the name",
        "unknown_layout": "no layout has this name",
        "invalid_layout": "the layout would take too many columns, or too wide ones",
        "invalid_blocks": "so many blocks cannot find pairs within the distance, or not in time",
        "unknown_rule": "no rule for a canonical page has this name",
        "unknown_linkage": "no linkage has this name",
        "unknown_scope": "no scope has this name",
        "invalid_connection": "a store cannot be opened over what was given",
        "invalid_number": "a number is too small or too large",
        "invalid_time": "a time names no zone, is in the future or before 1970",
        "invalid_age": "an age is none, or reaches too far back",
        "invalid_schema": "the tables cannot be in a schema of this name",
        "unknown_revision": "this package has no revision of this name",
        "invalid_role": "a role cannot have this name",
        "unknown_scheme": "no scheme of this name is registered in this process",
        "scheme_taken": "another recipe has the scheme's name",
        "unsendable_scheme": "a part of the scheme cannot be sent to other processes",
        "other_reader": "the scheme reads pages in another way than the one that kept the Markdown",
        "invalid_recipe": "a part of a recipe was given what it cannot use",
        "invalid_weight": "a weight is negative or not finite, or all are too large together",
        "invalid_hint": "a site hint names no host, or its selector is none",
        "invalid_labels": "a file of labelled pairs cannot be used; the message names the lines",
        "invalid_policy": "a policy's pattern or settings are none, or contradict layout or scheme",
        "invalid_file": "a Parquet file cannot be read or written, or holds something else",
        "other_work": "a folder holds pairs of other simhashes, or within another distance",
        "invalid_frame": "a data frame, or a column of it, cannot be used",
        "invalid_setting": "a setting of a crawler is none",
        "no_expiry": "neither an age nor a policy says when pages expire",
        "same_url": "a mark is about two URLs, and both are one",
        "contrary_mark": "other marks say the contrary",
        "no_prefixes": "a column has no prefix columns beside it that a lookup could go by",
        "no_order": "simhashes are compared by size, and have none",
        "invalid_column": "a column's name is too long for those of its prefix columns",
        "mixin_order": "the declarative base stands before the mixin",
        "read_only_class": "a row of ours was to be written by the ORM",
    }


class MissingPackageError(PgsimhashError, ImportError):
    """A package that is an extra of this one is not installed."""

    reasons: ClassVar[_Codes] = {"not_installed": "the message names the extra"}


class StoreError(PgsimhashError):
    """The database, or the connection to it, cannot be used as it is."""

    reasons: ClassVar[_Codes] = {
        "closed": "the connection, the pool or the store is closed",
        "wrong_driver": "SQLAlchemy speaks to the server by another driver than psycopg 3",
        "pool_exhausted": "a pool gave no connection in time: all are in use",
        "old_server": "the server is older than PostgreSQL 14",
        "wrong_encoding": "the database or the connection is not in UTF-8",
        "wrong_strings": "`standard_conforming_strings` is off",
        "wrong_nulls": "`array_nulls` is off, by which NULL is stored as a text",
        "wrong_isolation": "the isolation level is not READ COMMITTED",
        "failed_transaction": "the connection is in a transaction that failed",
        "no_transaction": "the connection is in no transaction, and what is asked takes one",
        "mixed_statements": "a pooler mixes up the prepared statements of its clients",
        "read_only": "the database takes no writes",
        "not_permitted": "the user may not do this",
        "not_migrated": "the database refuses a statement of a migration; the message says why",
        "hidden_rows": "row security may hide rows, without which this would do harm",
        "locked": "someone else held what was waited for, longer than `lock_timeout`",
        "gave_up": "a time-out, a cancelled query, no disk space; what was committed stays",
        "invalid_value": "the database cannot hold a value",
        "unfinished_call": "another call of the store is not done yet",
        "other_schema": "the connection works with another schema",
        "needs_autocommit": "the connection is in a transaction, and many are needed",
        "ended_within_batch": "the caller's transaction ended within a batch",
        "moved": "the collection was replaced or deleted at this moment",
        "invalid_table": "the name is none of a table",
        "table_exists": "the table is there already",
        "other_table": "a table, column or index of the name is there, and is another than wanted",
        "no_such_schema": "the table's schema is not there",
        "partitioned_table": "a partitioned table's indexes cannot be built beside writers",
    }


class NoServerError(StoreError):
    """No PostgreSQL server can be reached; later, or with another DSN, one may be."""

    reasons: ClassVar[_Codes] = {
        "invalid_dsn": "the DSN cannot be read, or is not PostgreSQL's",
        "no_server": "no server answers",
        "login_refused": "the server refuses user or password",
        "no_database": "the server has no such database or user",
        "connection_lost": "the connection was lost; what was committed stays",
        "embedded_missing": "the embedded server is not installed",
        "embedded_folder": "the embedded server cannot have its data, or run, in the folder",
        "embedded_failed": "the embedded server does not start",
        "embedded_open": "others could use the embedded server",
    }


class SchemaError(StoreError):
    """The schema is not the one that this package works with: migrate."""

    reasons: ClassVar[_Codes] = {
        "missing": "the schema is not in the database",
        "older": "the schema is older than this package",
        "newer": "the schema is newer than this package",
        "unversioned": "it has tables and no recorded revision, as a copy without rows",
        "unknown_revision": "this package does not know the revision",
        "other_owner": "the schema, or something in it, belongs to a role that is not trusted",
    }


class CollectionError(StoreError):
    """The collection is not there, or not what it was, or not what the caller takes it for."""

    reasons: ClassVar[_Codes] = {
        "unknown": "no collection has this name",
        "no_name": "the name is empty",
        "other_scheme": "it holds simhashes of another scheme",
        "other_layout": "it has another layout",
        "unknown_layout": "it has a layout that this package does not know",
        "renamed": "it was renamed meanwhile",
        "cannot_rename": "the new name is another collection's or, to swap, none's",
        "being_made": "it, or another one in the layout, is still being made from another one",
        "not_being_made": "someone else finished or deleted it",
        "taken": "it is there already, and was not begun by such a call",
        "layout_distance": "the new layout does not answer a distance that is set",
        "no_markdown": "it keeps no Markdown",
        "other_settings": "it has other settings than asked for",
    }


_OF_WORDS: Final = {int: Integral, float: Real}
"""NumPy's numbers are numbers too."""


def check_type(name: str, value: object, *types: type | None, wanted: str) -> Any:
    """Return an argument, if it is of one of these types, of which None is one.

    Args:
        name: what it is called.
        value: the argument.
        types: what it can be; int and float stand for numbers of any library, without bool.
        wanted: what to give, for people.

    Raises:
        ArgumentError: it is of another type.
    """
    if value is None and None in types:
        return value
    kinds = tuple(_OF_WORDS.get(one, one) for one in types if one is not None)
    if isinstance(value, kinds) and not (isinstance(value, bool) and bool not in types):
        return value
    raise ArgumentError(
        "invalid_type",
        f"{name} cannot be the {type(value).__name__} {short_repr(value)}; give {wanted}",
    )


def check_many(name: str, values: object, wanted: str) -> Any:
    """Return what is iterated over, if it is not a text or a mapping, which a slip makes of it.

    Raises:
        ArgumentError: it is one, or nothing to iterate over.
    """
    if isinstance(values, str | bytes | bytearray | memoryview | Mapping):
        return check_type(name, values, wanted=wanted)
    return check_type(name, values, Iterable, AsyncIterable, wanted=wanted)
