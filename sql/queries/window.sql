-- The oldest of the newest pages of each host in some collections, or of all pages there; 0 where
-- there are fewer.
SELECT coalesce(
    (
        SELECT n.page_id
        FROM pg_catalog.unnest(%(collection_ids)s::integer[]) AS c (collection_id)
        CROSS JOIN LATERAL (
            SELECT p.page_id
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = c.collection_id
                AND p.host = h.host
                AND p.page_id < %(before_page)s
            ORDER BY p.page_id DESC
            LIMIT %(newest)s
        ) AS n
        ORDER BY n.page_id DESC
        OFFSET %(newest)s - 1
        LIMIT 1
    ),
    (
        SELECT n.page_id
        FROM pg_catalog.unnest(%(collection_ids)s::integer[]) AS c (collection_id)
        CROSS JOIN LATERAL (
            SELECT p.page_id
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = c.collection_id
                AND h.host IS NULL
                AND p.page_id < %(before_page)s
            ORDER BY p.page_id DESC
            LIMIT %(newest)s
        ) AS n
        ORDER BY n.page_id DESC
        OFFSET %(newest)s - 1
        LIMIT 1
    ),
    0
)
FROM pg_catalog.unnest(%(hosts)s::text[]) WITH ORDINALITY AS h (host, number)
ORDER BY h.number
