"""Rebuild a collection with another layout, scheme or settings.

It is one transaction: a new collection gets the name, and the pages of the old one arrive in it
again, in their order and with their ids. Others see the old collection until the commit, and an
interrupted rebuild leaves nothing. The lock of the old collection keeps writers out meanwhile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Final, Unpack

import psycopg
from psycopg import sql
from psycopg.rows import dict_row, scalar_row

from pgsimhash.db.schema_names import schema_of
from pgsimhash.db.statements import query
from pgsimhash.errors import CollectionError
from pgsimhash.hashing.bits import from_bigint
from pgsimhash.hashing.signature import from_halves
from pgsimhash.maintenance.removal import delete_collection
from pgsimhash.pages.match_settings import MatchOptions
from pgsimhash.pages.policies import Rules
from pgsimhash.pages.records import PageFailure, PageRecord, Verdict
from pgsimhash.reading.kept_markdown import Rereading
from pgsimhash.runtime.progress import no_progress
from pgsimhash.schemes import Scheme, get_scheme
from pgsimhash.search.layout import COLLECTION_SHIFT, get_layout
from pgsimhash.store import Store
from pgsimhash.store.batches import BATCH_BYTES, BATCH_PAGES, sorted_out
from pgsimhash.store.collection import (
    Collection,
    create_collection,
    find_collection,
    follow,
)
from pgsimhash.store.layouts import deploy_layout
from pgsimhash.store.memory import Memory
from pgsimhash.store.near import nearby
from pgsimhash.store.policies import rules_of, settings_for
from pgsimhash.store.writer import decide, page_columns

Progress = Callable[[str, int, int], None]
"""Receives the step, the number of finished items, and the total."""

_COPIED: Final = ["policies", "marks", "runs"]
"""Tables whose rows are copied unchanged; ``sources`` too, if the scheme stays."""


def rebuild(
    store: Store,
    into: str | None = None,
    *,
    layout: str | None = None,
    scheme: str | Scheme | None = None,
    keep_markdown: bool | None = None,
    replace: bool = False,
    verdicts: Callable[[Verdict], None] = no_progress,
    progress: Progress = no_progress,
    **options: Unpack[MatchOptions],
) -> Collection:
    """Rebuild the collection: all versions arrive again in a new one, which gets its name.

    They keep their order, ids, times and runs, and get new verdicts from the present settings and
    policies. Marks, policies, runs and standalone simhashes are copied. It is one transaction:
    lookups use the old collection until the commit. Writers raise ``CollectionError``
    (``being_rebuilt``) after a few seconds. After an interruption nothing has changed.

    Args:
        store: the store of the collection. Afterwards it uses the new one, like all open stores of
            the same scheme.
        into: the new name of the old collection, by default its name with ``-2``.
        layout: the layout; by default the present one.
        scheme: the scheme. It fingerprints the stored Markdown, so it must read pages like the
            present scheme, and only use what Markdown has. Versions without Markdown fail
            (``no_markdown``). They are omitted, as are versions that are too short for the
            scheme, standalone simhashes, and the list of ingested files.
        keep_markdown: whether to store Markdown; by default like the present one.
        replace: whether to delete the old collection afterwards.
        verdicts: receives each new verdict, before the commit.
        progress: receives the step ``pages``.
        options: settings for the verdicts; ``distance`` becomes the new default. If the scheme
            stays, ``min_tokens`` is ignored, because it only concerns new pages.

    Returns:
        The new collection.

    Raises:
        ArgumentError: the layout, scheme or an option is invalid; the scheme needs the pages, or
            the present one is not registered; or the layout does not support the distance of the
            collection or of a policy.
        CollectionError: ``into`` exists; or the scheme differs and the collection does not store
            Markdown.
    """
    session = store.session
    name, old_name = store.collection, into or f"{store.collection}-2"
    if layout is not None:
        with session.read() as connection:
            deploy_layout(connection, get_layout(layout))
    with session.transaction() as connection:
        follow(connection, store.opened)
        if find_collection(connection, old_name) is not None:
            raise CollectionError(
                "taken",
                f"collection {old_name!r} exists already; delete it (pgsimhash collection delete "
                f"{old_name}), or give another name with into= (--into)",
            )
        connection.execute(
            query("begin_rebuild", connection), {"collection": name, "into": old_name}
        )
        source = follow(connection, dataclasses.replace(store.opened, name=old_name))
        reread = _rereading(source, name, scheme)
        distance = options.get("distance")
        if distance is None and reread is None:
            distance = source.default_distance
        target = create_collection(
            connection,
            name,
            scheme=get_scheme(source.scheme) if reread is None else reread.scheme,
            layout=layout or source.layout,
            distance=distance,
            keep_markdown=source.keep_markdown if keep_markdown is None else keep_markdown,
            normalize_urls=source.normalize_urls,
        )
        copy = _Copy(connection, source, target, reread, rules_of(target, options))
        copy.copy_rows()
        for verdict in copy.decided(session.memory, progress):
            verdicts(verdict)
        copy.copy_what_belongs_to_pages()
        connection.execute(query("end_rebuild", connection))
    session.collection = target
    if replace:
        # In a separate transaction, because other tables may refer to the old pages.
        with session.read() as connection:
            delete_collection(connection, old_name)
    return target


def _rereading(source: Collection, name: str, scheme: str | Scheme | None) -> Rereading | None:
    """Return how another scheme fingerprints pages, None if simhashes stay."""
    recipe = get_scheme(source.scheme if scheme is None else scheme)
    if recipe.name == source.scheme:
        return None
    reread = Rereading(recipe, source.scheme)
    if not source.keep_markdown:
        raise CollectionError(
            "other_settings",
            f"collection {name!r} stores no Markdown, so another scheme needs the pages: "
            f"pgsimhash ingest --collection {name}-2 --scheme {recipe.name} PATH, then "
            f"pgsimhash collection rename {name} {name}-2 --swap",
        )
    return reread


@dataclasses.dataclass(frozen=True, slots=True)
class _Copy:
    """A rebuild in its transaction; ``reread`` is the new scheme, None if simhashes stay."""

    connection: psycopg.Connection[Any]
    source: Collection
    target: Collection
    reread: Rereading | None
    rules: Rules

    @property
    def scope(self) -> dict[str, Any]:
        """The ids of both collections, as statement parameters."""
        return {
            "collection_id": self.target.collection_id,
            "source_id": self.source.collection_id,
        }

    def copy_rows(self) -> None:
        """Copy what verdicts depend on, and the runs.

        Raises:
            ArgumentError: the layout does not support the distance of a policy.
        """
        tables = _COPIED if self.reread else [*_COPIED, "sources"]
        self.connection.execute(
            query("copy_rows", self.connection), {**self.scope, "tables": tables}
        )

    def decided(self, memory: Memory, progress: Progress) -> Iterator[Verdict]:
        """Decide about all versions as if they arrived now, and store them under their ids."""
        with self.connection.cursor(row_factory=scalar_row) as cursor:
            total = cursor.execute(query("count_versions", self.connection), self.scope).fetchone()
        done, last_page = 0, 0
        progress("pages", done, total or 0)
        while versions := self._versions_after(last_page):
            yield from self._decide(versions, memory)
            done, last_page = done + len(versions), versions[-1][0]
            progress("pages", done, total or 0)

    def _versions_after(self, page_id: int) -> list[tuple[int, PageRecord, int | None]]:
        """Return the next versions, each with its id and run."""
        parameters = {
            **self.scope,
            "after_page": page_id,
            "batch": BATCH_PAGES,
            "bytes": BATCH_BYTES,
            "markdown": self.reread is not None or self.target.keep_markdown,
        }
        with self.connection.cursor(row_factory=dict_row, binary=True) as cursor:
            rows = cursor.execute(query("next_versions", self.connection), parameters).fetchall()
        return [_version(row) for row in rows]

    def _decide(
        self, versions: list[tuple[int, PageRecord, int | None]], memory: Memory
    ) -> Iterator[Verdict]:
        settings = settings_for(
            self.connection, self.target, self.rules, [record.url for _, record, _ in versions]
        )
        # With others, page by page: pages of other collections arrived in between.
        step = 1 if any(setting.scope == "global" for setting in settings) else BATCH_PAGES
        for start in range(0, len(versions), step):
            part = versions[start : start + step]
            items = [self._item(record) for _, record, _ in part]
            batch = sorted_out(
                items,
                [
                    setting if self.reread else dataclasses.replace(setting, min_tokens=1)
                    for item, setting in zip(items, settings[start:], strict=False)
                    if isinstance(item, PageRecord)
                ],
            )
            stored = [
                (page_id, run_id)
                for (page_id, _, run_id), item in zip(part, batch.items, strict=True)
                if isinstance(item, PageRecord)
            ]
            if not stored:
                yield from batch.verdicts([])
                continue
            page_ids, run_ids = zip(*stored, strict=True)
            verdicts, _ = decide(
                self.connection,
                self.target,
                batch.records,
                page_columns(self.target, batch.records, batch.settings),
                nearby(self.connection, self.target, batch.records, batch.settings, memory),
                memory,
                page_ids=page_ids,
                run_ids=run_ids,
            )
            yield from batch.verdicts(
                # Equal to the version before it: versions between them were deleted.
                dataclasses.replace(verdict, verdict="updated", reason="same_text", page_id=page_id)
                if verdict.verdict == "unchanged"
                else verdict
                for page_id, verdict in zip(page_ids, verdicts, strict=True)
            )

    def _item(self, record: PageRecord) -> PageRecord | PageFailure:
        return record if self.reread is None else self.reread.reread(record)

    def copy_what_belongs_to_pages(self) -> None:
        """Copy when versions were last seen, and standalone simhashes."""
        self.connection.execute(query("copy_last_seen", self.connection), self.scope)
        if self.reread is not None:
            return
        schema, layout = schema_of(self.connection), get_layout(self.target.layout)
        statement = sql.SQL(query("copy_standalone_simhashes", self.connection)).format(
            source=sql.Identifier(schema, get_layout(self.source.layout).table),
            target=sql.Identifier(schema, layout.table),
            key=sql.Identifier(f"{layout.table}_pkey"),
        )
        borders = {
            "first": self.source.collection_id << COLLECTION_SHIFT,
            "beyond": self.source.collection_id + 1 << COLLECTION_SHIFT,
        }
        self.connection.execute(statement, {**self.scope, **borders})


def _version(row: dict[str, Any]) -> tuple[int, PageRecord, int | None]:
    page_id, run_id = row.pop("page_id"), row.pop("run_id")
    row["signature"] = from_halves(row.pop("signature_high"), row.pop("signature_low"))
    for name in ("simhash", "structure", "text_digest"):
        row[name] = None if row[name] is None else from_bigint(row[name])
    return page_id, PageRecord(**row), run_id
