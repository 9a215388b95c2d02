"""The service's own tables."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "articles",
        sa.Column("url", sa.Text, primary_key=True),
        sa.Column("page_id", sa.BigInteger, nullable=False, index=True),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("title", sa.Text),
    )
    op.create_table(
        "stories",
        sa.Column("cluster_id", sa.BigInteger),
        sa.Column("page_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("url", sa.Text),
        sa.Column("simhash", sa.BigInteger),
        sa.Column("canonical", sa.Boolean),
    )


def downgrade() -> None:
    op.drop_table("stories")
    op.drop_table("articles")
