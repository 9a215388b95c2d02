-- For each query simhash the nearest known one; among equals the one whose page came first. A
-- match beyond trusted_distance must have a sketch like the query's, where both have one.
SELECT DISTINCT ON (m.query_number)
    m.query_number, m.distance, p.page_id, p.url
FROM pgsimhash.near_duplicates(
    %(simhashes)s::bigint[], %(distance)s::integer, %(collection)s::text
) AS m
JOIN unnest(%(sketch_high)s::bigint[], %(sketch_low)s::bigint[])
    WITH ORDINALITY AS q (sketch_high, sketch_low, query_number) USING (query_number)
LEFT JOIN LATERAL (
    SELECT page_id, url, sketch_high, sketch_low
    FROM pgsimhash.pages
    WHERE collection_id = %(collection_id)s AND simhash = m.simhash
    ORDER BY page_id
    LIMIT 1
) AS p ON true
WHERE m.distance <= %(trusted_distance)s
    OR pgsimhash.sketch_distance(p.sketch_high, p.sketch_low, q.sketch_high, q.sketch_low)
        > %(sketch_distance)s IS NOT TRUE
ORDER BY m.query_number, m.distance, p.page_id NULLS LAST, m.simhash
