"""Changes what holds for a whole collection."""

from __future__ import annotations

from pgsimhash.maintenance.changes import changing
from pgsimhash.statements import query
from pgsimhash.store import Store
from pgsimhash.store.collection import checked_distance, open_collection


def change_settings(
    store: Store, *, distance: int | None = None, keep_markdown: bool | None = None
) -> None:
    """Change what a collection was created with; what is None stays.

    It holds for this store from now on, and for others when they are opened. Verdicts that were
    given stay as they are: :func:`~pgsimhash.maintenance.rejudge` gives them anew.

    Args:
        store: whose collection it is.
        distance: the distance that counts where a call names none.
        keep_markdown: whether pages to come keep their main content.

    Raises:
        ArgumentError: the layout does not answer ``distance``.
        CollectionError: the collection was renamed since it was opened.
        StoreError: the database does not answer.
    """
    if distance is not None:
        checked_distance(store.opened, distance)
    values = {
        "collection_id": store.opened.collection_id,
        "distance": distance,
        "keep_markdown": keep_markdown,
    }
    with changing(store) as connection:
        connection.execute(query("set_collection"), values)
        store.opened = open_collection(connection, store.collection, create=False)
