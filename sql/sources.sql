-- The ingested files, and which of their records a rerun skips.

-- Adds the files that are unknown, before the first page of a file is stored: an undo deletes the row,
-- also of a job that goes on, which does not have the token of a later row. Returns the rows of all these
-- files; a single page that was deleted since counts as not stored.
CREATE FUNCTION pgsimhash._begin_sources(own_id integer, rows jsonb)
RETURNS TABLE (
    path text, size bigint, modified_ns bigint, last_record bigint, failed bigint[], page_id bigint,
    url text, token uuid
)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO pgsimhash.sources (collection_id, path, size, modified_ns, last_record, failed)
    SELECT own_id, r.path, r.size, r.modified_ns, 0, '{}'
    FROM jsonb_populate_recordset(NULL::pgsimhash.sources, rows) AS r
    ORDER BY r.path
    ON CONFLICT ON CONSTRAINT sources_pkey DO NOTHING;
    RETURN QUERY
    SELECT
        s.path, s.size, s.modified_ns,
        CASE WHEN s.page_id IS NOT DISTINCT FROM p.page_id THEN s.last_record ELSE 0 END,
        s.failed, p.page_id, p.url, s.token
    FROM pgsimhash.sources AS s
    LEFT JOIN pgsimhash.pages AS p ON p.collection_id = s.collection_id AND p.page_id = s.page_id
    WHERE s.collection_id = own_id
        AND s.path = ANY (ARRAY(SELECT r ->> 'path' FROM jsonb_array_elements(rows) AS r));
END
$$;

-- Updates rows; those that an undo deleted stay deleted, and those that began again since stay.
CREATE FUNCTION pgsimhash._put_sources(own_id integer, rows jsonb) RETURNS void
    LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    UPDATE pgsimhash.sources AS s
    SET size = r.size, modified_ns = r.modified_ns, last_record = r.last_record, failed = r.failed,
        page_id = r.page_id
    FROM jsonb_populate_recordset(NULL::pgsimhash.sources, rows) AS r
    WHERE s.collection_id = own_id AND s.path = r.path AND s.token = r.token;
$$;
