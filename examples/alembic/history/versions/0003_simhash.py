"""Add a simhash to articles."""

from alembic import op

import pgsimhash.alembic

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    pgsimhash.alembic.add_simhash(op, "articles", layout="22+21+21", indexes=False)


def downgrade() -> None:
    pgsimhash.alembic.drop_simhash(op, "articles", layout="22+21+21")
