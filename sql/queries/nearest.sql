-- For each query simhash the nearest known one; among equals the one whose page came first.
SELECT DISTINCT ON (m.query_number)
    m.query_number, m.simhash, m.distance, p.page_id, p.url
FROM pgsimhash.near_duplicates(
    %(simhashes)s::bigint[], %(distance)s::integer, %(collection)s::text
) AS m
LEFT JOIN LATERAL (
    SELECT page_id, url
    FROM pgsimhash.pages
    WHERE collection_id = %(collection_id)s AND simhash = m.simhash
    ORDER BY page_id
    LIMIT 1
) AS p ON true
ORDER BY m.query_number, m.distance, p.page_id NULLS LAST, m.simhash
