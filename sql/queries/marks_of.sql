-- What is said about some URLs, and about which others.
SELECT m.url_a, m.url_b, m.same
FROM unnest(%(urls)s::text[]) AS u (url)
JOIN pgsimhash.marks AS m ON m.collection_id = %(collection_id)s AND m.url_a = u.url
UNION
SELECT m.url_b, m.url_a, m.same
FROM unnest(%(urls)s::text[]) AS u (url)
JOIN pgsimhash.marks AS m ON m.collection_id = %(collection_id)s AND m.url_b = u.url
ORDER BY 1, 2
