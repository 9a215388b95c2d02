"""Define the package's tables for SQLAlchemy, and the lock of a table of your own."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    DateTime,
    ForeignKey,
    FromClause,
    Identity,
    Index,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Select,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    cast,
    func,
    inspect,
    literal,
    select,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ARRAY

from pgsimhash.db.schema_names import SCHEMA, in_schema
from pgsimhash.db.statements import prefix_expression, schema_comments
from pgsimhash.hashing.bits import NEAR_MAX
from pgsimhash.search.layout import COLLECTION_MAX, DEFAULT_LAYOUT, Layout
from pgsimhash.sqlalchemy.simhash_type import SIMHASH

metadata = MetaData(schema=SCHEMA)

layouts = Table(
    "layouts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("suffix", Text, nullable=False),
    Column("largest_distance", SmallInteger, nullable=False),
    Column("prefix_bits", SmallInteger, nullable=False),
    UniqueConstraint("suffix", name="layouts_suffix_key"),
)

collections = Table(
    "collections",
    metadata,
    Column("collection_id", Integer, Identity(always=True), primary_key=True),
    Column("name", Text, nullable=False),
    Column("scheme", Text, nullable=False),
    Column(
        "layout",
        Text,
        ForeignKey(layouts.c.name),
        nullable=False,
        server_default=DEFAULT_LAYOUT.name,
    ),
    Column(
        "default_distance",
        SmallInteger,
        nullable=False,
        server_default=str(NEAR_MAX),
    ),
    Column("keep_markdown", Boolean, nullable=False, server_default=text("false")),
    Column("normalize_urls", Boolean, nullable=False, server_default=text("false")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    UniqueConstraint("name", name="collections_name_key"),
    CheckConstraint(f"collection_id BETWEEN 1 AND {COLLECTION_MAX}", name="collections_id_fits"),
)


def _simhashes(layout: Layout) -> Table:
    columns = [
        Column(
            permutation.column,
            BigInteger,
            Computed(prefix_expression(permutation), persisted=True),
            nullable=False,
        )
        for permutation in layout.permutations
    ]
    first, *others = layout.permutations
    return Table(
        "simhashes",
        metadata,
        Column("collection_id", Integer, nullable=False),
        Column("standalone", Boolean, nullable=False, server_default=text("true")),
        Column("simhash", SIMHASH(), nullable=False),
        *columns,
        PrimaryKeyConstraint(first.column, "simhash", name="simhashes_pkey"),
        *(Index(f"simhashes_{other.column}_idx", other.column, "simhash") for other in others),
    )


simhashes = _simhashes(DEFAULT_LAYOUT)

pages = Table(
    "pages",
    metadata,
    Column("page_id", BigInteger, Identity(), nullable=False),
    Column("collection_id", Integer, nullable=False),
    Column("url", Text, nullable=False),
    Column(
        "host",
        Text,
        Computed("pgsimhash.host_of(url)", persisted=True),
    ),
    Column("simhash", SIMHASH(), nullable=False),
    Column("fetched_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("run_id", BigInteger),
    Column("title", Text),
    Column("canonical_url", Text),
    Column("language", Text),
    Column("features", Integer),
    Column("tokens", Integer),
    Column("html_bytes", Integer),
    Column("html_digest", LargeBinary),
    Column("text_digest", BigInteger),
    Column("structure", SIMHASH()),
    Column("signature_high", BigInteger),
    Column("signature_low", BigInteger),
    Column("markdown", Text),
    Column("duplicate_of", BigInteger),
    Column("distance", SmallInteger),
    PrimaryKeyConstraint("collection_id", "page_id", name="pages_pkey"),
    Index("pages_url_idx", "collection_id", "url", "page_id"),
    Index("pages_simhash_idx", "collection_id", "simhash", "page_id"),
    Index("pages_host_idx", "collection_id", "host", text("(distance IS NULL)"), "page_id"),
    Index(
        "pages_original_idx",
        "collection_id",
        "page_id",
        postgresql_where=text("distance IS NULL"),
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
    Column("collection_id", Integer, ForeignKey(collections.c.collection_id), nullable=False),
    Column("page_id", BigInteger, nullable=False),
    Column("seen_at", DateTime(timezone=True), nullable=False),
    PrimaryKeyConstraint("collection_id", "page_id", name="last_seen_pkey"),
)

cache_epochs = Table(
    "cache_epochs",
    metadata,
    Column("collection_id", Integer),
    Column(
        "epoch",
        BigInteger,
        nullable=False,
        server_default=text("((random() * 1099511627776))::bigint"),
    ),
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", BigInteger, Identity(), nullable=False),
    Column("collection_id", Integer, ForeignKey(collections.c.collection_id), nullable=False),
    Column("label", Text, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("finished_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    *(
        Column(figure, BigInteger, nullable=False, server_default=text("0"))
        for figure in ("pages", "new", "duplicates", "updated", "unchanged")
    ),
    Column("first_page", BigInteger),
    Column("last_page", BigInteger),
    PrimaryKeyConstraint("collection_id", "run_id", name="runs_pkey"),
)

sources = Table(
    "sources",
    metadata,
    Column("collection_id", Integer, ForeignKey(collections.c.collection_id), nullable=False),
    Column("path", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("modified_ns", BigInteger, nullable=False),
    Column("last_record", BigInteger),
    Column("failed", ARRAY(BigInteger), nullable=False),
    Column("page_id", BigInteger),
    PrimaryKeyConstraint("collection_id", "path", name="sources_pkey"),
)


marks = Table(
    "marks",
    metadata,
    Column("mark_id", BigInteger, Identity(), nullable=False),
    Column("collection_id", Integer, ForeignKey(collections.c.collection_id), nullable=False),
    Column("url_a", Text, nullable=False),
    Column("url_b", Text, nullable=False),
    Column("same", Boolean, nullable=False),
    Column("marked_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("collection_id", "mark_id", name="marks_pkey"),
    Index("marks_url_a_idx", "collection_id", "url_a"),
    Index("marks_url_b_idx", "collection_id", "url_b"),
)

clusters = Table(
    "clusters",
    metadata,
    Column("collection_id", Integer, ForeignKey(collections.c.collection_id), nullable=False),
    Column("page_id", BigInteger, nullable=False),
    Column("cluster", BigInteger, nullable=False),
    Column("is_canonical", Boolean, nullable=False),
    PrimaryKeyConstraint("collection_id", "page_id", name="clusters_pkey"),
)

policies = Table(
    "policies",
    metadata,
    Column("policy_id", BigInteger, Identity(always=True), nullable=False),
    Column("collection_id", Integer, ForeignKey(collections.c.collection_id), nullable=False),
    Column("host", Text, nullable=False),
    Column("path", Text, nullable=False, server_default="*"),
    Column("distance", SmallInteger),
    Column("verify", Boolean),
    Column("scope", Text),
    Column("window_size", Integer),
    Column("max_age", Interval),
    Column("canonical_link", Boolean),
    Column("max_copies", Integer),
    Column("min_tokens", Integer),
    Column("expire_after", Interval),
    Column("refetch_after", Interval),
    Column("set_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("collection_id", "policy_id", name="policies_pkey"),
    UniqueConstraint("collection_id", "host", "path", name="policies_pattern_key"),
)


for (_table, _column), _comment in schema_comments().items():
    _described = metadata.tables[f"{SCHEMA}.{_table}"]
    if _column:
        _described.c[_column].comment = _comment
    else:
        _described.comment = _comment


def metadata_in(schema: str) -> MetaData:
    """Return the metadata of the same tables in another schema."""
    if schema == SCHEMA:
        return metadata
    moved = MetaData(schema=schema)
    for table in metadata.tables.values():
        for column in table.to_metadata(moved, schema=schema).columns:
            if isinstance(column.computed, Computed):
                column.computed.sqltext = text(in_schema(str(column.computed.sqltext), schema))
    return moved


_PG_CLASS: Final = 1259
"""The first key of the lock, the oid of pg_class; the second is the oid of the table."""


def simhash_lock(table: type[Any] | FromClause) -> Select[tuple[Any]]:
    """Return a statement that waits for other transactions that executed it for the same table.

    Execute it before you look for near rows and insert. Otherwise two transactions that do so at
    the same time both find none. The lock is held until the transaction ends and blocks nothing
    else. It needs READ COMMITTED, so that the lookup sees rows that were committed meanwhile.

    Args:
        table: an ORM class or a table of SQLAlchemy Core.
    """
    mapped_table: Any = inspect(table).local_table if isinstance(table, type) else table
    parts = [part for part in (mapped_table.schema, mapped_table.name) if part is not None]
    name = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    number = cast(cast(literal(name, Text), postgresql.REGCLASS), Integer)
    return select(func.pg_catalog.pg_advisory_xact_lock(literal(_PG_CLASS, Integer), number))
