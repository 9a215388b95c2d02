"""The schema of all tables; use SQLAlchemy's schema_translate_map for another one."""

from __future__ import annotations

from sqlalchemy import MetaData

from pgsimhash.db.schema_names import SCHEMA

metadata = MetaData(schema=SCHEMA)
