-- sources --
-- A single page that was deleted since counts as not stored.
SELECT s.path, s.size, s.modified_ns, s.last_record, s.failed, s.page_id
FROM pgsimhash.sources AS s
WHERE s.collection_id = %(collection_id)s
    AND s.path = ANY (%(paths)s::text[])
    AND (
        s.page_id IS NULL
        OR EXISTS (
            SELECT FROM pgsimhash.pages AS p
            WHERE p.collection_id = s.collection_id AND p.page_id = s.page_id
        )
    )

-- see_pages --
-- Only those that still exist.
SELECT pgsimhash._see_pages(
    %(collection_id)s::integer,
    ARRAY(
        SELECT p.page_id
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = %(collection_id)s AND p.page_id = ANY (%(page_ids)s::bigint[])
    ),
    NULL
)

-- begin_sources --
-- Before the first page of a file is stored: an undo deletes the row, also of a job that goes on.
INSERT INTO pgsimhash.sources (collection_id, path, size, modified_ns, last_record, failed)
SELECT %(collection_id)s, r.path, r.size, r.modified_ns, 0, '{}'
FROM pg_catalog.jsonb_to_recordset(%(rows)s) AS r (path text, size bigint, modified_ns bigint)
ORDER BY r.path
ON CONFLICT (collection_id, path) DO NOTHING

-- put_sources --
-- Not of files whose row an undo deleted.
INSERT INTO pgsimhash.sources AS s (
    collection_id, path, size, modified_ns, last_record, failed, page_id
)
SELECT %(collection_id)s, r.path, r.size, r.modified_ns, r.last_record, r.failed, r.page_id
FROM pg_catalog.jsonb_to_recordset(%(rows)s) AS r (
    path text, size bigint, modified_ns bigint, last_record bigint, failed bigint[], page_id bigint
)
WHERE EXISTS (
    SELECT FROM pgsimhash.sources AS b
    WHERE b.collection_id = %(collection_id)s AND b.path = r.path
)
ON CONFLICT (collection_id, path) DO UPDATE SET
    size = excluded.size,
    modified_ns = excluded.modified_ns,
    last_record = excluded.last_record,
    failed = excluded.failed,
    page_id = excluded.page_id

-- forget_archives --
-- Which of their records the run stored is unknown. Files with one page have its page_id.
DELETE FROM pgsimhash.sources WHERE collection_id = %(collection_id)s AND page_id IS NULL
