"""Rebuild a collection with another scheme or settings, or copy it into another schema."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Unpack

from psycopg.rows import dict_row

from pgsimhash import schemes
from pgsimhash.db.schema_names import in_other_schema, schema_of
from pgsimhash.db.statements import fetch
from pgsimhash.errors import CollectionError, StoreError, invalid_argument
from pgsimhash.pages.policies import MatchOptions, Policy, PolicySettings
from pgsimhash.pages.records import PageFailure, PageRecord, Verdict
from pgsimhash.runtime import no_progress
from pgsimhash.schema.deployed import check_schema
from pgsimhash.store.batches import BATCH_BYTES, BATCH_PAGES
from pgsimhash.store.collection import Collection, find_collection, follow, open_collection
from pgsimhash.store.ingest import Run, add_batch
from pgsimhash.store.lookups import Calls, columns_of, names_of, record_values
from pgsimhash.store.session import Session

if TYPE_CHECKING:
    from pgsimhash.schemes import Scheme

Progress = Callable[[str, int, int], None]
"""Receives the step, the number of finished items, and the total."""

_Version = tuple[dict[str, Any], PageRecord | PageFailure]
"""The ``page_id`` and ``run_id`` of a version, and its record."""


class Rebuilding:
    """The method of a store that rebuilds its collection."""

    _session: Session

    def rebuild(
        self,
        into: str | None = None,
        *,
        into_schema: str | None = None,
        scheme: str | Scheme | None = None,
        keep_markdown: bool | None = None,
        replace: bool = False,
        verdicts: Callable[[Verdict], None] = no_progress,
        progress: Progress = no_progress,
        **options: Unpack[MatchOptions],
    ) -> Collection:
        """Rebuild the collection: all versions arrive again in a new one, which gets its name.

        They keep their order, ids, times and runs, and get new verdicts from the present settings
        and policies, except for ``content`` and ``ignore``, which need the pages. Marks, policies
        and runs are copied. It is one transaction: lookups use the old collection until the commit,
        and an interruption changes nothing. Writers raise ``CollectionError`` (``being_rebuilt``)
        after a few seconds. Returns the new collection.

        Afterwards this store uses the new collection, like all open stores of the same scheme.

        Args:
            into: the new name of the old collection, by default its name with ``-2``; with
                ``into_schema`` the name of the new one, by default the same.
            into_schema: another schema of the database, which may have another layout. The new
                collection is created there; the old one and the store stay as they are.
            scheme: the scheme. It fingerprints the stored Markdown, so it must read pages like the
                present scheme, and only use what Markdown has. Versions without Markdown fail
                (``unreadable``). They are omitted, as are versions that are too short for the
                scheme, and the list of ingested files.
            keep_markdown: whether to store Markdown; by default like the present one.
            replace: whether to delete the old collection afterwards.
            verdicts: receives each new verdict, before the commit.
            progress: receives the step ``pages``.
            options: settings for the verdicts; ``distance`` becomes the new default. If the scheme
                stays, ``min_tokens`` is ignored, because it only concerns new pages.

        Raises:
            ArgumentError: the scheme or an option is invalid, or the scheme needs the pages.
            CollectionError: ``into`` exists; or the scheme differs, and no Markdown is stored.
            StoreError: with ``replace``, the old collection got pages by INSERT meanwhile, or rows
                of yours refer to it: it stays.
            SchemaError: ``into_schema`` is missing, or older or newer than this package.
        """
        session = self._session
        if options.get("content") or options.get("ignore"):
            raise invalid_argument(
                "a rebuild reads Markdown, of which content and ignore select nothing; read the "
                "pages again (reread=True, --reread)"
            )
        name = session.collection.name
        free_name = into or (f"{name}-2" if into_schema is None else name)
        old_name, new_name = (free_name, name) if into_schema is None else (name, free_name)
        with session.calls_to_write() as (connection, opened):
            from_schema = schema_of(connection)
            to_schema = into_schema or from_schema
            with in_other_schema(connection, to_schema):
                check_schema(connection)
                if find_collection(connection, free_name) is not None:
                    raise CollectionError(
                        "taken",
                        f"collection {free_name!r} exists already in the schema {to_schema}; "
                        "delete it, or give another name with into= (--into)",
                    )
            values = {"collection": name, "old_name": old_name, "replaced": replace}
            fetch(connection, "begin_rebuild", values)
            if to_schema != from_schema:
                # In the other schema, its id is that of another collection.
                fetch(connection, "end_rebuild")
            source = follow(connection, dataclasses.replace(opened, name=old_name))
            new_scheme = _new_scheme(source, name, scheme)
            distance = options.get("distance")
            if new_scheme is None:
                distance = source.default_distance if distance is None else distance
                options["min_tokens"] = 1
            default = schemes.get_scheme(schemes.DEFAULT_NAME)
            with in_other_schema(connection, to_schema):
                target = open_collection(
                    connection,
                    new_name,
                    create=True,
                    # Simhashes from elsewhere can have the name of any scheme.
                    scheme=new_scheme or dataclasses.replace(default, name=source.scheme),
                    distance=distance,
                    keep_markdown=source.keep_markdown if keep_markdown is None else keep_markdown,
                    normalize_urls=source.normalize_urls,
                )
                ids = {"source_id": source.collection_id, "own_id": target.collection_id}
                scope: dict[str, Any] = {"from_schema": from_schema, **ids}
                # What verdicts depend on, and the runs.
                tables = ["policies", "marks", "redirects", "runs", "sightings"]
                tables += [] if new_scheme else ["sources"]
                fetch(connection, "copy_rows", {**scope, "tables": tables})
            copied = 0
            markdown = target.keep_markdown or bool(new_scheme)
            for versions in _versions(Calls(connection, source), new_scheme, markdown, progress):
                with in_other_schema(connection, to_schema):
                    decided = list(_decided(Calls(connection, target), options, versions))
                for verdict in decided:
                    verdicts(verdict)
                copied += len(versions)
            with in_other_schema(connection, to_schema):
                fetch(connection, "copy_rows", {**scope, "tables": ["last_seen"]})
                target = follow(connection, target)  # now with its policies
            fetch(connection, "end_rebuild")
        if into_schema is None:
            session.collection = target
        if replace:
            # In a separate transaction, because other tables may refer to the old pages.
            try:
                with session.calls_to_write() as (connection, _):
                    old = Calls(connection, open_collection(connection, old_name, create=False))
                    inserted = old.delete_collection() - copied
                    if inserted > 0:
                        what = "1 page was" if inserted == 1 else f"{inserted} pages were"
                        fix = f"{what} inserted during the rebuild; add them to {target.name!r}"
                        raise StoreError("refused", fix)
            except StoreError as error:
                left = f"the old collection, now {old_name!r}, is not deleted"
                raise StoreError(error.reason, f"{error}; {left}") from error
        return target


def _new_scheme(source: Collection, name: str, scheme: str | Scheme | None) -> Scheme | None:
    """Return the scheme that pages are fingerprinted by, None if simhashes stay."""
    recipe = None if scheme is None else schemes.get_scheme(scheme)
    if recipe is None or recipe.name == source.scheme:
        return None
    if recipe.extract != schemes.get_scheme(source.scheme).extract:
        raise invalid_argument(
            f"scheme {recipe.name!r} cannot use the Markdown of {source.scheme!r}: it reads pages "
            "differently; ingest the pages into another collection"
        )
    if not source.keep_markdown:
        raise CollectionError(
            "other_settings",
            f"collection {name!r} stores no Markdown, so another scheme needs the pages: ingest "
            f"them into a new collection, such as {name}-2, and swap the names by a rename",
        )
    return recipe


def _versions(
    source: Calls, new_scheme: Scheme | None, markdown: bool, progress: Progress
) -> Iterator[list[_Version]]:
    """Yield all versions in batches, fingerprinted by the new scheme."""
    from pgsimhash.reading.kept_markdown import reread

    total = source.count_pages()
    done, last_page = 0, 0
    progress("pages", done, total)
    limits = {"batch": BATCH_PAGES, "bytes": BATCH_BYTES}
    names = [name for name in names_of(PageRecord) if markdown or name != "markdown"]
    columns = ("page_id", "run_id", *columns_of(names))
    while rows := source.fetch(
        "next_versions", dict_row, columns=columns, after_page=last_page, **limits
    ):
        last_page, done = rows[-1]["page_id"], done + len(rows)
        versions: list[_Version] = []
        for row in rows:
            ids = {name: row.pop(name) for name in ("page_id", "run_id")}
            record = PageRecord(**record_values(row))
            versions.append((ids, reread(record, new_scheme) if new_scheme else record))
        yield versions
        progress("pages", done, total)


def _decided(target: Calls, options: MatchOptions, versions: list[_Version]) -> Iterator[Verdict]:
    """Decide about versions as if they arrived now, and store them under their ids."""
    policies = target.records("policies", Policy)
    scopes = [options.get("scope") or policy.scope for policy in (PolicySettings(), *policies)]
    # With other collections, page by page: their pages arrived in between.
    step = 1 if "global" in scopes else len(versions)
    for start in range(0, len(versions), step):
        part = slice(start, start + step)
        ids, items = zip(*versions[part], strict=True)
        verdicts = add_batch(target, items, options, Run(None), ids)
        for own_ids, verdict in zip(ids, verdicts, strict=True):
            if verdict.kind == "unchanged":
                # Equal to the version before it: versions between them were deleted.
                repeated: dict[str, Any] = {"kind": "updated", "reason": "same_text"}
                verdict = dataclasses.replace(verdict, **repeated, page_id=own_ids["page_id"])
            yield verdict
