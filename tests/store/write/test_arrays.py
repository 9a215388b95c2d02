"""Rows as arrays for the database."""

from __future__ import annotations

import psycopg
import pytest

from pgsimhash.store.arrays import as_columns, as_texts

ODD = ["", "a,b", 'say "so"', "back\\slash", "{}", "NULL", "new\nline", "größe", " spaces "]


def in_database(connection: psycopg.Connection, array: object) -> list[str | None]:
    row = connection.execute("SELECT %s::text[]", [array]).fetchone()
    assert row is not None
    found: list[str | None] = row[0]
    return found


@pytest.mark.parametrize("texts", [[], [None], [""], ODD, [None, *ODD, None]])
def test_texts_come_back_as_they_were(
    connection: psycopg.Connection, texts: list[str | None]
) -> None:
    assert in_database(connection, as_texts(texts)) == texts


def test_a_text_that_no_database_takes_is_refused(connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.DataError, match="NUL"):
        in_database(connection, as_texts(["a\0b", *ODD]))


def test_a_column_without_values_is_none() -> None:
    assert as_columns(("a", "b"), [(1, None), (None, None)]) == {"a": "{1,NULL}", "b": None}
