"""Deploy the schema pgsimhash."""

from alembic import op

import pgsimhash.alembic

revision = "0001"
down_revision = None


def upgrade() -> None:
    pgsimhash.alembic.upgrade(op, revision="0001")


def downgrade() -> None:
    pgsimhash.alembic.downgrade(op, revision="base")
