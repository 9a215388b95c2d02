-- When versions of one collection were last seen, and which the present versions of their URLs in
-- another are; none where those came later than that.
SELECT s.page_id, t.page_id, s.seen_at
FROM (
    SELECT page_id, seen_at
    FROM pgsimhash.sightings
    WHERE collection_id = %(source_id)s AND page_id > %(after_page)s
    ORDER BY page_id
    LIMIT %(batch)s
) AS s
LEFT JOIN pgsimhash.pages AS p ON p.collection_id = %(source_id)s AND p.page_id = s.page_id
LEFT JOIN LATERAL (
    SELECT n.page_id, n.fetched_at
    FROM pgsimhash.pages AS n
    WHERE n.collection_id = %(collection_id)s AND n.url = p.url
    ORDER BY n.page_id DESC
    LIMIT 1
) AS t ON t.fetched_at <= s.seen_at
ORDER BY s.page_id
