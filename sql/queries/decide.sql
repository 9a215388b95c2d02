-- ask --
-- All that is known about the pages of a batch, in one round trip: the nearest match of each, the
-- versions and marks of their URLs, and whether there are policies. What counts as the original of
-- another version of a page depends on the version before, which may be in the batch itself.
WITH known AS MATERIALIZED (
    SELECT k.*
    FROM pgsimhash._known_pages(
        %(collection_id)s::integer, %(before_page)s::bigint, %(urls)s::text[]
    ) AS k
)
SELECT
    n.query_number, n.page_id, n.url, n.distance, n.html_digest, n.copies,
    NULL::bigint, NULL::bigint, NULL::bigint, NULL::text[], NULL::text[], NULL::boolean
FROM (
    SELECT
        pg_catalog.array_agg(coalesce(u.version_before, k.simhash) ORDER BY u.query_number)
            AS versions_before,
        pg_catalog.array_agg(k.first_page ORDER BY u.query_number) AS first_pages
    FROM unnest(%(own_urls)s::text[], %(versions_before)s::bigint[])
        WITH ORDINALITY AS u (url, version_before, query_number)
    LEFT JOIN known AS k ON k.url = u.url
) AS own
CROSS JOIN LATERAL pgsimhash._nearest(
    %(collection_id)s::integer, %(collection_ids)s::integer[], %(before_page)s::bigint,
    %(simhashes)s::bigint[], %(sketch_high)s::bigint[], %(sketch_low)s::bigint[],
    %(hosts)s::text[], %(since)s::timestamptz[], %(oldest)s::bigint[],
    %(keep_first)s::integer[], %(own_urls)s::text[], own.versions_before, own.first_pages,
    %(distance)s::integer, %(near_to)s::bigint[], %(near_simhashes)s::bigint[]
) AS n
UNION ALL
SELECT
    NULL, k.page_id, k.url, NULL, NULL, NULL, k.simhash, k.text_digest, k.first_page, k.same,
    k.different, NULL
FROM known AS k
UNION ALL
SELECT
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    EXISTS (SELECT FROM pgsimhash.policies AS p WHERE p.collection_id = %(collection_id)s)

-- known_pages --
SELECT url, page_id, simhash, text_digest, first_page, same, different, NULL::boolean
FROM pgsimhash._known_pages(
    %(collection_id)s::integer, %(before_page)s::bigint, %(urls)s::text[]
)
UNION ALL
SELECT
    NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    EXISTS (SELECT FROM pgsimhash.marks AS m WHERE m.collection_id = %(collection_id)s)

-- newest_pages --
-- The newest page of each collection, 0 where it has none.
SELECT coalesce(
    (
        SELECT pg_catalog.max(p.page_id)
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = c.collection_id
    ),
    0
)
FROM pg_catalog.unnest(%(collection_ids)s::integer[]) WITH ORDINALITY AS c (collection_id, number)
ORDER BY c.number

-- arrived_simhashes --
-- What who remembers the simhashes of a collection up to a page has to hear: whether some came in
-- another way than page by page, the newest page, and the simhashes of those that came since.
SELECT
    (
        SELECT coalesce(pg_catalog.sum(l.mark), 0)
        FROM pgsimhash.loads AS l
        WHERE l.collection_id IS NULL OR l.collection_id = %(collection_id)s
    ),
    (
        SELECT coalesce(pg_catalog.max(p.page_id), 0)
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = %(collection_id)s
    ),
    (
        SELECT pg_catalog.string_agg(pg_catalog.int8send(p.simhash), '')
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = %(collection_id)s AND p.page_id > %(newest_page)s
    )

-- arrived_pages --
-- Page ids are drawn under the collection's lock, so those above a newer one came later. The original
-- is no join: before the first ANALYZE the planner would hash all pages for it, under the lock.
SELECT
    p.page_id, p.url, p.simhash, p.sketch_high, p.sketch_low, p.html_digest, p.fetched_at,
    p.collection_id = %(collection_id)s,
    (
        SELECT o.url
        FROM pgsimhash.pages AS o
        WHERE o.collection_id = p.collection_id AND o.page_id = p.duplicate_of
    )
FROM pgsimhash.pages AS p
WHERE p.collection_id = %(compared_id)s AND p.page_id > %(newest_page)s
ORDER BY p.page_id

-- window --
SELECT pgsimhash._window(
    %(collection_ids)s::integer[], h.host, %(newest)s::integer, %(before_page)s::bigint
)
FROM pg_catalog.unnest(%(hosts)s::text[]) WITH ORDINALITY AS h (host, number)
ORDER BY h.number
