"""Define the package's tables for SQLAlchemy, and the lock of a table of your own."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text, func, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ARRAY

from pgsimhash.db.schema_names import SCHEMA, in_schema
from pgsimhash.db.scripts import prefix_expression, schema_comments
from pgsimhash.hashing.bits import NEAR_MAX
from pgsimhash.search.layout import COLLECTION_MAX, DEFAULT_LAYOUT
from pgsimhash.sqlalchemy.simhash_type import SIMHASH

metadata = sa.MetaData(schema=SCHEMA)


def _needed(name: str, kind: Any, *parts: Any, default: Any = None) -> Column[Any]:
    return Column(name, kind, *parts, nullable=False, server_default=default)


def _time(name: str) -> Column[Any]:
    return _needed(name, sa.DateTime(timezone=True), default=func.now())


def _collection() -> Column[Any]:
    return _needed("collection_id", Integer, sa.ForeignKey(collections.c.collection_id))


collections = Table(
    "collections",
    metadata,
    Column("collection_id", Integer, sa.Identity(always=True), primary_key=True),
    _needed("name", Text),
    _needed("scheme", Text),
    _needed("default_distance", sa.SmallInteger, default=str(NEAR_MAX)),
    _needed("keep_markdown", Boolean, default=text("false")),
    _needed("normalize_urls", Boolean, default=text("false")),
    _time("created_at"),
    sa.UniqueConstraint("name", name="collections_name_key"),
    sa.CheckConstraint(f"collection_id BETWEEN 1 AND {COLLECTION_MAX}", name="collections_id_fits"),
)


pages = Table(
    "pages",
    metadata,
    _needed("page_id", BigInteger, sa.Identity()),
    _collection(),
    _needed("url", Text),
    Column("host", Text, sa.Computed("pgsimhash.host_of(url)", persisted=True)),
    _needed("simhash", SIMHASH()),
    _time("fetched_at"),
    Column("run_id", BigInteger),
    Column("title", Text),
    Column("canonical_url", Text),
    Column("language", Text),
    Column("features", Integer),
    Column("tokens", Integer),
    Column("html_bytes", Integer),
    Column("html_digest", sa.LargeBinary),
    Column("text_digest", BigInteger),
    Column("structure", SIMHASH()),
    Column("signature_high", BigInteger),
    Column("signature_low", BigInteger),
    Column("markdown", Text),
    Column("duplicate_of", BigInteger),
    Column("distance", sa.SmallInteger),
    _needed("indexed", Boolean, default=text("true")),
    *(
        _needed(each.column, BigInteger, sa.Computed(prefix_expression(each), persisted=True))
        for each in DEFAULT_LAYOUT.permutations
    ),
    sa.PrimaryKeyConstraint("collection_id", "page_id", name="pages_pkey"),
    *(
        Index(f"pages_{each.column}_idx", each.column, "simhash", postgresql_where=text("indexed"))
        for each in DEFAULT_LAYOUT.permutations
    ),
    Index("pages_url_idx", "collection_id", "url", "page_id"),
    Index("pages_simhash_idx", "collection_id", "simhash", "page_id"),
    Index("pages_host_idx", "collection_id", "host", text("(distance IS NULL)"), "page_id"),
    Index(
        "pages_original_idx", "collection_id", "page_id", postgresql_where=text("distance IS NULL")
    ),
    Index(
        "pages_duplicate_of_idx",
        "collection_id",
        "duplicate_of",
        postgresql_where=text("duplicate_of IS NOT NULL"),
    ),
)

last_seen = Table(
    "last_seen",
    metadata,
    _collection(),
    _needed("page_id", BigInteger),
    _needed("seen_at", sa.DateTime(timezone=True)),
    sa.PrimaryKeyConstraint("collection_id", "page_id", name="last_seen_pkey"),
)

runs = Table(
    "runs",
    metadata,
    _needed("run_id", BigInteger, sa.Identity()),
    _collection(),
    _needed("label", Text),
    _time("started_at"),
    _time("finished_at"),
    *(
        _needed(figure, BigInteger, default=text("0"))
        for figure in ("pages", "new", "duplicates", "updated", "unchanged")
    ),
    Column("first_page", BigInteger),
    Column("last_page", BigInteger),
    sa.PrimaryKeyConstraint("collection_id", "run_id", name="runs_pkey"),
)

sources = Table(
    "sources",
    metadata,
    _collection(),
    _needed("path", Text),
    _needed("size", BigInteger),
    _needed("modified_ns", BigInteger),
    Column("last_record", BigInteger),
    _needed("failed", ARRAY(BigInteger)),
    Column("page_id", BigInteger),
    sa.PrimaryKeyConstraint("collection_id", "path", name="sources_pkey"),
)


marks = Table(
    "marks",
    metadata,
    _needed("mark_id", BigInteger, sa.Identity()),
    _collection(),
    _needed("url_a", Text),
    _needed("url_b", Text),
    _needed("same", Boolean),
    _time("marked_at"),
    sa.PrimaryKeyConstraint("collection_id", "mark_id", name="marks_pkey"),
    Index("marks_url_a_idx", "collection_id", "url_a"),
    Index("marks_url_b_idx", "collection_id", "url_b"),
)

clusters = Table(
    "clusters",
    metadata,
    _collection(),
    _needed("page_id", BigInteger),
    _needed("cluster", BigInteger),
    _needed("is_canonical", Boolean),
    sa.PrimaryKeyConstraint("collection_id", "page_id", name="clusters_pkey"),
)

policies = Table(
    "policies",
    metadata,
    _needed("policy_id", BigInteger, sa.Identity(always=True)),
    _collection(),
    _needed("host", Text),
    _needed("path", Text, default="*"),
    Column("distance", sa.SmallInteger),
    Column("verify", Boolean),
    Column("scope", Text),
    Column("window_size", Integer),
    Column("max_age", sa.Interval),
    Column("canonical_link", Boolean),
    Column("max_copies", Integer),
    Column("min_tokens", Integer),
    Column("expire_after", sa.Interval),
    Column("refetch_after", sa.Interval),
    _time("set_at"),
    sa.PrimaryKeyConstraint("collection_id", "policy_id", name="policies_pkey"),
    sa.UniqueConstraint("collection_id", "host", "path", name="policies_pattern_key"),
)


for (_table, _column), _comment in schema_comments().items():
    _described = metadata.tables[f"{SCHEMA}.{_table}"]
    if _column:
        _described.c[_column].comment = _comment
    else:
        _described.comment = _comment


def metadata_in(schema: str) -> sa.MetaData:
    """Return the metadata of the same tables in another schema."""
    if schema == SCHEMA:
        return metadata
    moved = sa.MetaData(schema=schema)
    for table in metadata.tables.values():
        for column in table.to_metadata(moved, schema=schema).columns:
            if isinstance(column.computed, sa.Computed):
                column.computed.sqltext = text(in_schema(str(column.computed.sqltext), schema))
    return moved


_PG_CLASS: Final = 1259
"""The first key of the lock, the oid of pg_class; the second is the oid of the table."""


def simhash_lock(table: type[Any] | sa.FromClause) -> sa.Select[tuple[Any]]:
    """Return a statement that waits for other transactions that executed it for the same table.

    Execute it before you look for near rows and insert. Otherwise two transactions that do so at
    the same time both find none. The lock is held until the transaction ends and blocks nothing
    else. It needs READ COMMITTED, so that the lookup sees rows that were committed meanwhile.

    Args:
        table: an ORM class or a table of SQLAlchemy Core.
    """
    mapped_table: Any = sa.inspect(table).local_table if isinstance(table, type) else table
    parts = [part for part in (mapped_table.schema, mapped_table.name) if part is not None]
    name = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    number = sa.cast(sa.cast(sa.literal(name, Text), postgresql.REGCLASS), Integer)
    return sa.select(func.pg_catalog.pg_advisory_xact_lock(sa.literal(_PG_CLASS, Integer), number))
