-- The newest page of each collection, 0 where it has none.
SELECT coalesce(
    (
        SELECT pg_catalog.max(p.page_id)
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = c.collection_id
    ),
    0
)
FROM pg_catalog.unnest(%(collection_ids)s::integer[]) WITH ORDINALITY AS c (collection_id, number)
ORDER BY c.number
