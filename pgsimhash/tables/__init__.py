"""The tables as SQLAlchemy sees them, for queries and for Alembic's comparison.

They describe what the migrations made; the migrations do not read them.
"""

from __future__ import annotations

from pgsimhash.tables import decided
from pgsimhash.tables.collected import simhashes
from pgsimhash.tables.schema import metadata

__all__ = ["decided", "metadata", "simhashes"]
