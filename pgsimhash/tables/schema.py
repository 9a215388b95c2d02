"""The schema that all tables are in."""

from __future__ import annotations

from sqlalchemy import MetaData

from pgsimhash.statements import SCHEMA

metadata = MetaData(schema=SCHEMA)
