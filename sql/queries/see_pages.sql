-- No column that changes is in an index, so only the first time writes one.
INSERT INTO pgsimhash.sightings AS s (collection_id, page_id, seen_at)
SELECT %(collection_id)s, page_id, pg_catalog.max(coalesce(seen_at, pg_catalog.now()))
FROM unnest(%(page_ids)s::bigint[], %(seen_at)s::timestamptz[]) AS u (page_id, seen_at)
GROUP BY page_id
ORDER BY page_id
ON CONFLICT (collection_id, page_id) DO UPDATE SET seen_at = excluded.seen_at
WHERE s.seen_at < excluded.seen_at
