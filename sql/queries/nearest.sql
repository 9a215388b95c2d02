-- For each query simhash the nearest known one in some collections; among equals the one whose
-- page came first. The page has to be on the query's host, as young and as new as asked for, and
-- neither marked as different nor found to duplicate one that is. A match beyond trusted_distance must have a sketch like the query's, where both have one.
SELECT DISTINCT ON (m.query_number)
    m.query_number, m.distance,
    CASE WHEN c.collection_id = %(collection_id)s THEN p.page_id END,
    p.url, p.html_digest
FROM unnest(%(collection_ids)s::integer[], %(collections)s::text[]) AS c (collection_id, name)
CROSS JOIN LATERAL pgsimhash.near_duplicates(
    %(simhashes)s::bigint[], %(distance)s::integer, c.name
) AS m
JOIN unnest(
    %(sketch_high)s::bigint[], %(sketch_low)s::bigint[], %(hosts)s::text[],
    %(since)s::timestamptz[], %(oldest)s::bigint[], %(apart)s::jsonb[], %(urls)s::text[]
) WITH ORDINALITY AS q (sketch_high, sketch_low, host, since, oldest, apart, url, query_number)
    USING (query_number)
LEFT JOIN LATERAL (
    SELECT k.page_id, k.url, k.html_digest, k.sketch_high, k.sketch_low
    FROM pgsimhash.pages AS k
    WHERE k.collection_id = c.collection_id
        AND k.simhash = m.simhash
        AND k.page_id >= q.oldest
        AND (q.host IS NULL OR k.host = q.host)
        AND (q.since IS NULL OR k.fetched_at >= q.since)
        AND (
            q.apart IS NULL
            OR k.url = q.url
            OR NOT q.apart ? k.url AND NOT EXISTS (
                SELECT FROM pgsimhash.pages AS o
                WHERE o.collection_id = k.collection_id
                    AND o.page_id = k.duplicate_of
                    AND q.apart ? o.url
            )
        )
    ORDER BY k.page_id
    LIMIT 1
) AS p ON true
WHERE (
        p.page_id IS NOT NULL
        OR (q.host IS NULL AND q.since IS NULL AND q.oldest = 0 AND q.apart IS NULL)
    )
    AND (
        m.distance <= %(trusted_distance)s
        OR pgsimhash.sketch_distance(p.sketch_high, p.sketch_low, q.sketch_high, q.sketch_low)
            > %(sketch_distance)s IS NOT TRUE
    )
ORDER BY m.query_number, m.distance, p.page_id NULLS LAST, m.simhash
