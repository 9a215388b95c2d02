"""The store's view of boilerplate: learnt from a collection, saved for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from psycopg.rows import tuple_row

from pgsimhash.boilerplate import (
    PAGES_MIN,
    SHARE,
    Boilerplate,
    base_name,
    learn,
    without_boilerplate,
)
from pgsimhash.errors import CollectionError
from pgsimhash.page.plain import plain_text
from pgsimhash.schemes import Scheme, register_scheme
from pgsimhash.statements import query
from pgsimhash.store import boilerplates
from pgsimhash.store.boilerplates import SavedBoilerplate
from pgsimhash.store.part import Part

_ROWS: Final = 500
"""How many texts the server sends at a time."""


def _unheard(pages: int) -> None:
    pass


class Learning(Part):
    """Boilerplate; see :mod:`pgsimhash.boilerplate`. What is saved is of the whole database."""

    def learn_boilerplate(
        self,
        *,
        share: float = SHARE,
        pages_min: int = PAGES_MIN,
        progress: Callable[[int], None] = _unheard,
    ) -> Boilerplate:
        """Return the paragraphs that stand on more than ``share`` of the pages of their host.

        Learnt from the Markdown of the present versions that the collection keeps, host by
        host, so that memory is bounded; the same pages in the same order give the same. In one
        transaction, beside writers.

        Args:
            share: above 0.02 and below 1.
            pages_min: hosts with fewer pages are left out.
            progress: told how many pages are read so far.

        Raises:
            BoilerplateError: ``share`` is outside its range.
            CollectionError: the collection keeps no Markdown.
            StoreError: the database does not answer.
        """
        if not self._collection.keep_markdown:
            raise CollectionError(
                f"collection {self._collection.name!r} keeps no Markdown to learn from; learn from "
                "files, or ingest into a collection made with keep_markdown=True "
                "(pgsimhash collection create NAME --keep-markdown)"
            )
        return learn(self._kept_texts(progress), share=share, pages_min=pages_min, by_host=True)

    def _kept_texts(self, progress: Callable[[int], None]) -> Iterator[tuple[str, str]]:
        with (
            self._session.transaction() as connection,
            connection.cursor(name="pgsimhash_kept_texts", row_factory=tuple_row) as rows,
        ):
            rows.itersize = _ROWS
            rows.execute(query("kept_texts"), {"collection_id": self._collection.collection_id})
            for read, (url, markdown) in enumerate(rows, 1):
                yield url, plain_text(markdown)
                progress(read)

    def save_boilerplate(self, boilerplate: Boilerplate, scheme: str | Scheme | None = None) -> str:
        """Keep ``boilerplate`` in the database and return the name of the scheme without it.

        Under that name collections can be created and opened in every process. Saving it again
        changes nothing.

        Args:
            boilerplate: what to keep.
            scheme: what it is to be left out of; by default the collection's scheme, without
                what that leaves out itself.

        Raises:
            SchemeError: there is no such scheme.
            BoilerplateError: its version stands for another boilerplate there.
            StoreError: the database does not answer.
        """
        with self._session.transaction() as connection:
            base = boilerplates.find_scheme(
                connection, scheme or base_name(self._collection.scheme)
            )
            boilerplates.save(connection, boilerplate, base.name)
        return register_scheme(without_boilerplate(boilerplate, base)).name

    def boilerplates(self) -> list[SavedBoilerplate]:
        """Return what is saved in the database, the oldest first.

        Raises:
            StoreError: the database does not answer.
        """
        with self._session.read() as connection:
            return boilerplates.saved(connection)

    def load_boilerplate(self, version: str) -> Boilerplate:
        """Return one that is saved in the database.

        Raises:
            BoilerplateError: there is none of that version, or its rows were changed.
            StoreError: the database does not answer.
        """
        with self._session.read() as connection:
            return boilerplates.load_known(connection, version)

    def delete_boilerplate(self, version: str) -> None:
        """Delete one from the database.

        Raises:
            BoilerplateError: there is none of that version, or a collection or a policy uses it.
            StoreError: the database does not answer.
        """
        with self._session.transaction() as connection:
            boilerplates.delete(connection, version)
