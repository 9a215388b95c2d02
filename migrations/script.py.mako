"""${message}

Revision ID: ${up_revision}
Revises: ${down_revision | comma,n}
"""

from __future__ import annotations

from collections.abc import Sequence

from alembic.operations import Operations

revision: str = ${repr(up_revision)}
down_revision: str | None = ${repr(down_revision)}
branch_labels: str | Sequence[str] | None = ${repr(branch_labels)}
depends_on: str | Sequence[str] | None = ${repr(depends_on)}


def upgrade(op: Operations, schema: str) -> None:
    ${upgrades if upgrades else "pass"}


def downgrade(op: Operations, schema: str) -> None:
    ${downgrades if downgrades else "pass"}
