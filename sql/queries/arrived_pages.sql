-- Page ids are drawn under the collection's lock, so those above a newer one came later.
SELECT
    p.page_id, p.url, p.simhash, p.sketch_high, p.sketch_low, p.html_digest, p.fetched_at,
    p.collection_id = %(collection_id)s, o.url
FROM pgsimhash.pages AS p
LEFT JOIN pgsimhash.pages AS o
    ON o.collection_id = p.collection_id AND o.page_id = p.duplicate_of
WHERE p.collection_id = %(compared_id)s AND p.page_id > %(newest_page)s
ORDER BY p.page_id
