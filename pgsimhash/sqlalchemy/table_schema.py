"""The schema that all tables are in; for another, there is SQLAlchemy's schema_translate_map."""

from __future__ import annotations

from sqlalchemy import MetaData

from pgsimhash.db.schema_names import SCHEMA

metadata = MetaData(schema=SCHEMA)
