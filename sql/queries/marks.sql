-- marks --
SELECT url_a AS a, url_b AS b, same, marked_at
FROM pgsimhash.marks
WHERE collection_id = %(collection_id)s
ORDER BY mark_id

-- mark --
SELECT pgsimhash.mark(%(collection)s::text, %(a)s::text, %(b)s::text, %(same)s::boolean)

-- unmark --
SELECT pgsimhash.unmark(%(collection)s::text, %(a)s::text, %(b)s::text)
