-- hold_collection --
SELECT pgsimhash._hold_collection(%(collection)s::text)

-- begin_rebuild --
INSERT INTO pgsimhash.rebuilds (collection_id, source_id, asked)
VALUES (%(collection_id)s, %(source_id)s, %(asked)s)

-- rebuild --
SELECT source_id, asked, last_page FROM pgsimhash.rebuilds WHERE collection_id = %(collection_id)s

-- move_rebuild --
UPDATE pgsimhash.rebuilds
SET last_page = %(last_page)s, updated_at = pg_catalog.now()
WHERE collection_id = %(collection_id)s

-- end_rebuild --
DELETE FROM pgsimhash.rebuilds WHERE collection_id = %(collection_id)s

-- next_pages --
SELECT page_id
FROM pgsimhash.pages
WHERE collection_id = %(source_id)s AND page_id > %(after_page)s
ORDER BY page_id
LIMIT %(batch)s

-- missing_pages --
-- The pages up to the last one that are not in the new collection.
SELECT s.page_id
FROM pgsimhash.rebuilds AS r
JOIN pgsimhash.pages AS s ON s.collection_id = r.source_id AND s.page_id <= r.last_page
WHERE r.collection_id = %(collection_id)s AND NOT EXISTS (
    SELECT FROM pgsimhash.pages AS t
    WHERE t.collection_id = r.collection_id AND t.page_id = s.page_id
)
ORDER BY s.page_id

-- copy_pages --
SELECT pgsimhash._copy_pages(
    %(source_id)s::integer, %(collection_id)s::integer, %(page_ids)s::bigint[],
    %(keep_markdown)s::boolean
)

-- drop_deleted_pages --
SELECT pgsimhash._drop_pages(%(collection_id)s::integer, ARRAY(
    SELECT t.page_id
    FROM pgsimhash.pages AS t
    WHERE t.collection_id = %(collection_id)s AND NOT EXISTS (
        SELECT FROM pgsimhash.pages AS s
        WHERE s.collection_id = %(source_id)s AND s.page_id = t.page_id
    )
))

-- copy_last_seen --
INSERT INTO pgsimhash.last_seen (collection_id, page_id, seen_at)
SELECT %(collection_id)s, s.page_id, s.seen_at
FROM pgsimhash.last_seen AS s
JOIN pgsimhash.pages AS p ON p.collection_id = %(collection_id)s AND p.page_id = s.page_id
WHERE s.collection_id = %(source_id)s AND NOT EXISTS (
    SELECT FROM pgsimhash.last_seen AS t
    WHERE t.collection_id = %(collection_id)s
        AND t.page_id = s.page_id
        AND t.seen_at >= s.seen_at
)
ON CONFLICT (collection_id, page_id) DO UPDATE SET seen_at = excluded.seen_at

-- copy_standalone_simhashes --
-- From a slice of the source's first index: all, or only the missing ones.
SELECT
    pgsimhash._advance_epoch(%(collection_id)s::integer),
    pgsimhash._put_simhashes(%(collection_id)s::integer, o.simhashes, true)
FROM (
    SELECT pg_catalog.array_agg(s.simhash) AS simhashes
    FROM {walked} AS s
    WHERE s.prefix_1 >= %(first)s AND s.prefix_1 < %(beyond)s
        AND s.standalone
        AND (%(all)s OR NOT EXISTS (
            SELECT FROM {other} AS t
            WHERE t.prefix_1 = {prefix}(s.simhash, 1, %(collection_id)s::integer)
                AND t.simhash = s.simhash
                AND t.standalone
        ))
) AS o
WHERE o.simhashes IS NOT NULL

-- drop_standalone_simhashes --
-- Simhashes that were deleted from the source.
SELECT pgsimhash._drop_simhashes(%(collection_id)s::integer, ARRAY(
    SELECT t.simhash
    FROM {walked} AS t
    WHERE t.prefix_1 >= %(first)s AND t.prefix_1 < %(beyond)s
        AND t.standalone
        AND NOT EXISTS (
            SELECT FROM {other} AS s
            WHERE s.prefix_1 = {prefix}(t.simhash, 1, %(source_id)s::integer)
                AND s.simhash = t.simhash
        )
), true)

-- next_page --
-- The next page of some collections, NULL if there is none.
SELECT pg_catalog.min(n.page_id)
FROM pg_catalog.unnest(%(collection_ids)s::integer[]) AS c (collection_id)
CROSS JOIN LATERAL (
    SELECT pg_catalog.min(p.page_id) AS page_id
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = c.collection_id AND p.page_id > %(after_page)s
) AS n

-- policies_beyond --
-- The policies of one collection with a distance that the layout of another does not support.
SELECT
    p.host || CASE p.path WHEN '*' THEN '' ELSE p.path END AS pattern, p.distance, l.name,
    l.largest_distance
FROM pgsimhash.policies AS p
JOIN pgsimhash.collections AS c ON c.collection_id = %(collection_id)s
JOIN pgsimhash.layouts AS l ON l.name = c.layout
WHERE p.collection_id = %(source_id)s AND p.distance > l.largest_distance

-- copy_policies --
INSERT INTO pgsimhash.policies (
    collection_id, host, path, distance, verify, scope, window_size, max_age, canonical_link, max_copies,
    min_tokens, expire_after, set_at
)
SELECT
    %(collection_id)s, host, path, distance, verify, scope, window_size, max_age, canonical_link,
    max_copies, min_tokens, expire_after, set_at
FROM pgsimhash.policies
WHERE collection_id = %(source_id)s
ORDER BY policy_id

-- copy_marks --
INSERT INTO pgsimhash.marks (collection_id, mark_id, url_a, url_b, same, marked_at)
SELECT %(collection_id)s, mark_id, url_a, url_b, same, marked_at
FROM pgsimhash.marks
WHERE collection_id = %(source_id)s

-- copy_runs --
INSERT INTO pgsimhash.runs (
    run_id, collection_id, label, started_at, finished_at, pages, new, duplicates, updated,
    unchanged, first_page, last_page
)
SELECT
    run_id, %(collection_id)s, label, started_at, finished_at, pages, new, duplicates, updated,
    unchanged, first_page, last_page
FROM pgsimhash.runs
WHERE collection_id = %(source_id)s
