"""The project's own table."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "articles",
        sa.Column("article_id", sa.BigInteger, primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("articles")
