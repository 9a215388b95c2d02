"""Run the embedded PostgreSQL server of the extra ``embedded``."""
