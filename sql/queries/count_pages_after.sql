SELECT pg_catalog.count(*)
FROM pgsimhash.pages
WHERE collection_id = %(collection_id)s AND page_id > %(after_page)s
