"""The package inside a project that has an Alembic history of its own.

In a revision of the project's::

    import pgsimhash.alembic

    def upgrade():
        pgsimhash.alembic.upgrade(op, revision="0001")

    def downgrade():
        pgsimhash.alembic.downgrade(op)

runs on the project's connection and in its transaction, or goes into the script that ``--sql``
prints. Which revision the schema is at is recorded in the schema itself, as ``pgsimhash migrate``
does it; the project's own ``alembic_version`` has nothing of it.

For a table of the project's own there are :func:`add_simhash` and :func:`drop_simhash`, which are
the operations ``op.add_simhash`` and ``op.drop_simhash`` as well. Alembic knows these
wherever this package is installed.
"""

from __future__ import annotations

from pgsimhash.alembic.own_tables import AddSimhash, DropSimhash, add_simhash, drop_simhash
from pgsimhash.alembic.plugin import render_item
from pgsimhash.alembic.schema import downgrade, include_name, upgrade

__all__ = [
    "AddSimhash",
    "DropSimhash",
    "add_simhash",
    "downgrade",
    "drop_simhash",
    "include_name",
    "render_item",
    "upgrade",
]
