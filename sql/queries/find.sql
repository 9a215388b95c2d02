-- Every match with the page that brought it first, of those on the host and since the time asked
-- for. A match beyond trusted_distance must have a sketch like the query's, where both have one.
SELECT m.simhash, m.distance, p.url, p.title
FROM pgsimhash.near_duplicates(
    %(simhash)s::bigint, %(distance)s::integer,
    (SELECT name FROM pgsimhash.collections WHERE collection_id = %(collection_id)s)
) AS m
LEFT JOIN LATERAL (
    SELECT url, title
    FROM pgsimhash.pages
    WHERE collection_id = %(collection_id)s
        AND simhash = m.simhash
        AND (%(host)s::text IS NULL OR host = %(host)s)
        AND (%(since)s::timestamptz IS NULL OR fetched_at >= %(since)s)
        AND (
            m.distance <= %(trusted_distance)s
            OR pgsimhash.sketch_distance(
                sketch_high, sketch_low, %(sketch_high)s::bigint, %(sketch_low)s::bigint
            ) > %(sketch_distance)s IS NOT TRUE
        )
    ORDER BY page_id
    LIMIT 1
) AS p ON true
WHERE p.url IS NOT NULL
    OR %(host)s::text IS NULL AND %(since)s::timestamptz IS NULL
    AND NOT EXISTS (
        SELECT FROM pgsimhash.pages WHERE collection_id = %(collection_id)s AND simhash = m.simhash
    )
ORDER BY m.distance, m.simhash
LIMIT %(limit)s
