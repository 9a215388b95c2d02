-- check_slices --
SELECT 1 + greatest(pgsimhash.count_simhashes(c.name), p.pages) / %(rows)s::bigint
FROM pgsimhash.collections AS c
CROSS JOIN LATERAL (
    SELECT pg_catalog.count(*) AS pages
    FROM pgsimhash.pages AS o
    WHERE o.collection_id = c.collection_id
) AS p
WHERE c.name = %(collection)s::text

-- check_collection --
SELECT v.reason, v.page_id, v.url, v.simhash, v.repair
FROM pgsimhash.check_collection(
    %(collection)s::text, %(repair)s::boolean, %(number)s::integer, %(slices)s::integer
) AS v
