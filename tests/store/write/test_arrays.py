"""Rows as arrays for the database."""

from __future__ import annotations

import psycopg
import pytest
from pgsimhash.store.arrays import as_columns, as_texts

ODD = ["", "a,b", 'say "so"', "back\\slash", "{}", "NULL", "new\nline", "größe", " spaces "]


@pytest.mark.parametrize("texts", [[], [None], [""], ODD, [None, *ODD, None]])
def test_texts_come_back_as_they_were(
    connection: psycopg.Connection, texts: list[str | None]
) -> None:
    row = connection.execute("SELECT %s::text[]", [as_texts(texts)]).fetchone()
    assert row == (texts,)
    with pytest.raises(psycopg.DataError, match="NUL"):
        connection.execute("SELECT %s::text[]", [as_texts(["a\0b", *texts])])


def test_a_column_without_values_is_none() -> None:
    assert as_columns(("a", "b"), [(1, None), (None, None)]) == {"a": "{1,NULL}", "b": None}
