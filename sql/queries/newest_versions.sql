-- The newest versions of a page in the order in which they came.
SELECT url, simhash, fetched_at, title, structure, html_bytes, NULL AS markdown
FROM (
    SELECT page_id, url, simhash, fetched_at, title, structure, html_bytes
    FROM pgsimhash.pages
    WHERE collection_id = %(collection_id)s AND url = %(url)s
    ORDER BY page_id DESC
    LIMIT %(limit)s
) AS newest
ORDER BY page_id
