-- runs --
SELECT run_id, label, started_at, finished_at, pages, new, duplicates, updated, unchanged
FROM pgsimhash.runs
WHERE collection_id = %(collection_id)s
ORDER BY run_id DESC

-- pages_of_url --
SELECT page_id
FROM pgsimhash.pages
WHERE collection_id = %(collection_id)s AND url = %(url)s
ORDER BY page_id
LIMIT %(batch)s

-- pages_of_host --
-- In the order of the index.
SELECT page_id
FROM pgsimhash.pages
WHERE collection_id = %(collection_id)s AND host = %(host)s
ORDER BY distance IS NULL, page_id
LIMIT %(batch)s

-- pages_of_run --
-- By ids, from the end of the last batch, so that nothing is read twice.
SELECT p.page_id
FROM pgsimhash.runs AS r
CROSS JOIN LATERAL (
    SELECT o.page_id
    FROM pgsimhash.pages AS o
    WHERE o.collection_id = r.collection_id
        AND o.page_id BETWEEN greatest(r.first_page, %(after_page)s + 1) AND r.last_page
        AND o.run_id = r.run_id
    ORDER BY o.collection_id, o.page_id
    LIMIT %(batch)s
) AS p
WHERE r.run_id = %(run_id)s AND r.collection_id = %(collection_id)s

-- delete_pages --
SELECT pages, gone, reverted, promoted
FROM pgsimhash._delete_pages(%(collection)s::text, %(page_ids)s::bigint[])

-- expire_batch --
SELECT last_page, pages, gone, reverted, promoted
FROM pgsimhash._expire_batch(
    %(collection)s::text, %(older_than)s::interval, %(after_page)s::bigint, %(batch)s::integer
)

-- delete_run --
-- Unless its writer continued meanwhile.
DELETE FROM pgsimhash.runs AS r
WHERE r.run_id = %(run_id)s
    AND r.collection_id = %(collection_id)s
    AND NOT EXISTS (
        SELECT FROM pgsimhash.pages AS p
        WHERE p.collection_id = r.collection_id
            AND p.page_id BETWEEN r.first_page AND r.last_page
            AND p.run_id = r.run_id
    )
