-- Some of the present versions, the same ones for the same seed.
SELECT p.url, p.simhash
FROM pgsimhash.pages AS p
WHERE p.collection_id = %(collection_id)s
    AND NOT EXISTS (
        SELECT FROM pgsimhash.pages AS newer
        WHERE newer.collection_id = p.collection_id
            AND newer.url = p.url
            AND newer.page_id > p.page_id
    )
ORDER BY pg_catalog.hashint8extended(p.page_id, %(seed)s::bigint), p.page_id
LIMIT %(size)s
