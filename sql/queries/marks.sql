SELECT url_a AS a, url_b AS b, same, marked_at
FROM pgsimhash.marks
WHERE collection_id = %(collection_id)s
ORDER BY mark_id
