"""Deploy the package's schema from your own Alembic history.

In a revision::

    import pgsimhash.alembic

    def upgrade():
        pgsimhash.alembic.upgrade(op, revision="0001")

    def downgrade():
        pgsimhash.alembic.downgrade(op)

Both run on your connection and in your transaction, or write to the script of ``--sql``. The schema
records its own revision, as with ``pgsimhash migrate``; your ``alembic_version`` does not contain
it.

For your own tables there are :func:`add_simhash` and :func:`drop_simhash`, also as the operations
``op.add_simhash`` and ``op.drop_simhash``. Alembic has these operations wherever this package is
installed.
"""

from __future__ import annotations

from pgsimhash.alembic.own_tables import add_simhash, drop_simhash
from pgsimhash.alembic.schema import downgrade, upgrade

__all__ = [
    "add_simhash",
    "downgrade",
    "drop_simhash",
    "upgrade",
]
