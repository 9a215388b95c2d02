"""Near-duplicate web pages, found exactly, with simhashes kept in PostgreSQL."""
