"""The collection that a call uses: look up its simhashes and pages, and read statistics."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import psycopg
from psycopg.rows import RowFactory, class_row, dict_row, scalar_row, tuple_row

from pgsimhash.db.statements import fetch, stream
from pgsimhash.hashing.bits import from_bigint
from pgsimhash.hashing.signature import from_halves
from pgsimhash.pages.records import BITS_64, UNSTORED, CollectionStatus, PageRecord
from pgsimhash.store.collection import Collection, moved

if TYPE_CHECKING:
    import numpy as np
    from _typeshed import DataclassInstance
    from numpy.typing import NDArray

_Record = TypeVar("_Record", bound="DataclassInstance")

SLICES: Final = 64  # of a collection, one statement each; bounds the size of a result


class Calls(NamedTuple):
    """Call functions of the schema over one connection, for one collection."""

    connection: psycopg.Connection[Any]
    collection: Collection

    def fetch(
        self,
        function: str,
        rows: RowFactory[Any] = tuple_row,
        /,
        *,
        columns: tuple[str, ...] = (),
        **parameters: Any,
    ) -> list[Any]:
        """Call a function of the schema, which may take the collection's id, name and scheme."""
        return fetch(self.connection, function, self._scope() | parameters, rows, columns=columns)

    def records(self, function: str, record: type[_Record], /, **parameters: Any) -> list[_Record]:
        """Call a function, and return its rows as objects of a dataclass."""
        rows = self.fetch(function, dict_row, columns=columns_of(names_of(record)), **parameters)
        return [record(**record_values(row)) for row in rows]

    def stream(self, function: str, /, **parameters: Any) -> Generator[Any]:
        """Call a function in a transaction, and yield its rows without loading all of them."""
        return stream(self.connection, function, self._scope() | parameters)

    def _scope(self) -> dict[str, Any]:
        row = self.collection
        return {"own_id": row.collection_id, "collection": row.name, "scheme": row.scheme}

    def simhash_slices(self) -> Iterator[NDArray[np.uint64]]:
        """Yield all distinct simhashes, ascending, in slices."""
        import numpy as np

        for number in range(SLICES):
            # The database orders signed numbers: the lower half of simhashes follows the upper.
            place = (number + SLICES // 2) % SLICES
            (values,) = self.fetch("simhash_slice", scalar_row, number=place, slices=SLICES)
            yield np.frombuffer(values or b"", dtype=">u8").astype(np.uint64)

    def simhashes(self) -> NDArray[np.uint64]:
        """Return all distinct simhashes, ascending."""
        import numpy as np

        return np.concatenate(list(self.simhash_slices()))

    def stored_pages(
        self, urls: Iterable[str], names: Iterable[str], *, versions: int | None = 1
    ) -> list[dict[str, Any]]:
        """Return values of StoredPage, by their names, of the URLs that the collection has.

        They are those of the last ``versions``, None: of all, in the order of their arrival.
        """
        asked: dict[str, Any] = {"urls": list(urls), "versions": versions}
        rows = self.fetch("stored_pages", dict_row, columns=columns_of(names), **asked)
        return list(map(record_values, rows))

    def count_pages(self) -> int:
        """Return the number of versions in the collection, estimated if there are many."""
        return int(self.fetch("count_collection", scalar_row, columns=("pages",))[0])

    def lock(self, *, loaders: bool = False) -> None:
        """Lock the collection against other writers; with ``loaders``, against inserts of SQL too.

        A rebuild that ended during the wait gave the name to another collection.
        """
        (locked,) = self.fetch("_lock_collection", scalar_row, strength=3 if loaders else 2)
        if locked != self.collection.collection_id:
            raise moved(self.collection)

    def delete_collection(self) -> int:
        """Delete the collection, and return the number of versions of pages."""
        self.lock(loaders=True)
        return int(self.fetch("delete_collection")[0][0])


def names_of(record: type[DataclassInstance]) -> list[str]:
    """Return the names of the values of a record that are stored."""
    unstored = UNSTORED if issubclass(record, PageRecord) else ()
    return [each.name for each in fields(record) if each.name not in unstored]


def columns_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that have these values of records."""
    halves = {"signature": ("signature_high", "signature_low")}
    return tuple(column for name in names for column in halves.get(name, (name,)))


def record_values(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of :func:`columns_of` as values of a record."""
    values = dict(row)
    if "signature_high" in values:
        halves = values.pop("signature_high"), values.pop("signature_low")
        values["signature"] = from_halves(*halves)
    for name in ("simhash", *BITS_64):
        if values.get(name) is not None:
            values[name] = from_bigint(values[name])
    return values


def read_status(
    connection: psycopg.Connection[Any], collection: str | None = None
) -> list[CollectionStatus]:
    """Return the statistics of every collection, by name, or of one."""
    return fetch(connection, "status", {"collection": collection}, class_row(CollectionStatus))
