-- The newest version of each URL that is known, and when it was first stored.
SELECT
    u.url, p.page_id, p.simhash,
    (
        SELECT min(f.page_id)
        FROM pgsimhash.pages AS f
        WHERE f.collection_id = %(collection_id)s AND f.url = u.url
    )
FROM unnest(%(urls)s::text[]) AS u (url)
CROSS JOIN LATERAL (
    SELECT page_id, simhash
    FROM pgsimhash.pages
    WHERE collection_id = %(collection_id)s AND url = u.url
    ORDER BY page_id DESC
    LIMIT 1
) AS p
