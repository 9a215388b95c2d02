-- draw_run --
SELECT pg_catalog.nextval(pg_catalog.pg_get_serial_sequence('pgsimhash.runs', 'run_id'))

-- batch_stored --
-- A promoted server may assign a rolled-back page_id again.
SELECT CASE WHEN %(run_id)s::bigint IS NULL THEN EXISTS (
    SELECT FROM pgsimhash.pages
    WHERE collection_id = %(collection_id)s
        AND page_id = ANY (%(page_ids)s::bigint[])
        AND url = ANY (%(urls)s::text[])
) ELSE %(run_pages)s::bigint = (
    SELECT pg_catalog.sum(pages) FROM pgsimhash.runs WHERE run_id = %(run_id)s::bigint
) END
