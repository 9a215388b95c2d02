-- collection --
SELECT
    c.collection_id, c.name, c.scheme, pgsimhash.layout(), c.default_distance, c.keep_markdown,
    c.normalize_urls
FROM pgsimhash.collections AS c
WHERE c.name = %(name)s

-- collection_to_write --
SELECT * FROM pgsimhash._collection_to_write(
    %(name)s::text, %(lock_timeout)s::text, %(otherwise)s::text, %(statement_timeout)s::text,
    %(statement_otherwise)s::text
)

-- bound_statements --
SELECT pg_catalog.set_config('statement_timeout', %(statement_timeout)s::text, true)

-- bound_waits --
-- Without the schema, which may not exist yet; otherwise collection_to_write does this. A writer
-- that stops within a transaction of the store is terminated, because others wait for its locks.
SELECT pg_catalog.set_config(
    'lock_timeout',
    coalesce(
        %(lock_timeout)s::text, nullif(pg_catalog.current_setting('lock_timeout'), '0'),
        %(otherwise)s::text
    ),
    true
), pg_catalog.set_config(
    'idle_in_transaction_session_timeout',
    coalesce(
        nullif(pg_catalog.current_setting('idle_in_transaction_session_timeout'), '0'),
        %(otherwise)s::text
    ),
    true
)

-- collection_there --
SELECT FROM pgsimhash.collections WHERE collection_id = %(collection_id)s

-- create_collection --
INSERT INTO pgsimhash.collections (
    name, scheme, default_distance, keep_markdown, normalize_urls
)
VALUES (%(name)s, %(scheme)s, %(distance)s, %(keep_markdown)s, %(normalize_urls)s)
ON CONFLICT DO NOTHING

-- collection_names --
SELECT name FROM pgsimhash.collections ORDER BY name

-- lock_collections --
SELECT pgsimhash._lock_collections(%(collection_ids)s::integer[], %(loaders)s::boolean)

-- rename_collection --
SELECT pgsimhash.rename_collection(%(old)s::text, %(new)s::text, %(swap)s::boolean)

-- status --
SELECT
    c.name AS collection, c.scheme, pgsimhash.layout(), c.default_distance, c.normalize_urls, p.pages, p.urls,
    p.duplicates, p.duplicate_bytes, p.simhashes, p.estimated, b.schema_bytes, w.last_write,
    -- least() and greatest() ignore NULL.
    CASE
        WHEN w.last_write IS NOT NULL THEN greatest(pg_catalog.now() - w.last_write, interval '0')
    END AS last_write_age
FROM pgsimhash.collections AS c
CROSS JOIN LATERAL pgsimhash._count_collection(c.collection_id) AS p
CROSS JOIN pgsimhash._schema_bytes() AS b (schema_bytes)
CROSS JOIN LATERAL (
    SELECT greatest(
        p.last_fetched,
        p.last_seen,
        (SELECT pg_catalog.max(r.finished_at) FROM pgsimhash.runs AS r
        WHERE r.collection_id = c.collection_id)
    ) AS last_write
) AS w
WHERE %(collection)s::text IS NULL OR c.name = %(collection)s
ORDER BY c.name

-- delete_rows --
DELETE FROM {table} WHERE collection_id = %(collection_id)s

-- set_collection --
UPDATE pgsimhash.collections
SET default_distance = coalesce(%(distance)s::smallint, default_distance),
    keep_markdown = coalesce(%(keep_markdown)s::boolean, keep_markdown)
WHERE collection_id = %(collection_id)s

-- layout --
SELECT pgsimhash.layout()
