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
