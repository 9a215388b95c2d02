"""${message}

Revision ID: ${up_revision}
Revises: ${down_revision | comma,n}
"""

from __future__ import annotations

from alembic.operations import Operations

from pgsimhash.search.layout import Layout

revision: str = ${repr(up_revision)}
down_revision: str | None = ${repr(down_revision)}


def upgrade(op: Operations, schema: str, layout: Layout) -> None:
    ${upgrades if upgrades else "pass"}


def downgrade(op: Operations, schema: str, layout: Layout) -> None:
    ${downgrades if downgrades else "pass"}
