-- All versions of a page in the order in which they came.
SELECT url, simhash, fetched_at, title, structure, html_bytes,
    CASE WHEN %(markdown)s THEN markdown END AS markdown
FROM pgsimhash.pages
WHERE collection_id = %(collection_id)s AND url = %(url)s
ORDER BY page_id
