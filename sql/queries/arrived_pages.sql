-- Page ids are drawn under the collection's lock, so those above a newer one came later.
SELECT
    p.page_id, p.url, p.simhash, p.html_digest, p.fetched_at,
    p.collection_id = %(collection_id)s, p.sketch_high, p.sketch_low
FROM unnest(%(collection_ids)s::integer[], %(newest_pages)s::bigint[])
    AS c (collection_id, newest_page)
JOIN pgsimhash.pages AS p
    ON p.collection_id = c.collection_id AND p.page_id > c.newest_page
ORDER BY p.page_id
