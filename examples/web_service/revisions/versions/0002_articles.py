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


def downgrade() -> None:
    op.drop_table("articles")
