"""The tables of collections: layouts, collections, simhashes, pages, runs, sources, and more."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from pgsimhash.db.statements import prefix_expression
from pgsimhash.hashing.bits import NEAR_MAX
from pgsimhash.search.layout import COLLECTION_MAX, DEFAULT_LAYOUT, Layout
from pgsimhash.sqlalchemy.simhash_type import SIMHASH
from pgsimhash.sqlalchemy.table_schema import metadata

layouts = Table(
    "layouts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("suffix", Text, nullable=False),
    Column("indexed", Boolean, nullable=False),
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
