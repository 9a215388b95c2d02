"""Boilerplate in the database: saved, listed, loaded and deleted, and the schemes without it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import psycopg
from psycopg.rows import class_row, scalar_row, tuple_row

from pgsimhash.boilerplate import Boilerplate, BoilerplateReader, split_name, without_boilerplate
from pgsimhash.connection import server_words
from pgsimhash.errors import BoilerplateError
from pgsimhash.schemes import Scheme, get_scheme, register_scheme, scheme_names
from pgsimhash.statements import query


@dataclass(frozen=True, slots=True)
class SavedBoilerplate:
    """What the database says about one version.

    Attributes:
        version: eight hex digits.
        scheme: the name of the scheme without it.
        hosts: how many hosts it has.
        paragraphs: how many paragraphs they have together.
        pages: how many pages it was learnt from, 0 where nobody knows.
        saved_at: when.
        collections: the collections that leave it out.
    """

    version: str
    scheme: str
    hosts: int
    paragraphs: int
    pages: int
    saved_at: datetime
    collections: list[str]

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, the time in ISO 8601."""
        return {
            "version": self.version,
            "scheme": self.scheme,
            "hosts": self.hosts,
            "paragraphs": self.paragraphs,
            "pages": self.pages,
            "saved_at": self.saved_at.isoformat(),
            "collections": self.collections,
        }


def save(connection: psycopg.Connection[Any], boilerplate: Boilerplate, base: str) -> None:
    """Keep ``boilerplate``, if it is not there yet; ``connection`` is in a transaction.

    Until that ends, nobody can delete it. What was changed in its rows is put right.

    Args:
        connection: where to keep it.
        boilerplate: what to keep.
        base: the name of the scheme that it is to be left out of.

    Raises:
        BoilerplateError: its version stands for another content there.
    """
    _lock(connection, boilerplate, base)
    try:
        known = load(connection, boilerplate.version)
    except BoilerplateError:
        known = None
    if known == boilerplate:
        return
    with connection.cursor() as cursor:
        cursor.execute(query("clear_boilerplate_hosts"), {"version": boilerplate.version})
        with cursor.copy(query("copy_boilerplate_hosts")) as copy:
            for host, values in sorted(boilerplate.hosts.items()):
                paragraphs = np.fromiter(values, dtype=np.uint64, count=len(values))
                paragraphs.sort()
                copy.write_row((boilerplate.version, host, paragraphs.view(np.int64).tolist()))


def load(connection: psycopg.Connection[Any], version: str) -> Boilerplate | None:
    """Return one version, None where there is none.

    Raises:
        BoilerplateError: its rows are not what was saved.
    """
    with connection.cursor(binary=True, row_factory=tuple_row) as cursor:
        rows = cursor.execute(query("boilerplate"), {"version": version}).fetchall()
    if not rows:
        return None
    digest, pages = rows[0][:2]
    try:
        found = Boilerplate(
            {
                host: frozenset(np.array(paragraphs, dtype=np.int64).view(np.uint64).tolist())
                for _, _, host, paragraphs in rows
                if host is not None
            },
            pages,
        )
    except (TypeError, ValueError):
        found = None
    if found is None or found.digest != digest:
        raise BoilerplateError(
            f"the boilerplate {version} is not what was saved: rows of "
            "pgsimhash.boilerplate_hosts were changed; save it again, with "
            "pgsimhash learn-boilerplate --save or Store.save_boilerplate()"
        )
    return found


def saved(connection: psycopg.Connection[Any]) -> list[SavedBoilerplate]:
    """Return what is there, the oldest first."""
    with connection.cursor(row_factory=class_row(SavedBoilerplate), binary=True) as cursor:
        return cursor.execute(query("boilerplates")).fetchall()


def load_known(connection: psycopg.Connection[Any], version: str) -> Boilerplate:
    """Return one version.

    Raises:
        BoilerplateError: there is none of that version, or its rows are not what was saved.
    """
    found = load(connection, version)
    if found is None:
        raise _unknown(version)
    return found


def delete(connection: psycopg.Connection[Any], version: str) -> None:
    """Delete one version.

    Raises:
        BoilerplateError: there is none of that version, or collections or policies use it,
            which the message names.
    """
    try:
        gone = connection.execute(query("delete_boilerplate"), {"version": version}).rowcount
    except psycopg.errors.ForeignKeyViolation as error:
        raise BoilerplateError(server_words(error)) from error
    if not gone:
        raise _unknown(version)


def find_scheme(connection: psycopg.Connection[Any], scheme: str | Scheme) -> Scheme:
    """Return a scheme by name, and register it if it is one without a saved boilerplate.

    Raises:
        SchemeError: it is neither registered nor saved.
        BoilerplateError: the boilerplate is not what was saved.
    """
    if isinstance(scheme, Scheme):
        return scheme
    register_saved(connection, scheme)
    return get_scheme(scheme)


def register_saved(connection: psycopg.Connection[Any], name: str) -> None:
    """Register the scheme of that name, if it is one without a saved boilerplate.

    Raises:
        BoilerplateError: the boilerplate is not what was saved.
    """
    base, version = split_name(name)
    if name in scheme_names() or version is None:
        return
    register_saved(connection, base)
    if base in scheme_names():
        boilerplate = load(connection, version)
        if boilerplate is not None:
            register_scheme(without_boilerplate(boilerplate, base))


def save_scheme(connection: psycopg.Connection[Any], scheme: Scheme) -> None:
    """Keep what ``scheme`` leaves out, if its name carries the version; see :func:`save`."""
    reader, (base, version) = scheme.extract, split_name(scheme.name)
    while isinstance(reader, BoilerplateReader) and reader.boilerplate.version == version:
        save(connection, reader.boilerplate, base)
        reader, (base, version) = reader.extract, split_name(base)


def _unknown(version: str) -> BoilerplateError:
    return BoilerplateError(
        f"no boilerplate {version!r} is saved in this database; pgsimhash boilerplates lists them"
    )


def _lock(connection: psycopg.Connection[Any], boilerplate: Boilerplate, base: str) -> None:
    values = {
        "version": boilerplate.version,
        "digest": boilerplate.digest,
        "base": base,
        "pages": boilerplate.pages,
    }
    with connection.cursor(row_factory=scalar_row) as cursor:
        digest = None
        while digest is None:  # another process may delete it in between
            cursor.execute(query("add_boilerplate"), values)
            digest = cursor.execute(query("lock_boilerplate"), values).fetchone()
    if digest != boilerplate.digest:
        raise BoilerplateError(
            f"the version {boilerplate.version} stands for another boilerplate in this database; "
            "learn from other pages, or with another share"
        )
