-- When the versions of a page came and were last met, in the order in which they came.
SELECT p.simhash, p.fetched_at, greatest(p.fetched_at, s.seen_at) AS seen_at
FROM pgsimhash.pages AS p
LEFT JOIN pgsimhash.sightings AS s
    ON s.collection_id = p.collection_id AND s.page_id = p.page_id
WHERE p.collection_id = %(collection_id)s AND p.url = %(url)s
ORDER BY p.page_id
