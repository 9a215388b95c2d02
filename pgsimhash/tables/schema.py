"""The schema that all tables are in."""

from __future__ import annotations

from typing import Final

from sqlalchemy import MetaData

SCHEMA: Final = "pgsimhash"

metadata = MetaData(schema=SCHEMA)
