"""Connections for the store, from a DSN, a pool, an engine or a session."""
