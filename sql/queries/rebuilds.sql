-- begin_rebuild --
-- As many slices as the table is large, all collections in it; where nobody counted yet, a few.
INSERT INTO pgsimhash.rebuilds (collection_id, source_id, asked, slices)
SELECT
    %(collection_id)s, %(source_id)s, %(asked)s,
    CASE
        WHEN reltuples < 0 THEN 16
        ELSE least(greatest(pg_catalog.ceil(reltuples / %(slice)s), 1), 65536)
    END::integer
FROM pg_catalog.pg_class
WHERE oid = pg_catalog.to_regclass(%(table)s::text)::oid

-- rebuild --
SELECT source_id, asked, last_page, last_slice, slices
FROM pgsimhash.rebuilds
WHERE collection_id = %(collection_id)s

-- move_rebuild --
UPDATE pgsimhash.rebuilds
SET last_page = %(last_page)s, last_slice = %(last_slice)s, updated_at = pg_catalog.now()
WHERE collection_id = %(collection_id)s

-- end_rebuild --
DELETE FROM pgsimhash.rebuilds WHERE collection_id = %(collection_id)s

-- present_pages --
-- Which of some pages are still there.
SELECT page_id
FROM pgsimhash.pages
WHERE collection_id = %(collection_id)s AND page_id = ANY (%(page_ids)s)

-- next_pages --
-- The last of the next so many pages, NULL where there are none.
SELECT pg_catalog.max(page_id)
FROM (
    SELECT page_id
    FROM pgsimhash.pages
    WHERE collection_id = %(collection_id)s AND page_id > %(after_page)s
    ORDER BY page_id
    LIMIT %(batch)s
) AS n

-- copy_pages --
-- Pages as they are, under the same ids.
INSERT INTO pgsimhash.pages (
    collection_id, page_id, url, simhash, fetched_at, run_id, title, canonical_url, language,
    features, tokens, html_bytes, html_digest, text_digest, structure, sketch_high, sketch_low,
    markdown, duplicate_of, distance
)
SELECT
    %(collection_id)s, page_id, url, simhash, fetched_at, run_id, title, canonical_url, language,
    features, tokens, html_bytes, html_digest, text_digest, structure, sketch_high, sketch_low,
    CASE WHEN %(keep_markdown)s THEN markdown END, duplicate_of, distance
FROM pgsimhash.pages
WHERE collection_id = %(source_id)s AND page_id > %(after_page)s AND page_id <= %(last_page)s
ORDER BY page_id

-- copy_last_seen --
INSERT INTO pgsimhash.last_seen (collection_id, page_id, seen_at)
SELECT %(collection_id)s, s.page_id, s.seen_at
FROM pgsimhash.last_seen AS s
JOIN pgsimhash.pages AS p ON p.collection_id = %(collection_id)s AND p.page_id = s.page_id
WHERE s.collection_id = %(source_id)s
    AND s.page_id > %(after_page)s AND s.page_id <= %(last_page)s
ORDER BY s.page_id

-- copy_bare_simhashes --
SELECT pgsimhash._copy_bare_simhashes(
    %(source_id)s::integer, %(collection_id)s::integer, %(number)s::integer, %(slices)s::integer
)

-- next_page --
-- The next page of some collections, NULL where none is to come.
SELECT pg_catalog.min(n.page_id)
FROM pg_catalog.unnest(%(collection_ids)s::integer[]) AS c (collection_id)
CROSS JOIN LATERAL (
    SELECT pg_catalog.min(p.page_id) AS page_id
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = c.collection_id AND p.page_id > %(after_page)s
) AS n

-- policies_beyond --
-- The policies of one collection that ask for more than the layout of another answers.
SELECT
    p.host || CASE p.path WHEN '*' THEN '' ELSE p.path END AS pattern, p.distance, l.name,
    l.largest_distance
FROM pgsimhash.policies AS p
JOIN pgsimhash.collections AS c ON c.collection_id = %(collection_id)s
JOIN pgsimhash.layouts AS l ON l.name = c.layout
WHERE p.collection_id = %(source_id)s AND p.distance > l.largest_distance

-- copy_policies --
INSERT INTO pgsimhash.policies (
    collection_id, host, path, distance, verify, scope, newest, max_age, canonical_link, keep_first,
    min_tokens, expire_after, set_at
)
SELECT
    %(collection_id)s, host, path, distance, verify, scope, newest, max_age, canonical_link,
    keep_first, min_tokens, expire_after, set_at
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
    run_id, collection_id, what, started_at, finished_at, pages, new, duplicates, updated,
    unchanged, first_page, last_page
)
SELECT
    run_id, %(collection_id)s, what, started_at, finished_at, pages, new, duplicates, updated,
    unchanged, first_page, last_page
FROM pgsimhash.runs
WHERE collection_id = %(source_id)s
