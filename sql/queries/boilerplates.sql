-- All versions, the oldest first, and the collections whose schemes leave them out.
SELECT
    b.version, b.scheme, h.hosts, h.paragraphs, b.pages, b.saved_at,
    ARRAY(
        SELECT c.name
        FROM pgsimhash.collections AS c
        WHERE b.version = ANY ((pg_catalog.string_to_array(c.scheme, '+'))[2:])
        ORDER BY c.name
    ) AS collections
FROM pgsimhash.boilerplates AS b
CROSS JOIN LATERAL (
    SELECT
        pg_catalog.count(*) AS hosts,
        coalesce(pg_catalog.sum(pg_catalog.cardinality(paragraphs)), 0)::bigint AS paragraphs
    FROM pgsimhash.boilerplate_hosts
    WHERE version = b.version
) AS h
ORDER BY b.saved_at, b.version
