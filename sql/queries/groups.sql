-- clusters --
-- The present versions of all pages that share a cluster, or else a simhash, with another page. The
-- clusters come as arrays, because a standby has no temporary tables.
SELECT member.cluster, member.page_id, member.url, member.simhash, member.fetched_at, member.title,
    member.features
FROM (
    SELECT
        p.page_id, p.url, p.simhash, p.fetched_at, p.title, p.features,
        coalesce(c.cluster, p.simhash) AS cluster,
        pg_catalog.count(*) OVER (PARTITION BY coalesce(c.cluster, p.simhash)) AS pages
    FROM pgsimhash.pages AS p
    LEFT JOIN ROWS FROM (
        pg_catalog.unnest(%(simhashes)s::bigint[]), pg_catalog.unnest(%(clusters)s::bigint[])
    ) AS c (simhash, cluster) USING (simhash)
    WHERE p.collection_id = %(collection_id)s
        AND NOT EXISTS (
            SELECT FROM pgsimhash.pages AS newer
            WHERE newer.collection_id = p.collection_id
                AND newer.url = p.url
                AND newer.page_id > p.page_id
        )
) AS member
WHERE member.pages > 1
ORDER BY member.cluster, member.page_id

-- first_pages --
-- The first of the present versions with each simhash. BETWEEN requires an order that only one
-- index has.
SELECT q.simhash, p.url, p.title
FROM pg_catalog.unnest(%(simhashes)s::bigint[]) AS q (simhash)
CROSS JOIN LATERAL (
    SELECT k.url, k.title
    FROM pgsimhash.pages AS k
    WHERE k.collection_id = %(collection_id)s
        AND k.simhash BETWEEN q.simhash AND q.simhash
        AND NOT EXISTS (
            SELECT FROM pgsimhash.pages AS newer
            WHERE newer.collection_id = k.collection_id
                AND newer.url = k.url
                AND newer.page_id > k.page_id
        )
    ORDER BY k.simhash, k.page_id
    LIMIT 1
) AS p

-- clear_clusters --
DELETE FROM pgsimhash.clusters WHERE collection_id = %(collection_id)s

-- save_clusters --
-- Without pages that were deleted meanwhile.
INSERT INTO pgsimhash.clusters (collection_id, page_id, cluster, is_canonical)
SELECT p.collection_id, p.page_id, c.cluster, c.is_canonical
FROM ROWS FROM (
    pg_catalog.unnest(%(page_ids)s::bigint[]), pg_catalog.unnest(%(clusters)s::bigint[]),
    pg_catalog.unnest(%(canonical)s::boolean[])
) AS c (page_id, cluster, is_canonical)
JOIN pgsimhash.pages AS p ON p.collection_id = %(collection_id)s AND p.page_id = c.page_id
