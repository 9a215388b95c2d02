-- Until the transaction ends; returns the one before.
SELECT
    pg_catalog.current_setting('search_path'),
    pg_catalog.set_config('search_path', %(search_path)s::text, true)
