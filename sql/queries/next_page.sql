-- The next page of some collections, NULL where none is to come.
SELECT pg_catalog.min(n.page_id)
FROM pg_catalog.unnest(%(collection_ids)s::integer[]) AS c (collection_id)
CROSS JOIN LATERAL (
    SELECT pg_catalog.min(p.page_id) AS page_id
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = c.collection_id AND p.page_id > %(after_page)s
) AS n
