-- The newest versions of a page in the order in which they came.
SELECT p.url, p.simhash, p.fetched_at, greatest(p.fetched_at, s.seen_at) AS seen_at, p.title,
    p.structure, p.html_bytes, NULL AS markdown
FROM (
    SELECT collection_id, page_id, url, simhash, fetched_at, title, structure, html_bytes
    FROM pgsimhash.pages
    WHERE collection_id = %(collection_id)s AND url = %(url)s
    ORDER BY page_id DESC
    LIMIT %(limit)s
) AS p
LEFT JOIN pgsimhash.sightings AS s
    ON s.collection_id = p.collection_id AND s.page_id = p.page_id
ORDER BY p.page_id
