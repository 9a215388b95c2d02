"""From what the caller has (a DSN, a pool, an engine, a session) to a connection for one call."""
