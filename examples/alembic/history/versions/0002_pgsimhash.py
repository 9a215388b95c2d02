"""Deploy the schema pgsimhash."""

from alembic import op

import pgsimhash.alembic

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    pgsimhash.alembic.upgrade(op, revision="0001")


def downgrade() -> None:
    pgsimhash.alembic.downgrade(op, revision="base")
