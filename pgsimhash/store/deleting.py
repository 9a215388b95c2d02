"""Delete pages in bounded batches, so that writers can continue."""

from collections.abc import Callable
from typing import Any, Final

from pgsimhash.errors import check_type
from pgsimhash.pages.records import Deletion
from pgsimhash.store.session import Session

BATCH: Final = 1000  # pages per transaction, which blocks other writers for some tens of ms
Deleted = Callable[[int], None]  # receives the number of pages deleted so far


def delete(
    session: Session, progress: Deleted, function: str = "delete_batch", **pages: Any
) -> Deletion:
    """Delete the pages of a ``url``, of a ``host`` or of the run with a ``run_id``.

    The function ``expire_batch`` deletes versions last seen longer ago than ``older_than``, or than
    policies define.
    """
    check_type(progress, Callable, "progress is a function")
    which = {"url": None, "host": None, "run_id": None, **pages}
    after_page: int | None = 0
    versions = 0
    gone, reverted, promoted = urls = dict[str, None](), dict[str, None](), dict[str, None]()
    while after_page is not None:
        with session.calls_to_write() as calls:
            ((after_page, deleted, *lists),) = calls.fetch(
                function, after_page=after_page, batch=BATCH, **which
            )
        if deleted is not None:
            versions += deleted
            for known, more in zip(urls, lists, strict=True):
                known.update(dict.fromkeys(more))
            progress(versions)
    # A page that one batch reverted or promoted may be deleted by a later batch.
    remaining = ([url for url in known if url not in gone] for known in (reverted, promoted))
    return Deletion(versions, list(gone), *remaining)
