-- Page ids are drawn under the collection's lock, so those above a newer one came later.
SELECT page_id, url, simhash, sketch_high, sketch_low
FROM pgsimhash.pages
WHERE collection_id = %(collection_id)s AND page_id > %(newest_page)s
ORDER BY page_id
