-- begin_task --
-- The task as it is, begun where there is none.
WITH begun AS (
    INSERT INTO pgsimhash.tasks (collection_id, what, terms)
    VALUES (%(collection_id)s, %(what)s, %(terms)s)
    ON CONFLICT (collection_id, what) DO NOTHING
    RETURNING terms, last_page, true AS begun
)
SELECT terms, last_page, begun FROM begun
UNION ALL
SELECT terms, last_page, false
FROM pgsimhash.tasks
WHERE collection_id = %(collection_id)s AND what = %(what)s
LIMIT 1

-- lock_task --
-- Who else works on the task waits, and then goes on after this batch.
SELECT last_page, terms = %(terms)s
FROM pgsimhash.tasks
WHERE collection_id = %(collection_id)s AND what = %(what)s
FOR UPDATE

-- move_task --
UPDATE pgsimhash.tasks
SET terms = %(terms)s, last_page = %(last_page)s, updated_at = pg_catalog.now()
WHERE collection_id = %(collection_id)s AND what = %(what)s

-- end_task --
DELETE FROM pgsimhash.tasks
WHERE collection_id = %(collection_id)s AND what = %(what)s

-- next_page --
-- The next page of some collections, NULL where none is to come.
SELECT pg_catalog.min(n.page_id)
FROM pg_catalog.unnest(%(collection_ids)s::integer[]) AS c (collection_id)
CROSS JOIN LATERAL (
    SELECT pg_catalog.min(p.page_id) AS page_id
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = c.collection_id AND p.page_id > %(after_page)s
) AS n

-- save_verdicts --
-- An original that someone deleted since it was looked up is none.
UPDATE pgsimhash.pages AS p
SET duplicate_of = n.duplicate_of, distance = n.distance
FROM (
    SELECT
        u.page_id, o.page_id AS duplicate_of,
        CASE WHEN u.duplicate_of IS NULL OR o.page_id IS NOT NULL THEN u.distance END AS distance
    FROM unnest(
        %(page_id)s::bigint[], %(duplicate_of)s::bigint[], %(distance)s::smallint[]
    ) AS u (page_id, duplicate_of, distance)
    LEFT JOIN pgsimhash.pages AS o
        ON o.collection_id = %(collection_id)s AND o.page_id = u.duplicate_of
) AS n
WHERE p.collection_id = %(collection_id)s
    AND p.page_id = n.page_id
    AND (p.duplicate_of, p.distance) IS DISTINCT FROM (n.duplicate_of, n.distance)

-- seen_again --
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

-- copy_policies --
INSERT INTO pgsimhash.policies (
    collection_id, host, path, distance, verify, scope, newest, max_age, canonical_link, keep_first,
    min_words, expire_after
)
SELECT
    %(collection_id)s, host, path, pgsimhash._policy_distance(%(collection_id)s, distance), verify,
    scope, newest, max_age, canonical_link, keep_first, min_words, expire_after
FROM pgsimhash.policies
WHERE collection_id = %(source_id)s
ORDER BY policy_id
ON CONFLICT ON CONSTRAINT policies_pattern_key DO NOTHING

-- copy_marks --
SELECT pgsimhash._copy_marks(%(source)s::text, %(collection)s::text)
