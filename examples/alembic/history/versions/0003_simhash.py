"""Let articles have a simhash that is searched."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade():
    op.add_simhash("articles", "simhash", layout="22+21+21", concurrently=True)


def downgrade():
    op.drop_simhash("articles", "simhash", layout="22+21+21", concurrently=True)
