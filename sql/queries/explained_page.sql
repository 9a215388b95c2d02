-- The present version of a page, with what an explanation of a match takes.
SELECT url, simhash, fetched_at, title, structure, sketch_high, sketch_low, markdown
FROM pgsimhash.pages
WHERE collection_id = %(collection_id)s AND url = %(url)s
ORDER BY page_id DESC
LIMIT 1
