"""The tables of marks, policies and the progress of rebuilds."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Interval,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from pgsimhash.sqlalchemy.collection_tables import collections
from pgsimhash.sqlalchemy.table_schema import metadata

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
    Column("set_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("collection_id", "policy_id", name="policies_pkey"),
    UniqueConstraint("collection_id", "host", "path", name="policies_pattern_key"),
)

rebuilds = Table(
    "rebuilds",
    metadata,
    Column("collection_id", Integer, ForeignKey(collections.c.collection_id), nullable=False),
    Column("source_id", Integer, ForeignKey(collections.c.collection_id), nullable=False),
    Column("asked", JSONB, nullable=False),
    Column("last_page", BigInteger, nullable=False, server_default=text("0")),
    Column("started_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("collection_id", name="rebuilds_pkey"),
)
