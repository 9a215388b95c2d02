"""What a check finds: its reasons, in words, and what is done about each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple


class Reason(NamedTuple):
    """What is the matter, and how it is mended; names in braces are those of ``where``.

    ``mended`` says whether ``repair`` can do that.
    """

    what: str
    how: str
    mended: bool = True


_BUILT_ANEW: Final = (
    "the index is built anew beside writers (REINDEX INDEX CONCURRENTLY); rows are looked at after "
    "that"
)
_VERDICTS_ANEW: Final = "verdicts are given anew by pgsimhash collection rebuild NAME --rejudge"

REASONS: Final[Mapping[str, Reason]] = {
    "index_invalid": Reason("the index {index} was not built to its end", _BUILT_ANEW),
    "index_missing": Reason(
        "the index {index} is missing", "it is built beside writers (CREATE INDEX CONCURRENTLY)"
    ),
    "index_changed": Reason(
        "the index {index} is on something else than the schema says: lookups by it read all rows",
        "DROP INDEX CONCURRENTLY it, and the next repair builds it; rows are looked at after that",
        mended=False,
    ),
    "index_disagrees": Reason(
        "{rows} rows of {table} are not found through the index {index}, as after a change of the "
        "system's collations or a fault of the disk",
        _BUILT_ANEW,
    ),
    "table_missing": Reason(
        "the table {table} is missing",
        "pgsimhash migrate --sql prints how it was created; rows are looked at after that",
        mended=False,
    ),
    "constraint_missing": Reason(
        "the constraint {constraint} is missing",
        "pgsimhash migrate --sql prints how it was created",
        mended=False,
    ),
    "constraint_unchecked": Reason(
        "the constraint {constraint} was not checked for all rows",
        "they are checked (VALIDATE CONSTRAINT)",
    ),
    "trigger_missing": Reason(
        "the trigger {trigger} is missing: what others insert is not found", "it is created"
    ),
    "trigger_disabled": Reason(
        "the trigger {trigger} does not fire: what others insert is not found or not checked",
        "it is enabled",
    ),
    "function_missing": Reason(
        "the function {function} is missing",
        "pgsimhash migrate --sql prints how it was created; rows are looked at after that",
        mended=False,
    ),
    "column_changed": Reason(
        "the server does not fill the column {column} any more",
        "pgsimhash migrate --sql prints how it was created; in place of a prefix, pgsimhash "
        "collection rebuild NAME --layout LAYOUT puts the simhashes into another table",
        mended=False,
    ),
    "sequence_behind": Reason(
        "rows of {table} have numbers up to {largest}, and {sequence} goes on after {drawn}, as "
        "after logical replication: new rows fail or come before older ones",
        "it goes on after the last row (setval)",
    ),
    "prefix_wrong": Reason(
        "the simhash has another {column} than its layout gives, so that lookups miss it",
        "the prefix is computed again",
    ),
    "simhash_missing": Reason(
        "the simhash of the page is not in {table}, so that lookups miss it", "it is added"
    ),
    "simhash_unused": Reason(
        "no page has the simhash, and nobody added it by itself: lookups find it without a page",
        "it is removed",
    ),
    "simhash_astray": Reason(
        "{table} has {simhashes} simhashes of collection number {collection_id}, which has another "
        "layout or is gone; {bare} of them were added by themselves",
        "those of pages are removed; to remove the others: DELETE FROM {table} WHERE collection_id "
        "= {collection_id}",
    ),
    "page_astray": Reason(
        "there are {pages} pages of collection number {collection_id}, which is gone",
        "to remove them: DELETE FROM pages WHERE collection_id = {collection_id}",
        mended=False,
    ),
    "original_missing": Reason(
        "the page duplicates page {duplicate_of}, which is not in the collection",
        "it counts as an original, as where an original is deleted",
    ),
    "original_later": Reason(
        "the page duplicates page {duplicate_of}, which is itself or came later",
        _VERDICTS_ANEW,
        mended=False,
    ),
    "distance_wrong": Reason(
        "the page is said to be {distance} bits from its original, and is {true_distance}",
        "the distance is computed again",
    ),
    "two_originals": Reason(
        "the page counts as an original, and is {distance} bits from the earlier {original}",
        _VERDICTS_ANEW,
        mended=False,
    ),
    "run_unknown": Reason(
        "the page was added by run {run_id}, which is not listed or ends elsewhere: undoing "
        "that leaves the page",
        "the run is listed with the page",
    ),
    "run_miscounted": Reason(
        'run {run_id} ("{run}") says {pages} pages, its verdicts are {counted}, and {there} pages '
        "of it are there of {stored} stored",
        "pages that it did not count are counted as new, and the sum is made anew",
    ),
    "seen_astray": Reason(
        "it says when page {page_id} was seen, and there is none", "the row is removed"
    ),
    "marks_contrary": Reason(
        "marks say that {a} and {b} are different, and that they are the same",
        "take one of them back: pgsimhash mark list, pgsimhash mark remove",
        mended=False,
    ),
    "distance_unanswered": Reason(
        "{holder} asks for distance {distance}, and the layout answers up to {largest}",
        "pgsimhash policy set, or collection set, gives a smaller one; collection rebuild --layout "
        "another layout",
        mended=False,
    ),
}
"""All reasons; ``docs/maintain.md`` has them in a table."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that is not as it has to be.

    Attributes:
        reason: one of the keys of :data:`REASONS`.
        collection: the name of the collection, None for what several share.
        what: the same in words.
        where: the table, page, index and what else tells the place, by name.
        repair: what is done about it, or what is left to do.
        repaired: whether that was done.
    """

    reason: str
    collection: str | None
    what: str
    where: Mapping[str, str | int | None]
    repair: str
    repaired: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**dataclasses.asdict(self), "where": dict(self.where)}


def violation(
    reason: str,
    collection: str | None,
    *,
    repaired: bool = False,
    refused: str | None = None,
    **where: str | int | None,
) -> Violation:
    """Return a violation; ``refused`` is what the server said to its repair."""
    said = REASONS[reason]
    how = said.how.format(**where)
    if refused is not None:
        how = f"the server refuses: {refused}; else {how}"
    return Violation(reason, collection, said.what.format(**where), where, how, repaired)
