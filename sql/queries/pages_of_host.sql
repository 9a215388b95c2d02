SELECT page_id
FROM pgsimhash.pages
WHERE collection_id = %(collection_id)s AND host = %(host)s
ORDER BY page_id
LIMIT %(batch)s
