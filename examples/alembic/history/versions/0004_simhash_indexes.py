"""Index the simhashes of articles while other sessions write."""

from alembic import op

revision = "0004"
down_revision = "0003"

INDEXES = {
    "ix_articles_simhash": ["simhash"],
    "ix_articles_simhash_prefix_63_42": ["simhash_prefix_63_42", "simhash"],
    "ix_articles_simhash_prefix_41_21": ["simhash_prefix_41_21", "simhash"],
    "ix_articles_simhash_prefix_20_0": ["simhash_prefix_20_0", "simhash"],
}


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for name, columns in INDEXES.items():
            op.create_index(
                name, "articles", columns, postgresql_concurrently=True, if_not_exists=True
            )


def downgrade() -> None:
    for name in INDEXES:
        op.drop_index(name, "articles", if_exists=True)
