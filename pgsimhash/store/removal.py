"""What leaves the store: by age, host, run or URL."""

from __future__ import annotations

from datetime import timedelta

from psycopg.rows import class_row

from pgsimhash.errors import UnknownRunError
from pgsimhash.records import RunRecord
from pgsimhash.statements import query
from pgsimhash.store import forgetting
from pgsimhash.store.forgetting import Forgotten
from pgsimhash.store.part import Part
from pgsimhash.times import check_age


def _unheard(pages: int) -> None:
    pass


class Removal(Part):
    """Forgetting pages, while other writers go on.

    Every method deletes in transactions of a thousand pages, unless the caller is in a
    transaction. Simhashes that no other page has are forgotten too, unless they were added without
    a page as well; pages that were found to duplicate a forgotten one stay, as duplicates of
    nothing. The transaction's isolation level has to be READ COMMITTED, or StoreError says so.
    """

    def expire(
        self,
        older_than: timedelta | None = None,
        *,
        progress: Forgotten = _unheard,
    ) -> int:
        """Forget every version not seen for so long, and return how many there were.

        A version is seen when it comes in, and whenever its URL comes again unchanged.

        Args:
            older_than: versions last seen longer ago than this go; None leaves it to the
                ``expire_after`` of policies, for pages that have one.
            progress: told how many are gone so far.

        Raises:
            InvalidTimeError: ``older_than`` is not more than nothing.
            PolicyError: neither an age nor a policy says when pages expire.
            CollectionError: the collection was renamed since it was opened.
            StoreError: the database does not answer.
        """
        if older_than is not None:
            check_age(older_than)
        return forgetting.expire(self._session, self._collection, older_than, progress)

    def delete(self, url: str) -> int:
        """Forget all versions of the page at ``url`` and return how many there were.

        Raises:
            CollectionError: the collection was renamed since it was opened.
            StoreError: the database does not answer.
        """
        return forgetting.forget(
            self._session, self._collection, "pages_of_url", {"url": url}, _unheard
        )

    def delete_host(self, host: str, *, progress: Forgotten = _unheard) -> int:
        """Forget all pages of a host and return how many versions there were.

        Raises:
            CollectionError: the collection was renamed since it was opened.
            StoreError: the database does not answer.
        """
        scope = {"host": host.lower()}
        return forgetting.forget(self._session, self._collection, "pages_of_host", scope, progress)

    def runs(self) -> list[RunRecord]:
        """Return the runs that added pages, the last one first.

        Raises:
            StoreError: the database does not answer.
        """
        with (
            self._session.read() as connection,
            connection.cursor(row_factory=class_row(RunRecord), binary=True) as cursor,
        ):
            scope = {"collection_id": self._collection.collection_id}
            return cursor.execute(query("runs"), scope).fetchall()

    def delete_run(self, run_id: int, *, progress: Forgotten = _unheard) -> int:
        """Forget what a run added and return how many versions that were.

        URLs go back to the versions before. What the run only saw again stays.

        Raises:
            UnknownRunError: the collection has no such run.
            CollectionError: the collection was renamed since it was opened.
            StoreError: the database does not answer.
        """
        known = [run.run_id for run in self.runs()]
        if run_id not in known:
            raise UnknownRunError(
                f"collection {self._collection.name!r} has no run {run_id}; "
                f"pgsimhash run list --collection {self._collection.name} lists them"
            )
        scope = {"run_id": run_id}
        forgotten = forgetting.forget(
            self._session, self._collection, "pages_of_run", scope, progress
        )
        with self._session.transaction() as connection:
            connection.execute(
                query("delete_run"), {**scope, "collection_id": self._collection.collection_id}
            )
        return forgotten

    def undo(self, *, progress: Forgotten = _unheard) -> tuple[RunRecord, int]:
        """Forget what the last run added; return the run, and how many versions that were.

        Raises:
            UnknownRunError: there is none.
            CollectionError: the collection was renamed since it was opened.
            StoreError: the database does not answer.
        """
        runs = self.runs()
        if not runs:
            raise UnknownRunError(
                f"collection {self._collection.name!r} has no run to undo: nothing was "
                "added, or all of it was undone; pgsimhash status --brief lists the collections"
            )
        return runs[0], self.delete_run(runs[0].run_id, progress=progress)
