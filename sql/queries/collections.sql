-- collection --
SELECT collection_id, name, scheme, layout, next_layout, default_distance, keep_markdown
FROM pgsimhash.collections
WHERE name = %(name)s

-- create_collection --
INSERT INTO pgsimhash.collections (name, scheme, layout, default_distance, keep_markdown)
VALUES (%(name)s, %(scheme)s, %(layout)s, %(distance)s, %(keep_markdown)s)
ON CONFLICT DO NOTHING

-- collection_names --
SELECT name FROM pgsimhash.collections ORDER BY name

-- siblings --
SELECT collection_id, name, scheme, layout, next_layout, default_distance, keep_markdown
FROM pgsimhash.collections
WHERE scheme = %(scheme)s
ORDER BY collection_id

-- lock_collections --
SELECT pgsimhash._lock_collections(%(collection_ids)s::integer[])

-- present_collections --
SELECT collection_id, name, scheme, layout, next_layout, default_distance, keep_markdown
FROM pgsimhash.collections
WHERE collection_id = ANY (%(collection_ids)s)
ORDER BY collection_id

-- rename_collection --
SELECT pgsimhash.rename_collection(%(old)s::text, %(new)s::text, %(swap)s::boolean)

-- status --
SELECT
    c.name AS collection,
    c.scheme,
    c.layout,
    c.default_distance,
    p.pages,
    p.urls,
    p.duplicates,
    p.duplicate_bytes,
    pgsimhash.count_simhashes(c.name) AS simhashes
FROM pgsimhash.collections AS c
CROSS JOIN LATERAL (
    SELECT
        pg_catalog.count(*) AS pages,
        pg_catalog.count(DISTINCT url) AS urls,
        pg_catalog.count(*) FILTER (WHERE distance IS NOT NULL) AS duplicates,
        coalesce(pg_catalog.sum(html_bytes) FILTER (WHERE distance IS NOT NULL), 0)::bigint
            AS duplicate_bytes
    FROM pgsimhash.pages
    WHERE collection_id = c.collection_id
) AS p
WHERE %(collection)s::text IS NULL OR c.name = %(collection)s
ORDER BY c.name

-- delete_rows --
DELETE FROM {table} WHERE collection_id = %(collection_id)s

-- set_collection --
UPDATE pgsimhash.collections
SET default_distance = coalesce(%(distance)s::smallint, default_distance),
    keep_markdown = coalesce(%(keep_markdown)s::boolean, keep_markdown)
WHERE collection_id = %(collection_id)s
