-- Every match with the page that brought it first.
SELECT m.simhash, m.distance, p.url, p.title
FROM pgsimhash.near_duplicates(
    %(simhash)s::bigint, %(distance)s::integer, %(collection)s::text
) AS m
LEFT JOIN LATERAL (
    SELECT url, title
    FROM pgsimhash.pages
    WHERE collection_id = %(collection_id)s AND simhash = m.simhash
    ORDER BY page_id
    LIMIT 1
) AS p ON true
ORDER BY m.distance, m.simhash
